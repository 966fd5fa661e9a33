#include "platform/memory.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "platform/map_faults.h"
#include "platform/topology.h"

namespace frontier {
namespace {

constexpr std::size_t kAlignmentBytes = 64;  // a cache line and a zmm register
constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;
// Below two huge pages the alignment alone could waste as much as the buffer holds.
constexpr std::size_t kMapThresholdBytes = 2 * kHugePageBytes;

std::size_t page_bytes() {
    static const std::size_t bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    return bytes;
}

std::size_t round_up(std::size_t value, std::size_t multiple) {
    return (value + multiple - 1) / multiple * multiple;
}

std::unexpected<Error> does_not_fit(std::size_t size_bytes) {
    return fail(ErrorCode::kDoesNotFit, "out of memory: {} bytes wanted, {} bytes available", size_bytes,
                memory_state().available_bytes);
}

// An anonymous mapping that starts on a huge page; null when refused. `mapped_bytes` is a multiple of the page size.
std::byte* map_aligned(std::size_t mapped_bytes) {
    const std::size_t reserved = mapped_bytes + kHugePageBytes;
    void* base = mmap(nullptr, reserved, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) return nullptr;
    auto* start = static_cast<std::byte*>(base);
    const std::size_t head =
        round_up(reinterpret_cast<std::uintptr_t>(start), kHugePageBytes) - reinterpret_cast<std::uintptr_t>(start);
    const std::size_t tail = kHugePageBytes - head;
    if (head > 0) munmap(start, head);
    if (tail > 0) munmap(start + head + mapped_bytes, tail);
    madvise(start + head, mapped_bytes, MADV_HUGEPAGE);  // advice: a kernel without huge pages may refuse it
    return start + head;
}

}  // namespace

Result<AlignedBuffer> AlignedBuffer::allocate(std::size_t size_bytes) {
    AlignedBuffer buffer;
    if (size_bytes == 0) return buffer;
    if (size_bytes < kMapThresholdBytes) {
        const std::size_t rounded = round_up(size_bytes, kAlignmentBytes);
        buffer.data_ = static_cast<std::byte*>(std::aligned_alloc(kAlignmentBytes, rounded));
        if (buffer.data_ == nullptr) return does_not_fit(size_bytes);
        std::memset(buffer.data_, 0, rounded);
        buffer.size_bytes_ = size_bytes;
        return buffer;
    }
    // Linux overcommits: a map of any size succeeds and the process is killed when it touches the pages. So ask first.
    const std::int64_t available = memory_state().available_bytes;
    constexpr std::size_t kLargest = std::numeric_limits<std::size_t>::max() / 4;  // the roundings cannot overflow
    if (size_bytes > kLargest || (available > 0 && size_bytes > static_cast<std::size_t>(available))) {
        return does_not_fit(size_bytes);
    }
    const std::size_t mapped_bytes = round_up(size_bytes, page_bytes());
    buffer.data_ = map_aligned(mapped_bytes);
    if (buffer.data_ == nullptr) return does_not_fit(size_bytes);
    buffer.size_bytes_ = size_bytes;
    buffer.mapped_bytes_ = mapped_bytes;
    return buffer;
}

Status AlignedBuffer::grow(std::int64_t size_bytes) {
    if (static_cast<std::int64_t>(size_bytes_) >= size_bytes) return {};
    *this = AlignedBuffer();
    FR_ASSIGN(*this, allocate(static_cast<std::size_t>(size_bytes)));
    return {};
}

AlignedBuffer::~AlignedBuffer() {
    if (data_ == nullptr) return;
    if (mapped_bytes_ > 0) {
        munmap(data_, mapped_bytes_);
    } else {
        std::free(data_);
    }
}

AlignedBuffer::AlignedBuffer(AlignedBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_bytes_(std::exchange(other.size_bytes_, 0)),
      mapped_bytes_(std::exchange(other.mapped_bytes_, 0)) {}

AlignedBuffer& AlignedBuffer::operator=(AlignedBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_bytes_, other.size_bytes_);
    std::swap(mapped_bytes_, other.mapped_bytes_);
    return *this;
}

Result<MappedFile> MappedFile::open(const std::string& path) {
    // O_NONBLOCK: a FIFO without a writer must not hang the open; regular files ignore it.
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return bad_input("cannot open {}: {}", path, std::strerror(errno));
    struct stat info{};
    const int stat_error = fstat(fd, &info) == 0 ? 0 : errno;
    const bool usable = stat_error == 0 && S_ISREG(info.st_mode) && info.st_size > 0;
    void* base = MAP_FAILED;
    int map_error = 0;
    if (usable) {
        base = mmap(nullptr, static_cast<std::size_t>(info.st_size), PROT_READ, MAP_SHARED, fd, 0);
        map_error = base == MAP_FAILED ? errno : 0;
    }
    ::close(fd);  // the map keeps the file
    if (stat_error != 0) return bad_input("cannot read {}: {}", path, std::strerror(stat_error));
    if (S_ISDIR(info.st_mode)) return bad_input("cannot read {}: expected a regular file, found a directory", path);
    if (!S_ISREG(info.st_mode)) return bad_input("cannot read {}: expected a regular file", path);
    if (info.st_size <= 0) return bad_input("cannot read {}: the file is empty", path);
    if (map_error != 0) {
        return bad_input("cannot map {} ({} bytes): {}", path, info.st_size, std::strerror(map_error));
    }
    MappedFile file;
    file.data_ = static_cast<const std::byte*>(base);
    file.size_bytes_ = static_cast<std::size_t>(info.st_size);
    file.path_ = path;
    const auto ns = [](const timespec& time) { return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec; };
    file.state_ = {info.st_dev, info.st_ino, info.st_size, ns(info.st_mtim), ns(info.st_ctim)};
    file.fault_entry_ = record_map(file.data_, file.size_bytes_, path);
    return file;
}

MappedFile::~MappedFile() {
    if (data_ == nullptr) return;
    forget_map(fault_entry_);
    munmap(const_cast<std::byte*>(data_), size_bytes_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_bytes_(std::exchange(other.size_bytes_, 0)),
      path_(std::move(other.path_)),
      state_(other.state_),
      fault_entry_(std::exchange(other.fault_entry_, -1)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_bytes_, other.size_bytes_);
    std::swap(path_, other.path_);
    std::swap(state_, other.state_);
    std::swap(fault_entry_, other.fault_entry_);
    return *this;
}

std::string MappedFile::identity(std::size_t header_bytes) const {
    std::error_code error;
    const std::filesystem::path canonical = std::filesystem::canonical(path_, error);
    return fmt::format("{} size {} modified {} changed {} device {} inode {} header {:016x}",
                       error ? path_ : canonical.string(), state_.size_bytes, state_.modified_ns, state_.changed_ns,
                       state_.device, state_.inode, lanes64(data_, std::min(header_bytes, size_bytes_)));
}

void MappedFile::release(std::size_t offset_bytes, std::size_t length_bytes) const {
    if (data_ == nullptr || offset_bytes >= size_bytes_) return;
    const std::size_t end_bytes = offset_bytes + std::min(length_bytes, size_bytes_ - offset_bytes);
    const std::size_t begin = round_up(offset_bytes, page_bytes());
    // The last page of the file is wholly inside when the range reaches the end.
    const std::size_t end =
        end_bytes == size_bytes_ ? round_up(end_bytes, page_bytes()) : end_bytes / page_bytes() * page_bytes();
    if (begin < end) madvise(const_cast<std::byte*>(data_) + begin, end - begin, MADV_DONTNEED);
}

void MappedFile::will_need(std::size_t offset_bytes, std::size_t length_bytes) const {
    if (data_ == nullptr || offset_bytes >= size_bytes_) return;
    const std::size_t end = offset_bytes + std::min(length_bytes, size_bytes_ - offset_bytes);
    const std::size_t begin = offset_bytes / page_bytes() * page_bytes();
    madvise(const_cast<std::byte*>(data_) + begin, end - begin, MADV_WILLNEED);
}

// MADV_COLLAPSE would change cached pages too, but needs a kernel built with CONFIG_READ_ONLY_THP_FOR_FS (EINVAL
// without), and copies them all.
void MappedFile::prefer_huge_pages() const {
    if (data_ != nullptr) madvise(const_cast<std::byte*>(data_), size_bytes_, MADV_HUGEPAGE);
}

}  // namespace frontier

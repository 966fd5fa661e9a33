#include "platform/pending_file.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace frontier {
namespace {

std::string system_text(int error_number) {
    return std::generic_category().message(error_number);
}

}  // namespace

PendingFile::~PendingFile() {
    if (fd_ >= 0) ::close(fd_);
    if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

Status PendingFile::create(std::uint64_t size_bytes, unsigned mode) {
    std::error_code ignored;
    const auto status = std::filesystem::status(path_, ignored);
    if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status))
        return fail(ErrorCode::kFailed, "cannot write {}: exists and is not a regular file", path_);
    // A link keeps pointing at the file that is replaced.
    if (const auto target = std::filesystem::canonical(path_, ignored); !ignored) path_ = target.string();
    // A killed process leaves its file, and in a container the next one has the same number: then another name.
    constexpr int kNames = 100;
    std::string name;
    for (int i = 0; i < kNames && fd_ < 0; ++i) {
        name = fmt::format("{}.part{}{}", path_, ::getpid(), i == 0 ? "" : fmt::format("-{}", i));
        fd_ = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, static_cast<mode_t>(mode));
        if (fd_ < 0 && errno != EEXIST) break;
    }
    if (fd_ < 0) return failed(errno);
    temporary_ = name;
    size_bytes_ = size_bytes;
    // A full disk and a limit on file sizes show before the work begins, where the file system can tell.
    if (::fallocate(fd_, FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(size_bytes)) != 0) {
        if (errno == ENOSPC) return full();
        if (errno == EFBIG) return failed(errno);
    }
    return {};
}

Status PendingFile::write(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
        // Linux transfers at most 2^31 - 4096 bytes a call.
        const std::size_t chunk = std::min(bytes.size(), std::size_t{1} << 30);
        const ssize_t written = ::write(fd_, bytes.data(), chunk);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0 && errno == ENOSPC) return full();
        if (written < 0) return failed(errno);
        bytes = bytes.subspan(static_cast<std::size_t>(written));
    }
    return {};
}

Status PendingFile::commit(Sync sync) {
    if (sync == Sync::kToDisk && ::fsync(fd_) != 0 && errno != EINVAL) return failed(errno);
    const int closed = ::close(fd_);
    fd_ = -1;
    if (closed != 0) return failed(errno);
    if (::rename(temporary_.c_str(), path_.c_str()) != 0) return failed(errno);
    temporary_.clear();
    return {};
}

std::unexpected<Error> PendingFile::failed(int error_number) const {
    return fail(ErrorCode::kFailed, "cannot write {}: {}", path_, system_text(error_number));
}

std::unexpected<Error> PendingFile::full() const {
    std::error_code no_space_info;
    const auto parent = std::filesystem::path(path_).parent_path();
    const auto space = std::filesystem::space(parent.empty() ? "." : parent, no_space_info);
    if (no_space_info) return failed(ENOSPC);
    return fail(ErrorCode::kFailed, "cannot write {}: the file needs {} bytes, the disk has {} free", path_,
                size_bytes_, space.available);
}

}  // namespace frontier

#include "backend/pack_cache.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "backend/cpu_weights.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "formats/printable.h"
#include "platform/pending_file.h"

namespace frontier {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffix = ".pack";
constexpr std::int64_t kAlignmentBytes = 64;  // of panels, as in memory

// Left free on the disk: a slow start is better than what a full disk does to everyone else.
constexpr std::int64_t kSpareDiskBytes = 256 << 20;

// A file that is still being written is younger; an older one was left by a process that was killed.
constexpr auto kAbandonedAfter = std::chrono::hours(1);

std::string_view compute_tag(ComputeType compute) {
    if (compute == ComputeType::kBF16) return "bf16";
    return compute == ComputeType::kF16 ? "f16" : "as in the file";
}

std::string system_text() {
    return std::generic_category().message(errno);
}

// Whether the folder exists (`found`), and is this user's alone to write to.
Status check_folder(const std::string& folder, bool& found) {
    struct stat info{};
    found = ::lstat(folder.c_str(), &info) == 0;
    if (!found) return {};
    if (!S_ISDIR(info.st_mode)) return fail(ErrorCode::kFailed, "expected a folder, found something else");
    if (info.st_uid != ::geteuid() || (info.st_mode & (S_IWGRP | S_IWOTH)) != 0)
        return fail(ErrorCode::kFailed, "expected a folder that only this user may write to, found owner {}, mode {:o}",
                    info.st_uid, info.st_mode & 07777U);
    return {};
}

Status make_folder(const std::string& folder) {
    std::error_code error;
    fs::create_directories(fs::path(folder).parent_path(), error);
    if (error) return fail(ErrorCode::kFailed, "cannot create {}: {}", folder, error.message());
    if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
        return fail(ErrorCode::kFailed, "cannot create {}: {}", folder, system_text());
    bool found = false;
    return check_folder(folder, found);
}

std::int64_t aligned(std::int64_t bytes) {
    return (bytes + kAlignmentBytes - 1) / kAlignmentBytes * kAlignmentBytes;
}

struct CacheFile {
    fs::file_time_type used;
    std::int64_t bytes = 0;
    fs::path path;
};

// The folder's files of packed weights except `own`, least recently used first. Abandoned parts are removed.
std::vector<CacheFile> other_files(const std::string& folder, const std::string& own) {
    std::vector<CacheFile> files;
    std::error_code error;
    for (auto it = fs::directory_iterator(folder, error); !error && it != fs::directory_iterator();
         it.increment(error)) {
        std::error_code ignored;
        CacheFile file{fs::last_write_time(it->path(), ignored), 0, it->path()};
        const std::string name = file.path.filename().string();
        if (ignored || !it->is_regular_file(ignored) || file.path == own) continue;
        if (name.find(".pack.part") != std::string::npos) {
            if (fs::file_time_type::clock::now() - file.used > kAbandonedAfter) fs::remove(file.path, ignored);
            continue;
        }
        file.bytes = static_cast<std::int64_t>(fs::file_size(file.path, ignored));
        if (!ignored && name.ends_with(kSuffix)) files.push_back(std::move(file));
    }
    std::ranges::sort(files, {}, &CacheFile::used);
    return files;
}

}  // namespace

PackCache::PackCache(PackCacheOptions options)
    : options_(std::move(options)),
      identity_(fmt::format("packed {}\n{}", compute_tag(options_.compute), options_.sources)) {
    const std::string named = fmt::format("{}\n{}", options_.model, compute_tag(options_.compute));
    path_ = fmt::format("{}/{:016x}{}", options_.folder, fnv1a64(named.data(), named.size()), kSuffix);
    open();
}

void PackCache::open() {
    bool found = false;
    if (const Status checked = check_folder(options_.folder, found); !checked.has_value()) {
        usable_ = false;
        spdlog::warn("{}: packed weights are not kept: {}", printable(options_.folder), checked.error().text);
        return;
    }
    std::error_code error;
    if (!found || !fs::exists(path_, error)) return;
    auto file = MappedFile::open(path_);
    if (!file.has_value()) return reject(file.error().text);
    auto directory = parse_pack_file(file->bytes());
    if (!directory.has_value()) return reject(directory.error().text);
    // Compared as JSON gives it back: bytes of a path that are no UTF-8 are not what they were.
    if (dump_json(directory->identity) != dump_json(identity_))
        return reject("made from other files, or from another state of these");
    file->prefer_huge_pages();
    file->will_need(0, file->bytes().size());
    entries_ = std::move(directory->matrices);
    file_ = std::move(*file);
}

void PackCache::reject(std::string_view reason) {
    if (!rejected_) spdlog::warn("{}: not used, packing anew: {}", printable(path_), reason);
    rejected_ = true;
}

const std::byte* PackCache::find(const PackedMatrix& expected, ThreadPool& pool) {
    if (file_.bytes().empty()) return nullptr;
    const auto found = entries_.find(expected.name);
    if (found == entries_.end()) {
        reject(fmt::format("expected matrix {}, found none", printable(expected.name)));
        return nullptr;
    }
    const PackEntry& entry = found->second;
    if (entry.type != expected.type || entry.rows != expected.rows || entry.cols != expected.cols) {
        reject(fmt::format("matrix {}: expected {} [{}, {}], found {} [{}, {}]", printable(expected.name),
                           dtype_name(expected.type), expected.rows, expected.cols, dtype_name(entry.type), entry.rows,
                           entry.cols));
        return nullptr;
    }
    const auto panels =
        file_.bytes().subspan(static_cast<std::size_t>(entry.offset), static_cast<std::size_t>(entry.bytes));
    const std::uint64_t checksum = panels_checksum(panels, pool);
    if (checksum != entry.checksum) {
        reject(fmt::format("matrix {}: expected checksum {:016x}, found {:016x}", printable(expected.name),
                           entry.checksum, checksum));
        return nullptr;
    }
    return panels.data();
}

void PackCache::keep(const PackedMatrix& matrix) {
    const std::span<const std::byte> file = file_.bytes();
    // Compared as numbers: the panels are inside the map or somewhere else entirely.
    const auto offset = reinterpret_cast<std::uintptr_t>(matrix.packed) - reinterpret_cast<std::uintptr_t>(file.data());
    all_found_ = all_found_ && offset < file.size();
    const PackEntry entry{.type = matrix.type,
                          .rows = matrix.rows,
                          .cols = matrix.cols,
                          .bytes = packed_matrix_bytes(matrix.type, matrix.rows, matrix.cols)};
    kept_.push_back({matrix.name, entry, matrix.packed});
}

void PackCache::store() {
    if (all_found_ && !file_.bytes().empty()) {
        ::utimensat(AT_FDCWD, path_.c_str(), nullptr, 0);  // the order of removal; a read-only disk may refuse
        outcome_ = Outcome::kUsed;
        spdlog::info("{}: packed weights mapped", printable(path_));
    } else if (usable_) {
        const Status written = write();
        if (written.has_value()) {
            outcome_ = Outcome::kWritten;
            spdlog::info("{}: packed weights kept for the next start", printable(path_));
        } else {
            spdlog::warn("{}: packed weights are not kept: {}", printable(path_), written.error().text);
        }
    }
    kept_ = {};
}

Status PackCache::make_room(std::int64_t bytes) const {
    if (bytes > options_.limit_bytes)
        return fail(ErrorCode::kFailed, "they take {} bytes, the limit of the cache is {}", bytes,
                    options_.limit_bytes);
    const std::vector<CacheFile> files = other_files(options_.folder, path_);
    std::int64_t total = bytes;
    for (const CacheFile& file : files) total += file.bytes;
    for (const CacheFile& file : files) {
        if (total <= options_.limit_bytes) break;
        std::error_code ignored;
        fs::remove(file.path, ignored);  // processes that have mapped it keep it
        total -= file.bytes;
    }
    struct statvfs disk{};
    if (::statvfs(options_.folder.c_str(), &disk) != 0) return {};  // then writing shows it
    const double free_bytes = static_cast<double>(disk.f_bavail) * static_cast<double>(disk.f_frsize);
    if (free_bytes < static_cast<double>(bytes + kSpareDiskBytes))
        return fail(ErrorCode::kFailed, "they take {} bytes, and {} are to stay free; the disk has {:.0f} free", bytes,
                    kSpareDiskBytes, free_bytes);
    return {};
}

Status PackCache::write() {
    std::int64_t panels_bytes = 0;
    for (Kept& kept : kept_) {
        kept.entry.offset = panels_bytes;
        panels_bytes += aligned(kept.entry.bytes);
    }
    FR_TRY(make_folder(options_.folder));
    FR_TRY(make_room(panels_bytes));
    PendingFile file(path_);
    FR_TRY(file.create(static_cast<std::uint64_t>(panels_bytes), 0600));
    PackDirectory directory{identity_, {}};
    constexpr std::array<std::byte, kAlignmentBytes> kZeros{};
    for (Kept& kept : kept_) {
        const std::span<const std::byte> panels(kept.panels, static_cast<std::size_t>(kept.entry.bytes));
        kept.entry.checksum = panels_checksum(panels);
        FR_TRY(file.write(panels));
        const std::int64_t padding = aligned(kept.entry.bytes) - kept.entry.bytes;
        FR_TRY(file.write(std::span(kZeros).first(static_cast<std::size_t>(padding))));
        directory.matrices.emplace(kept.name, kept.entry);
    }
    const std::string end = pack_file_end(directory, panels_bytes);
    FR_TRY(file.write(std::as_bytes(std::span(end))));
    // Not awaited: the first token is, and the checksums find what a crash leaves incomplete.
    return file.commit(PendingFile::Sync::kNone);
}

}  // namespace frontier

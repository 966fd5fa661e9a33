// A file that appears under its name only when it is complete.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"

namespace frontier {

// Written beside its final name, as NAME.partPID, and removed unless commit() renames it: whoever opens the name sees
// the old file or the new one, whole. All errors are kFailed and name the file.
class PendingFile {
public:
    explicit PendingFile(std::string path) : path_(std::move(path)) {}
    ~PendingFile();
    PendingFile(const PendingFile&) = delete;
    PendingFile& operator=(const PendingFile&) = delete;

    // Reserves the space, so that a full disk shows before the work begins. `mode` as in open(2).
    Status create(std::uint64_t size_bytes, unsigned mode = 0666);
    Status write(std::span<const std::byte> bytes);
    enum class Sync : std::uint8_t {
        kToDisk,  // on disk (fsync) before it is renamed: a crash of the machine leaves the old file or the new one
        kNone     // as fast as memory; such a crash may leave part of the new file, which its reader has to notice
    };
    Status commit(Sync sync = Sync::kToDisk);

private:
    std::unexpected<Error> failed(int error_number) const;
    std::unexpected<Error> full() const;

    std::string path_;
    std::string temporary_;
    int fd_ = -1;
    std::uint64_t size_bytes_ = 0;
};

}  // namespace frontier

// Packed weights kept in a file, so that the next start maps them instead of packing anew.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "backend/pack_file.h"
#include "platform/memory.h"
#include "platform/thread_pool.h"

namespace frontier {

struct PackedMatrix;

struct PackCacheOptions {
    std::string folder;   // this user's alone: made with mode 0700, left alone where others may write to it
    std::string model;    // with `compute` it names the file: another state of the same model replaces the old one
    std::string sources;  // every byte of the source tensors: another text for another state of them
    ComputeType compute = ComputeType::kAuto;  // bf16 and f16 change what is packed; the instruction set does not
    std::int64_t limit_bytes = 0;              // of all files of the folder together; the least recently used go first
};

// Nothing that can happen to the file fails a start: it then counts as absent, a warning says why, and it is written
// anew. Two processes may use and write the same file at once.
class PackCache {
public:
    explicit PackCache(PackCacheOptions options);

    // The panels of a matrix of this name, type and shape, their checksum verified; null when the file has no such.
    // They lie in the file's map and are valid while the cache lives.
    const std::byte* find(const PackedMatrix& expected, ThreadPool& pool);
    // Called for every matrix of the model, found or packed; its panels must stay where they are until store().
    void keep(const PackedMatrix& matrix);
    // After the last matrix: marks the file as used, or writes it when a matrix was not found in it.
    void store();

    enum class Outcome : std::uint8_t { kUsed, kWritten, kUnavailable };
    Outcome outcome() const { return outcome_; }  // after store()
    const std::string& path() const { return path_; }

private:
    struct Kept {
        std::string name;
        PackEntry entry;
        const std::byte* panels = nullptr;
    };
    void open();
    void reject(std::string_view reason);
    Status write();
    Status make_room(std::int64_t bytes) const;

    PackCacheOptions options_;
    std::string identity_;
    std::string path_;
    MappedFile file_;
    std::map<std::string, PackEntry, std::less<>> entries_;
    std::vector<Kept> kept_;
    bool all_found_ = true;
    bool usable_ = true;     // the folder is ours
    bool rejected_ = false;  // a warning has been given
    Outcome outcome_ = Outcome::kUnavailable;
};

}  // namespace frontier

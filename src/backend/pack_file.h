// The file in which packed weights are kept between starts: the panels of a model's matrices, as they lie in memory.
//
//   panels     of each matrix in turn, each from a multiple of 64 bytes on
//   directory  JSON: identity (see PackCacheOptions), and of every matrix name, type, rows, cols, offset, checksum
//   trailer    PackTrailer, the last bytes of the file
//
// The directory stands behind the panels so that they are hashed and written in one pass. Machines of one byte order
// only: the file is a cache of one user on one machine. The checksums find accidents (a cut, a bad disk, a stray
// write); they do not stop an attacker, who could as well write to the model or to this program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "platform/thread_pool.h"
#include "tensor/dtype.h"

namespace frontier {

struct PackTrailer {
    std::uint64_t magic = 0;
    std::uint32_t format_version = 0;   // of this file
    std::uint32_t packing_version = 0;  // kPackingVersion: of the panels
    std::uint64_t file_bytes = 0;
    std::uint64_t directory_bytes = 0;
    std::uint64_t checksum = 0;  // lanes64 of the directory and of the trailer with a checksum of 0
};
static_assert(sizeof(PackTrailer) == 40);

inline constexpr std::uint64_t kPackMagic = 0x6B6361705F525246ULL;  // "FRR_pack"
inline constexpr std::uint32_t kPackFormatVersion = 1;

struct PackEntry {
    DType type = DType::kF32;  // of the panels
    std::int64_t rows = 0;
    std::int64_t cols = 0;
    std::int64_t offset = 0;
    std::int64_t bytes = 0;  // what type, rows and cols give
    std::uint64_t checksum = 0;
};

struct PackDirectory {
    std::string identity;
    std::map<std::string, PackEntry, std::less<>> matrices;
};

std::int64_t packed_matrix_bytes(DType type, std::int64_t rows, std::int64_t cols);

// Checks the trailer, its checksum, and that every matrix lies inside the panels' part with the size of its shape.
// The panels are not read. Errors are kBadInput and say what was expected and found.
Result<PackDirectory> parse_pack_file(std::span<const std::byte> bytes);

// The hash of the hashes of pieces of fixed size: in parallel with a pool, the same without.
std::uint64_t panels_checksum(std::span<const std::byte> panels, ThreadPool& pool);
std::uint64_t panels_checksum(std::span<const std::byte> panels);

// The trailer and, before it, the directory. offset of the entries and `panels_bytes`: what was written before.
std::string pack_file_end(const PackDirectory& directory, std::int64_t panels_bytes);

}  // namespace frontier

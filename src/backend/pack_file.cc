#include "backend/pack_file.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <functional>
#include <limits>
#include <vector>

#include "base/hash.h"
#include "base/json.h"
#include "formats/printable.h"
#include "kernels/packing.h"

namespace frontier {
namespace {

// The directory of the largest models (some thousand matrices) takes 0.3 MB.
constexpr std::uint64_t kMaxDirectoryBytes = 16 << 20;

// Of what panels_checksum hashes at a time: some 100 us of work, far above the cost of handing it out.
constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

std::uint64_t directory_checksum(std::string_view directory, PackTrailer trailer) {
    trailer.checksum = 0;
    const std::uint64_t parts[] = {lanes64(directory.data(), directory.size()), lanes64(&trailer, sizeof trailer)};
    return lanes64(parts, sizeof parts);
}

std::uint64_t hash_piece(std::span<const std::byte> panels, std::size_t piece) {
    const std::size_t begin = piece * kPieceBytes;
    return lanes64(panels.data() + begin, std::min(kPieceBytes, panels.size() - begin));
}

std::size_t pieces_of(std::span<const std::byte> panels) {
    return (panels.size() + kPieceBytes - 1) / kPieceBytes;
}

Result<PackEntry> read_entry(const Json& object, std::int64_t panels_end, const std::string& name) {
    PackEntry entry;
    FR_ASSIGN(const std::string type, json_string(object, "type", name));
    const std::optional<DType> known = dtype_from_name(type);
    if (!known.has_value()) return bad_input("{}: type: expected a known one, got '{}'", name, printable(type));
    entry.type = *known;
    FR_ASSIGN(entry.rows, json_int(object, "rows", name));
    FR_ASSIGN(entry.cols, json_int(object, "cols", name));
    // Below these bounds no size overflows: a row has at most 2^42 bytes. Matrices of real models have 2^18 rows.
    constexpr std::int64_t kMaxExtent = std::int64_t{1} << 40;
    if (entry.rows < 1 || entry.cols < 1 || entry.rows > kMaxExtent || entry.cols > kMaxExtent ||
        entry.cols % dtype_info(entry.type).block_elements != 0)
        return bad_input("{}: expected the shape of a {} matrix, got [{}, {}]", name, type, entry.rows, entry.cols);
    const std::int64_t bytes_of_panel = panel_bytes(entry.type, entry.cols);
    const std::int64_t panels = panel_count(entry.rows);
    FR_ASSIGN(entry.offset, json_int(object, "offset", name));
    if (entry.offset < 0 || entry.offset > panels_end || entry.offset % 64 != 0 ||
        panels > (panels_end - entry.offset) / bytes_of_panel)
        return bad_input("{}: expected {} panels of {} bytes in the file's first {}, found them to start at {}", name,
                         panels, bytes_of_panel, panels_end, entry.offset);
    entry.bytes = panels * bytes_of_panel;
    FR_ASSIGN(const std::string checksum, json_string(object, "checksum", name));
    const char* end = checksum.data() + checksum.size();
    if (std::from_chars(checksum.data(), end, entry.checksum, 16).ptr != end)
        return bad_input("{}: checksum: expected a hexadecimal number, got '{}'", name, printable(checksum));
    return entry;
}

Result<PackDirectory> read_directory(std::string_view text, std::int64_t panels_end) {
    FR_ASSIGN(const Json json, parse_json(text, "directory"));
    PackDirectory directory;
    if (!json.is_object()) return bad_input("directory: expected an object, got {}", json.type_name());
    FR_ASSIGN(directory.identity, json_string(json, "identity", "directory"));
    const auto matrices = json.find("matrices");
    if (matrices == json.end() || !matrices->is_array())
        return bad_input("directory: matrices: expected a list, got none");
    for (const Json& item : *matrices) {
        if (!item.is_object()) return bad_input("directory: matrices: expected objects, got {}", item.type_name());
        FR_ASSIGN(const std::string name, json_string(item, "name", "directory"));
        FR_ASSIGN(const PackEntry entry, read_entry(item, panels_end, printable(name)));
        directory.matrices.emplace(name, entry);
    }
    return directory;
}

}  // namespace

std::int64_t packed_matrix_bytes(DType type, std::int64_t rows, std::int64_t cols) {
    return panel_count(rows) * panel_bytes(type, cols);
}

std::uint64_t panels_checksum(std::span<const std::byte> panels, ThreadPool& pool) {
    std::vector<std::uint64_t> hashes(pieces_of(panels));
    const auto body = [&](std::int64_t begin, std::int64_t end, int) {
        for (std::int64_t i = begin; i < end; ++i)
            hashes[static_cast<std::size_t>(i)] = hash_piece(panels, static_cast<std::size_t>(i));
    };
    pool.parallel_for(std::ssize(hashes), 1, std::ref(body));
    return lanes64(hashes.data(), hashes.size() * sizeof(std::uint64_t));
}

std::uint64_t panels_checksum(std::span<const std::byte> panels) {
    std::vector<std::uint64_t> hashes(pieces_of(panels));
    for (std::size_t i = 0; i < hashes.size(); ++i) hashes[i] = hash_piece(panels, i);
    return lanes64(hashes.data(), hashes.size() * sizeof(std::uint64_t));
}

Result<PackDirectory> parse_pack_file(std::span<const std::byte> bytes) {
    PackTrailer trailer;
    if (bytes.size() < sizeof trailer)
        return bad_input("expected at least {} bytes, found {}", sizeof trailer, bytes.size());
    std::memcpy(&trailer, bytes.data() + bytes.size() - sizeof trailer, sizeof trailer);
    if (trailer.magic != kPackMagic)
        return bad_input(
            "expected {:016x} before its last {} bytes, found {:016x}: cut short, or no file of packed "
            "weights",
            kPackMagic, sizeof trailer - sizeof trailer.magic, trailer.magic);
    if (trailer.format_version != kPackFormatVersion || trailer.packing_version != kPackingVersion)
        return bad_input("expected format {} and packing {}, found {} and {}: written by another version",
                         kPackFormatVersion, kPackingVersion, trailer.format_version, trailer.packing_version);
    if (trailer.file_bytes != bytes.size())
        return bad_input("expected {} bytes, found {}", trailer.file_bytes, bytes.size());
    if (trailer.directory_bytes > std::min<std::uint64_t>(kMaxDirectoryBytes, bytes.size() - sizeof trailer))
        return bad_input("expected a directory of at most {} bytes in a file of {}, found {}", kMaxDirectoryBytes,
                         bytes.size(), trailer.directory_bytes);
    const std::size_t panels_end = bytes.size() - sizeof trailer - trailer.directory_bytes;
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + panels_end, trailer.directory_bytes);
    const std::uint64_t checksum = directory_checksum(text, trailer);
    if (checksum != trailer.checksum)
        return bad_input("expected checksum {:016x} of the directory, found {:016x}", trailer.checksum, checksum);
    return read_directory(text, static_cast<std::int64_t>(panels_end));
}

std::string pack_file_end(const PackDirectory& directory, std::int64_t panels_bytes) {
    Json json;
    json["identity"] = directory.identity;
    json["matrices"] = Json::array();
    for (const auto& [name, entry] : directory.matrices)
        json["matrices"].push_back({{"name", name},
                                    {"type", dtype_name(entry.type)},
                                    {"rows", entry.rows},
                                    {"cols", entry.cols},
                                    {"offset", entry.offset},
                                    {"checksum", fmt::format("{:016x}", entry.checksum)}});
    std::string text = dump_json(json);
    PackTrailer trailer{.magic = kPackMagic,
                        .format_version = kPackFormatVersion,
                        .packing_version = kPackingVersion,
                        .file_bytes = static_cast<std::uint64_t>(panels_bytes) + text.size() + sizeof(PackTrailer),
                        .directory_bytes = text.size()};
    trailer.checksum = directory_checksum(text, trailer);
    text.append(reinterpret_cast<const char*>(&trailer), sizeof trailer);
    return text;
}

}  // namespace frontier

#include "formats/safetensors.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>

#include "formats/byte_reader.h"
#include "formats/printable.h"
#include "formats/safetensors_header.h"

namespace frontier {
namespace {

// The limit of the reference implementation.
constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;

struct StoredType {
    std::string_view name;
    std::uint64_t bits;
    std::optional<DType> dtype;  // what we compute with
};
constexpr std::array<StoredType, 20> kStoredTypes = {{
    {"F32", 32, DType::kF32},
    {"F16", 16, DType::kF16},
    {"BF16", 16, DType::kBF16},
    {"F64", 64, {}},
    {"F8_E4M3", 8, {}},
    {"F8_E5M2", 8, {}},
    {"F8_E8M0", 8, {}},
    {"F6_E2M3", 6, {}},
    {"F6_E3M2", 6, {}},
    {"F4", 4, {}},
    {"I64", 64, {}},
    {"I32", 32, {}},
    {"I16", 16, {}},
    {"I8", 8, {}},
    {"U64", 64, {}},
    {"U32", 32, {}},
    {"U16", 16, {}},
    {"U8", 8, {}},
    {"BOOL", 8, {}},
    {"C64", 64, {}},
}};

const StoredType* find_type(std::string_view name) {
    const auto it = std::ranges::find(kStoredTypes, name, &StoredType::name);
    return it == kStoredTypes.end() ? nullptr : &*it;
}

struct ParsedFile {
    std::vector<TensorView> tensors;  // in the order of their data
    std::vector<SafetensorsModel::Unsupported> unsupported;
};

std::unexpected<Error> bad_tensor(std::string_view where, const SafetensorsEntry& entry, std::string_view what) {
    return bad_input("{}: tensor '{}': {}", where, printable(entry.name), what);
}

// Offsets inside the data, and as long as type and shape say. The size of a type we do not know cannot be checked.
Status check_size(const SafetensorsEntry& entry, std::uint64_t data_bytes, std::string_view where) {
    if (entry.begin > entry.end)
        return bad_tensor(where, entry, fmt::format("data_offsets [{}, {}] run backwards", entry.begin, entry.end));
    if (entry.end > data_bytes)
        return bad_tensor(
            where, entry,
            fmt::format("data ends at byte {} after the header, the file has {} there", entry.end, data_bytes));
    const StoredType* type = find_type(entry.dtype);
    if (type == nullptr) return {};
    std::uint64_t bits = type->bits;
    for (const std::int64_t extent : entry.shape)
        if (__builtin_mul_overflow(bits, static_cast<std::uint64_t>(extent), &bits))
            return bad_tensor(where, entry, fmt::format("shape {} overflows 64 bits", shape_text(entry.shape)));
    if (bits % 8 != 0 || bits / 8 != entry.end - entry.begin)
        return bad_tensor(
            where, entry,
            fmt::format("shape {} of {} takes {} bytes, data_offsets [{}, {}] hold {}", shape_text(entry.shape),
                        type->name, (bits + 7) / 8, entry.begin, entry.end, entry.end - entry.begin));
    return {};
}

// As the reference implementation, we want every byte of the data to belong to exactly one tensor.
Status check_coverage(const std::vector<const SafetensorsEntry*>& order, std::uint64_t data_bytes,
                      std::string_view where) {
    std::uint64_t end = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
        const SafetensorsEntry& entry = *order[i];
        if (entry.begin < end)
            return bad_input("{}: tensors '{}' and '{}' overlap: the first ends at byte {}, the second starts at {}",
                             where, printable(order[i - 1]->name), printable(entry.name), end, entry.begin);
        if (entry.begin > end)
            return bad_tensor(where, entry,
                              fmt::format("starts at byte {} after the header, expected {}, where the "
                                          "data before it ends",
                                          entry.begin, end));
        end = entry.end;
    }
    if (end != data_bytes)
        return bad_input("{}: the tensors end at byte {} after the header, the file at {}", where, end, data_bytes);
    return {};
}

Status check_names(const std::vector<SafetensorsEntry>& entries, std::string_view where) {
    std::vector<std::string_view> names;
    names.reserve(entries.size());
    for (const SafetensorsEntry& entry : entries) {
        if (has_control_bytes(entry.name)) return bad_tensor(where, entry, "control characters in the name");
        names.push_back(entry.name);
    }
    std::ranges::sort(names);
    const auto twice = std::ranges::adjacent_find(names);
    if (twice != names.end()) return bad_input("{}: tensor '{}' occurs twice", where, printable(*twice));
    return {};
}

bool is_empty(const SafetensorsEntry& entry) {
    return std::ranges::find(entry.shape, 0) != entry.shape.end();
}

Result<ParsedFile> parse_file(std::span<const std::byte> bytes, std::string_view where) {
    ByteReader reader(bytes);
    std::uint64_t header_bytes = 0;
    std::span<const std::byte> header;
    if (as_text(bytes).starts_with("version https://git-lfs"))
        return bad_input("{}: a Git LFS pointer instead of the file itself, run git lfs pull", where);
    if (!reader.read(header_bytes))
        return bad_input("{}: {} bytes are too few for a safetensors file", where, bytes.size());
    if (header_bytes > kMaxHeaderBytes)
        return bad_input("{}: not a safetensors file: a header of {} bytes, at most {} are allowed", where,
                         header_bytes, kMaxHeaderBytes);
    if (!reader.take(header_bytes, header))
        return bad_input("{}: the header ends at byte {}, file has {} bytes", where, 8 + header_bytes, bytes.size());
    FR_ASSIGN(std::vector<SafetensorsEntry> entries, parse_safetensors_header(as_text(header), where));

    const std::span<const std::byte> data = bytes.subspan(reader.offset());
    FR_TRY(check_names(entries, where));
    std::vector<const SafetensorsEntry*> order;
    order.reserve(entries.size());
    for (const SafetensorsEntry& entry : entries) {
        FR_TRY(check_size(entry, data.size(), where));
        order.push_back(&entry);
    }
    // Empty tensors sort before the one that starts at the same byte.
    std::ranges::sort(order, {}, [](const SafetensorsEntry* entry) { return std::pair(entry->begin, entry->end); });
    FR_TRY(check_coverage(order, data.size(), where));

    ParsedFile parsed;
    for (const SafetensorsEntry* entry : order) {
        const StoredType* type = find_type(entry->dtype);
        if (type == nullptr || !type->dtype || is_empty(*entry)) {
            parsed.unsupported.push_back({entry->name, entry->dtype, entry->shape});
            continue;
        }
        parsed.tensors.push_back({{entry->name, *type->dtype, entry->shape},
                                  data.subspan(static_cast<std::size_t>(entry->begin),
                                               static_cast<std::size_t>(entry->end - entry->begin))});
    }
    return parsed;
}

}  // namespace

Result<SafetensorsModel> SafetensorsModel::parse(std::span<const std::byte> bytes, std::string where) {
    FR_ASSIGN(ParsedFile parsed, parse_file(bytes, where));
    SafetensorsModel model;
    model.where_ = std::move(where);
    model.unsupported_ = std::move(parsed.unsupported);
    for (TensorView& tensor : parsed.tensors) model.adopt(std::move(tensor));
    return model;
}

Result<SafetensorsModel> SafetensorsModel::open(const std::string& folder) {
    namespace fs = std::filesystem;
    std::error_code ignored;
    if (!fs::is_directory(folder, ignored))
        return bad_input("{}: {}", folder, fs::exists(folder, ignored) ? "not a folder" : "no such folder");
    const std::string single = (fs::path(folder) / "model.safetensors").string();
    const std::string index = (fs::path(folder) / "model.safetensors.index.json").string();
    if (fs::exists(single, ignored)) {
        FR_ASSIGN(MappedFile file, MappedFile::open(single));
        FR_ASSIGN(SafetensorsModel model, parse(file.bytes(), single));
        model.shards_.push_back(std::make_shared<Shard>(Shard{std::move(file)}));
        return model;
    }
    if (fs::exists(index, ignored)) return open_sharded(folder, index);
    return bad_input("{}: holds neither model.safetensors nor model.safetensors.index.json", folder);
}

Result<SafetensorsModel> SafetensorsModel::open_sharded(const std::string& folder, const std::string& index) {
    FR_ASSIGN(const MappedFile index_file, MappedFile::open(index));
    FR_ASSIGN(const auto weight_map, parse_safetensors_index(as_text(index_file.bytes()), index));
    std::map<std::string_view, std::string_view> shard_of;                 // tensor -> file
    std::map<std::string_view, std::vector<std::string_view>> tensors_of;  // file -> tensors
    for (const auto& [tensor, shard] : weight_map) {
        if (!shard_of.emplace(tensor, shard).second)
            return bad_input("{}: tensor '{}' occurs twice in weight_map", index, printable(tensor));
        tensors_of[shard].push_back(tensor);
    }

    SafetensorsModel model;
    model.where_ = index;
    std::size_t number = 0;
    for (const auto& [shard, tensors] : tensors_of) {
        ++number;
        const std::string path = (std::filesystem::path(folder) / shard).string();
        std::error_code ignored;
        if (!std::filesystem::exists(path, ignored))
            return bad_input("{}: shard '{}' ({} of {}) with tensor '{}' is missing from the folder", index,
                             printable(shard), number, tensors_of.size(), printable(tensors.front()));
        FR_ASSIGN(MappedFile file, MappedFile::open(path));
        FR_ASSIGN(ParsedFile parsed, parse_file(file.bytes(), path));
        model.shards_.push_back(std::make_shared<Shard>(Shard{std::move(file)}));
        // The index decides: what it does not place in this shard is not part of the model.
        const auto placed_here = [&](const std::string& name) {
            const auto it = shard_of.find(name);
            return it != shard_of.end() && it->second == shard;
        };
        std::vector<std::string_view> found;
        for (Unsupported& tensor : parsed.unsupported) {
            if (!placed_here(tensor.name)) continue;
            found.push_back(shard_of.find(tensor.name)->first);
            model.unsupported_.push_back(std::move(tensor));
        }
        for (TensorView& tensor : parsed.tensors) {
            if (!placed_here(tensor.info.name)) continue;
            found.push_back(shard_of.find(tensor.info.name)->first);
            model.adopt(std::move(tensor));
        }
        std::ranges::sort(found);
        for (const std::string_view tensor : tensors)
            if (!std::ranges::binary_search(found, tensor))
                return bad_input("{}: tensor '{}' is not in its shard '{}'", index, printable(tensor),
                                 printable(shard));
    }
    return model;
}

void SafetensorsModel::adopt(TensorView tensor) {
    index_.emplace(tensor.info.name, tensors_.size());
    tensors_.push_back(std::move(tensor));
    shard_of_tensor_.push_back(shards_.empty() ? 0 : shards_.size() - 1);
}

const TensorView* SafetensorsModel::find_tensor(std::string_view name) const {
    const auto it = index_.find(name);
    return it == index_.end() ? nullptr : &tensors_[it->second];
}

std::string SafetensorsModel::identity() const {
    std::vector<std::size_t> header_bytes;
    for (const auto& shard : shards_) header_bytes.push_back(shard->file.bytes().size());
    for (std::size_t i = 0; i < tensors_.size() && !shards_.empty(); ++i) {
        const std::size_t shard = shard_of_tensor_[i];
        const auto offset = static_cast<std::size_t>(tensors_[i].data.data() - shards_[shard]->file.bytes().data());
        header_bytes[shard] = std::min(header_bytes[shard], offset);
    }
    std::string lines;
    for (std::size_t i = 0; i < shards_.size(); ++i) lines += shards_[i]->file.identity(header_bytes[i]) + "\n";
    return lines;
}

void SafetensorsModel::release(std::size_t index) const {
    if (shards_.empty()) return;  // parsed from memory
    const MappedFile& file = shards_[shard_of_tensor_[index]]->file;
    const std::span<const std::byte> data = tensors_[index].data;
    file.release(static_cast<std::size_t>(data.data() - file.bytes().data()), data.size());
}

}  // namespace frontier

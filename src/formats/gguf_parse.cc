#include "formats/gguf_parse.h"

#include <algorithm>
#include <array>
#include <optional>

#include "formats/byte_reader.h"
#include "formats/printable.h"

namespace frontier {
namespace {

constexpr std::uint32_t magic_of(const char (&text)[5]) {
    std::uint32_t magic = 0;
    for (int i = 3; i >= 0; --i) magic = magic << 8 | static_cast<unsigned char>(text[i]);
    return magic;
}

struct TypeName {
    std::uint32_t id;
    std::string_view name;
};
// The types of ggml.h that we do not compute with, so that an error can say what the file holds.
constexpr std::array<TypeName, 22> kOtherTensorTypes = {{
    {4, "Q4_2"},      {5, "Q4_3"},   {9, "Q8_1"},   {15, "Q8_K"},       {16, "IQ2_XXS"},  {17, "IQ2_XS"},
    {18, "IQ3_XXS"},  {19, "IQ1_S"}, {21, "IQ3_S"}, {22, "IQ2_S"},      {24, "I8"},       {25, "I16"},
    {26, "I32"},      {27, "I64"},   {28, "F64"},   {29, "IQ1_M"},      {31, "Q4_0_4_4"}, {32, "Q4_0_4_8"},
    {33, "Q4_0_8_8"}, {34, "TQ1_0"}, {35, "TQ2_0"}, {36, "IQ4_NL_4_4"},
}};

std::string tensor_type_text(std::uint32_t id) {
    for (const TypeName& type : kOtherTensorTypes)
        if (type.id == id) return fmt::format("{} ({})", id, type.name);
    return fmt::format("{}", id);
}

class Parser {
public:
    Parser(std::span<const std::byte> bytes, std::string_view where) : bytes_(bytes), reader_(bytes), where_(where) {}

    Result<ParsedGguf> run() {
        FR_TRY(read_header());
        for (std::uint64_t i = 0; i < metadata_count_; ++i) FR_TRY(read_metadata(i));
        FR_TRY(find_alignment());
        for (std::uint64_t i = 0; i < tensor_count_; ++i) FR_TRY(read_tensor_info(i));
        FR_TRY(place_tensors());
        FR_TRY(check_overlaps());
        return std::move(out_);
    }

private:
    Status read_header() {
        context_ = "the header";
        std::uint32_t magic = 0;
        FR_TRY(read(magic));
        if (magic != magic_of("GGUF")) return wrong_magic(magic);
        FR_TRY(read(out_.version));
        if ((out_.version & 0xFFFFU) == 0 && out_.version != 0)
            return bad_input("{}: a big-endian GGUF file (version reads {:#x}), only little-endian ones are supported",
                             where_, out_.version);
        if (out_.version != 2 && out_.version != 3)
            return bad_input("{}: GGUF version {}, supported are 2 and 3", where_, out_.version);
        FR_TRY(read(tensor_count_));
        FR_TRY(read(metadata_count_));
        // The shortest entries: key length, one byte of key, type, one byte of value; name length, one byte of name,
        // dimensions, one dimension, type, offset.
        constexpr std::uint64_t kMinMetadataBytes = 8 + 1 + 4 + 1;
        constexpr std::uint64_t kMinTensorBytes = 8 + 1 + 4 + 8 + 4 + 8;
        FR_TRY(check_count("metadata entries", metadata_count_, kMinMetadataBytes));
        return check_count("tensors", tensor_count_, kMinTensorBytes);
    }

    std::unexpected<Error> wrong_magic(std::uint32_t magic) const {
        if (magic == magic_of("FUGG"))
            return bad_input("{}: a big-endian GGUF file, only little-endian ones are supported", where_);
        if (as_text(bytes_).starts_with("version https://git-lfs"))
            return bad_input("{}: a Git LFS pointer instead of the file itself, run git lfs pull", where_);
        for (const std::uint32_t old : {magic_of("lmgg"), magic_of("fmgg"), magic_of("tjgg"), magic_of("algg")})
            if (magic == old)
                return bad_input("{}: a GGML file from before GGUF, convert it with llama.cpp's scripts", where_);
        return bad_input("{}: not a GGUF file: starts with '{}', expected 'GGUF'", where_,
                         printable(as_text(bytes_.first(4))));
    }

    Status check_count(std::string_view what, std::uint64_t count, std::uint64_t min_entry_bytes) const {
        if (count <= reader_.remaining() / min_entry_bytes) return {};
        return bad_input("{}: the header declares {} {}, but only {} bytes follow", where_, count, what,
                         reader_.remaining());
    }

    Status read_metadata(std::uint64_t number) {
        context_ = fmt::format("the key of metadata entry {}", number);
        FR_ASSIGN(const std::string_view key, read_string(kMaxGgufKeyBytes));
        if (key.empty()) return bad_input("{}: {} is empty", where_, context_);
        context_ = fmt::format("metadata key '{}'", printable(key));
        if (has_control_bytes(key)) return bad_input("{}: {} holds control characters", where_, context_);
        const auto [it, inserted] = out_.metadata_index.emplace(key, out_.metadata.size());
        if (!inserted) return bad_input("{}: {} occurs twice", where_, context_);
        // Filled in place: GCC 12 warns of the moved variant.
        GgufValue& value = out_.metadata.emplace_back(std::string(key), GgufValue{}).second;
        FR_ASSIGN(value.type, read_type());
        return read_value(value);
    }

    Result<GgufType> read_type() {
        std::uint32_t id = 0;
        FR_TRY(read(id));
        if (id > static_cast<std::uint32_t>(GgufType::kFloat64))
            return bad_input("{}: {} has the unknown value type {}, known are 0 to 12", where_, context_, id);
        return static_cast<GgufType>(id);
    }

    template <typename Stored, typename T>
    Status read_number(GgufValue& value) {
        T number{};
        FR_TRY(read(number));
        value.value = static_cast<Stored>(number);
        return {};
    }

    Status read_value(GgufValue& value) {
        switch (value.type) {
            case GgufType::kUint8:
                return read_number<std::uint64_t, std::uint8_t>(value);
            case GgufType::kUint16:
                return read_number<std::uint64_t, std::uint16_t>(value);
            case GgufType::kUint32:
                return read_number<std::uint64_t, std::uint32_t>(value);
            case GgufType::kUint64:
                return read_number<std::uint64_t, std::uint64_t>(value);
            case GgufType::kInt8:
                return read_number<std::int64_t, std::int8_t>(value);
            case GgufType::kInt16:
                return read_number<std::int64_t, std::int16_t>(value);
            case GgufType::kInt32:
                return read_number<std::int64_t, std::int32_t>(value);
            case GgufType::kInt64:
                return read_number<std::int64_t, std::int64_t>(value);
            case GgufType::kFloat32:
                return read_number<double, float>(value);
            case GgufType::kFloat64:
                return read_number<double, double>(value);
            case GgufType::kBool: {
                std::uint8_t byte = 0;
                FR_TRY(read(byte));
                if (byte > 1) return bad_input("{}: {}: a bool is 0 or 1, got {}", where_, context_, byte);
                value.value = byte == 1;
                return {};
            }
            case GgufType::kString: {
                FR_ASSIGN(value.value, read_string(reader_.size()));
                return {};
            }
            case GgufType::kArray:
                return read_array(value.value.emplace<GgufArray>());
        }
        return {};  // read_type() lets no other value pass
    }

    Status read_array(GgufArray& array) {
        FR_ASSIGN(array.element_type, read_type());
        FR_TRY(read(array.count));
        if (array.element_type == GgufType::kArray)
            return bad_input("{}: {} is an array of arrays, which is not supported", where_, context_);
        const bool strings = array.element_type == GgufType::kString;
        const std::uint64_t min_bytes = strings ? sizeof(std::uint64_t) : gguf_type_bytes(array.element_type);
        if (array.count > reader_.remaining() / min_bytes)
            return bad_input("{}: {} declares {} elements of {}, but only {} bytes follow", where_, context_,
                             array.count, gguf_type_name(array.element_type), reader_.remaining());
        if (!strings) {
            reader_.take(array.count * min_bytes, array.data);
            return {};
        }
        array.strings.reserve(static_cast<std::size_t>(array.count));  // at most twice the bytes that follow
        for (std::uint64_t i = 0; i < array.count; ++i) {
            std::uint64_t length = 0;
            std::span<const std::byte> text;
            if (!reader_.read(length) || !reader_.take(length, text))
                return bad_input("{}: {}: element {} of {} ends past the file's {} bytes", where_, context_, i,
                                 array.count, reader_.size());
            array.strings.push_back(as_text(text));
        }
        return {};
    }

    Status find_alignment() {
        const auto it = out_.metadata_index.find("general.alignment");
        if (it == out_.metadata_index.end()) return {};
        const GgufValue& value = out_.metadata[it->second].second;
        if (value.type != GgufType::kUint32)
            return bad_input("{}: general.alignment: expected uint32, got {}", where_, gguf_type_text(value));
        alignment_ = std::get<std::uint64_t>(value.value);
        // The specification asks for a multiple of 8, llama.cpp for a power of two.
        if (alignment_ < 8 || !std::has_single_bit(alignment_))
            return bad_input("{}: general.alignment: expected a power of two of at least 8, got {}", where_,
                             alignment_);
        return {};
    }

    Status read_tensor_info(std::uint64_t number) {
        context_ = fmt::format("the name of tensor {}", number);
        FR_ASSIGN(const std::string_view name, read_string(kMaxGgufTensorNameBytes));
        if (name.empty()) return bad_input("{}: {} is empty", where_, context_);
        context_ = fmt::format("tensor '{}'", printable(name));
        if (has_control_bytes(name)) return bad_input("{}: {} has control characters in its name", where_, context_);
        if (!tensor_names_.emplace(name, out_.tensors.size()).second)
            return bad_input("{}: {} occurs twice", where_, context_);

        TensorView tensor;
        tensor.info.name = name;
        FR_TRY(read_shape(tensor.info.shape));
        std::uint32_t type_id = 0;
        FR_TRY(read(type_id));
        const std::optional<DType> type = dtype_from_gguf_id(type_id);
        if (!type)
            return bad_input(
                "{}: {} has the unsupported type {}, expected F32, F16, BF16, Q*_0, Q*_1, Q*_K, IQ4_* or MXFP4", where_,
                context_, tensor_type_text(type_id));
        tensor.info.type = *type;
        FR_TRY(check_size(tensor.info));
        std::uint64_t offset = 0;
        FR_TRY(read(offset));
        offsets_.push_back(offset);
        out_.tensors.push_back(std::move(tensor));
        return {};
    }

    // The file lists the contiguous dimension first, we the outermost.
    Status read_shape(std::vector<std::int64_t>& shape) {
        std::uint32_t dims = 0;
        FR_TRY(read(dims));
        if (dims < 1 || dims > kMaxGgufDims)
            return bad_input("{}: {} has {} dimensions, expected 1 to {}", where_, context_, dims, kMaxGgufDims);
        shape.resize(dims);
        for (std::uint32_t i = 0; i < dims; ++i) {
            std::uint64_t extent = 0;
            FR_TRY(read(extent));
            if (extent < 1 || extent > static_cast<std::uint64_t>(INT64_MAX))
                return bad_input("{}: {}: dimension {} is {}, expected 1 to {}", where_, context_, i, extent,
                                 INT64_MAX);
            shape[dims - 1 - i] = static_cast<std::int64_t>(extent);
        }
        return {};
    }

    Status check_size(const TensorInfo& info) const {
        const DTypeInfo& type = dtype_info(info.type);
        if (info.cols() % type.block_elements != 0)
            return bad_input("{}: {}: rows of {} elements, but {} comes in blocks of {}", where_, context_, info.cols(),
                             type.name, type.block_elements);
        std::int64_t product = type.block_bytes;  // of elements x block_bytes, which bounds both elements and bytes
        for (const std::int64_t extent : info.shape)
            if (__builtin_mul_overflow(product, extent, &product))
                return bad_input("{}: {}: shape {} overflows 64 bits", where_, context_, shape_text(info.shape));
        return {};
    }

    Status place_tensors() {
        if (out_.tensors.empty()) return {};  // a tokenizer-only file may end without padding
        const std::uint64_t size = reader_.size();
        const std::uint64_t data_start = (reader_.offset() + alignment_ - 1) / alignment_ * alignment_;
        for (std::size_t i = 0; i < out_.tensors.size(); ++i) {
            TensorView& tensor = out_.tensors[i];
            const auto length = static_cast<std::uint64_t>(tensor.info.bytes());
            if (offsets_[i] % alignment_ != 0)
                return bad_input("{}: tensor '{}': offset {} is not a multiple of the alignment {}", where_,
                                 printable(tensor.info.name), offsets_[i], alignment_);
            std::uint64_t end = 0;
            if (__builtin_add_overflow(data_start, offsets_[i], &end) || __builtin_add_overflow(end, length, &end))
                return bad_input("{}: tensor '{}': offset {} with {} bytes overflows 64 bits", where_,
                                 printable(tensor.info.name), offsets_[i], length);
            if (end > size)
                return bad_input("{}: tensor '{}': data ends at byte {}, file has {} bytes", where_,
                                 printable(tensor.info.name), end, size);
            tensor.data = bytes_.subspan(static_cast<std::size_t>(end - length), static_cast<std::size_t>(length));
        }
        return {};
    }

    Status check_overlaps() const {
        std::vector<const TensorView*> order;
        order.reserve(out_.tensors.size());
        for (const TensorView& tensor : out_.tensors) order.push_back(&tensor);
        std::ranges::sort(order, {}, [](const TensorView* tensor) { return tensor->data.data(); });
        for (std::size_t i = 1; i < order.size(); ++i) {
            const std::byte* previous_end = order[i - 1]->data.data() + order[i - 1]->data.size();
            if (order[i]->data.data() < previous_end)
                return bad_input(
                    "{}: tensors '{}' and '{}' overlap: the first ends at byte {}, the second starts at {}", where_,
                    printable(order[i - 1]->info.name), printable(order[i]->info.name), previous_end - bytes_.data(),
                    order[i]->data.data() - bytes_.data());
        }
        return {};
    }

    Result<std::string_view> read_string(std::uint64_t max_bytes) {
        std::uint64_t length = 0;
        FR_TRY(read(length));
        if (length > reader_.remaining()) return truncated(length);
        if (length > max_bytes)
            return bad_input("{}: {} is {} bytes long, at most {} are allowed", where_, context_, length, max_bytes);
        std::span<const std::byte> text;
        reader_.take(length, text);
        return as_text(text);
    }

    template <typename T>
    Status read(T& value) {
        if (!reader_.read(value)) return truncated(sizeof(T));
        return {};
    }

    std::unexpected<Error> truncated(std::uint64_t needed) const {
        return bad_input("{}: the file ends inside {}: {} bytes needed at byte {}, file has {} bytes", where_, context_,
                         needed, reader_.offset(), reader_.size());
    }

    std::span<const std::byte> bytes_;
    ByteReader reader_;
    std::string_view where_;
    std::string context_;  // what is being read, for errors
    ParsedGguf out_;
    std::uint64_t tensor_count_ = 0;
    std::uint64_t metadata_count_ = 0;
    std::uint64_t alignment_ = kDefaultGgufAlignmentBytes;
    std::vector<std::uint64_t> offsets_;  // [tensors], from the start of the data
    std::map<std::string_view, std::size_t> tensor_names_;
};

}  // namespace

Result<ParsedGguf> parse_gguf(std::span<const std::byte> bytes, std::string_view where) {
    return Parser(bytes, where).run();
}

std::string_view gguf_type_name(GgufType type) {
    constexpr std::array<std::string_view, 13> kNames = {"uint8",  "int8",    "uint16", "int16",  "uint32",
                                                         "int32",  "float32", "bool",   "string", "array",
                                                         "uint64", "int64",   "float64"};
    return kNames[static_cast<std::size_t>(type)];
}

std::string gguf_type_text(const GgufValue& value) {
    if (const auto* array = std::get_if<GgufArray>(&value.value))
        return fmt::format("array of {} {}", array->count, gguf_type_name(array->element_type));
    return std::string(gguf_type_name(value.type));
}

std::uint64_t gguf_type_bytes(GgufType type) {
    constexpr std::array<std::uint64_t, 13> kBytes = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    return kBytes[static_cast<std::size_t>(type)];
}

}  // namespace frontier

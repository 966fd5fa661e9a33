// Writing GGUF v3: the file is made beside its final name and renamed when complete.
#include <algorithm>
#include <bit>
#include <set>

#include "formats/gguf.h"
#include "formats/gguf_parse.h"
#include "formats/printable.h"
#include "platform/pending_file.h"

namespace frontier {
namespace {

constexpr std::uint64_t kAlignment = kDefaultGgufAlignmentBytes;

std::uint64_t aligned(std::uint64_t bytes) {
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

template <typename T>
void append(std::string& out, T value) {
    static_assert(std::endian::native == std::endian::little);
    out.append(reinterpret_cast<const char*>(&value), sizeof(T));
}

void append_text(std::string& out, std::string_view text) {
    append(out, static_cast<std::uint64_t>(text.size()));
    out.append(text);
}

void append_type(std::string& out, GgufType type) {
    append(out, static_cast<std::uint32_t>(type));
}

template <typename T>
std::string encoded(GgufType type, T value) {
    std::string out;
    append_type(out, type);
    append(out, value);
    return out;
}

template <typename T>
std::string encoded_array(GgufType element_type, const std::vector<T>& values) {
    std::string out;
    append_type(out, GgufType::kArray);
    append_type(out, element_type);
    append(out, static_cast<std::uint64_t>(values.size()));
    for (const T& value : values) {
        if constexpr (std::is_arithmetic_v<T>)
            append(out, value);
        else
            append_text(out, value);
    }
    return out;
}

Status check_tensor(const TensorInfo& info, const std::string& path) {
    const auto bad = [&](std::string_view what) {
        return fail(ErrorCode::kFailed, "cannot write {}: tensor '{}': {}", path, printable(info.name), what);
    };
    if (info.name.empty() || info.name.size() > kMaxGgufTensorNameBytes || has_control_bytes(info.name))
        return bad("the name is empty, too long or holds control characters");
    if (info.shape.empty() || info.shape.size() > kMaxGgufDims) return bad("the format holds 1 to 4 dimensions");
    std::int64_t product = dtype_info(info.type).block_bytes;
    for (const std::int64_t extent : info.shape)
        if (extent < 1 || __builtin_mul_overflow(product, extent, &product))
            return bad(fmt::format("shape {} is empty or overflows", shape_text(info.shape)));
    if (info.cols() % dtype_info(info.type).block_elements != 0)
        return bad(fmt::format("rows of {} elements do not fill blocks of {}", info.cols(), dtype_name(info.type)));
    return {};
}

}  // namespace

void GgufWriter::add_string(std::string key, std::string value) {
    std::string out;
    append_type(out, GgufType::kString);
    append_text(out, value);
    entries_.emplace_back(std::move(key), std::move(out));
}

void GgufWriter::add_uint32(std::string key, std::uint32_t value) {
    entries_.emplace_back(std::move(key), encoded(GgufType::kUint32, value));
}

void GgufWriter::add_float32(std::string key, float value) {
    entries_.emplace_back(std::move(key), encoded(GgufType::kFloat32, value));
}

void GgufWriter::add_bool(std::string key, bool value) {
    entries_.emplace_back(std::move(key), encoded(GgufType::kBool, static_cast<std::uint8_t>(value)));
}

void GgufWriter::add_strings(std::string key, std::vector<std::string> values) {
    entries_.emplace_back(std::move(key), encoded_array(GgufType::kString, values));
}

void GgufWriter::add_floats(std::string key, std::vector<float> values) {
    entries_.emplace_back(std::move(key), encoded_array(GgufType::kFloat32, values));
}

void GgufWriter::add_int32s(std::string key, std::vector<std::int32_t> values) {
    entries_.emplace_back(std::move(key), encoded_array(GgufType::kInt32, values));
}

void GgufWriter::add_tensor(TensorInfo info) {
    tensors_.push_back(std::move(info));
}

Result<std::string> GgufWriter::header(const std::string& path, std::uint64_t& data_bytes) const {
    std::string out = "GGUF";
    append(out, std::uint32_t{3});
    append(out, static_cast<std::uint64_t>(tensors_.size()));
    append(out, static_cast<std::uint64_t>(entries_.size()));
    std::set<std::string_view> seen;
    for (const auto& [key, value] : entries_) {
        if (key.empty() || key.size() > kMaxGgufKeyBytes || has_control_bytes(key) || key == "general.alignment" ||
            !seen.insert(key).second)
            return fail(ErrorCode::kFailed, "cannot write {}: bad or repeated metadata key '{}'", path, printable(key));
        append_text(out, key);
        out += value;
    }
    seen.clear();
    data_bytes = 0;
    for (const TensorInfo& info : tensors_) {
        FR_TRY(check_tensor(info, path));
        if (!seen.insert(info.name).second)
            return fail(ErrorCode::kFailed, "cannot write {}: tensor '{}' was added twice", path, printable(info.name));
        append_text(out, info.name);
        append(out, static_cast<std::uint32_t>(info.shape.size()));
        for (auto extent = info.shape.rbegin(); extent != info.shape.rend(); ++extent)
            append(out, static_cast<std::uint64_t>(*extent));
        append(out, dtype_info(info.type).gguf_id);
        append(out, data_bytes);
        // llama.cpp wants each tensor to start where the previous one's padding ends, the last one padded as well.
        data_bytes += aligned(static_cast<std::uint64_t>(info.bytes()));
        if (data_bytes > static_cast<std::uint64_t>(INT64_MAX) / 2)
            return fail(ErrorCode::kFailed, "cannot write {}: the tensors exceed {} bytes", path, INT64_MAX / 2);
    }
    out.resize(aligned(out.size()), '\0');
    return out;
}

Status GgufWriter::write(const std::string& path, const Producer& produce) const {
    std::uint64_t data_bytes = 0;
    FR_ASSIGN(const std::string head, header(path, data_bytes));
    PendingFile file(path);
    FR_TRY(file.create(head.size() + data_bytes));
    FR_TRY(file.write(std::as_bytes(std::span(head))));
    constexpr std::array<std::byte, kAlignment> kZeros{};
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
        FR_ASSIGN(const std::span<const std::byte> data, produce(i));
        const auto expected = static_cast<std::size_t>(tensors_[i].bytes());
        if (data.size() != expected)
            return fail(ErrorCode::kFailed, "cannot write {}: tensor '{}' has {} bytes, {} were produced", path,
                        printable(tensors_[i].name), expected, data.size());
        FR_TRY(file.write(data));
        FR_TRY(file.write(std::span(kZeros).first(aligned(expected) - expected)));
    }
    return file.commit();
}

}  // namespace frontier

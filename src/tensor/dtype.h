// Element and block types of weights, as the GGUF specification (ggml/docs/gguf.md) and safetensors define them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace frontier {

enum class DType : std::uint8_t {
    kF32,
    kF16,
    kBF16,
    kQ4_0,
    kQ4_1,
    kQ5_0,
    kQ5_1,
    kQ8_0,
    kQ2_K,
    kQ3_K,
    kQ4_K,
    kQ5_K,
    kQ6_K,
    kIQ4_NL,
    kIQ4_XS,
    kMXFP4,
    kCount
};
inline constexpr int kDTypeCount = static_cast<int>(DType::kCount);

struct DTypeInfo {
    DType type;
    std::string_view name;        // as llama.cpp spells it: "Q4_K", "BF16"
    std::int64_t block_elements;  // consecutive elements of one row that share a block
    std::int64_t block_bytes;
    std::uint32_t gguf_id;  // ggml_type in a GGUF file
    bool quantized;
};

const DTypeInfo& dtype_info(DType type);
inline std::string_view dtype_name(DType type) {
    return dtype_info(type).name;
}
std::optional<DType> dtype_from_name(std::string_view name);  // case-insensitive
std::optional<DType> dtype_from_gguf_id(std::uint32_t id);

// Bytes of `elements` consecutive elements; `elements` must be a multiple of the block.
inline std::int64_t row_bytes(DType type, std::int64_t elements) {
    const DTypeInfo& info = dtype_info(type);
    return elements / info.block_elements * info.block_bytes;
}

}  // namespace frontier

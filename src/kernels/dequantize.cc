// Dequantisation: the dispatcher, the plain floats and the 32-element block types.
#include <bit>
#include <limits>

#include "kernels/block_formats.h"
#include "kernels/packing.h"

namespace frontier {
namespace {

// Elements i and 16 + i of 32 are the low and high nibble of byte i in all of these.
template <typename Value>
void nibble_block(const std::byte* nibbles, float* out, Value value) {
    for (int i = 0; i < 16; ++i) {
        out[i] = value(u8_at(nibbles, i) & 15U, i);
        out[16 + i] = value(u8_at(nibbles, i) >> 4 & 15U, 16 + i);
    }
}

void dequantize_f32(const std::byte* block, float* out) {
    std::memcpy(out, block, sizeof(float));
}

void dequantize_f16(const std::byte* block, float* out) {
    *out = f16_at(block, 0);
}

void dequantize_bf16(const std::byte* block, float* out) {
    *out = to_f32(BF16{u16_at(block, 0)});
}

void dequantize_q4_0(const std::byte* block, float* out) {
    const float d = f16_at(block, 0);
    nibble_block(block + 2, out, [d](unsigned q, int) { return static_cast<float>(static_cast<int>(q) - 8) * d; });
}

void dequantize_q4_1(const std::byte* block, float* out) {
    const float d = f16_at(block, 0);
    const float m = f16_at(block, 2);
    nibble_block(block + 4, out, [d, m](unsigned q, int) { return static_cast<float>(q) * d + m; });
}

void dequantize_q5_0(const std::byte* block, float* out) {
    const float d = f16_at(block, 0);
    const std::uint32_t high = u32_at(block, 2);
    nibble_block(block + 6, out, [d, high](unsigned q, int i) {
        return static_cast<float>(static_cast<int>(q | (high >> i & 1U) << 4) - 16) * d;
    });
}

void dequantize_q5_1(const std::byte* block, float* out) {
    const float d = f16_at(block, 0);
    const float m = f16_at(block, 2);
    const std::uint32_t high = u32_at(block, 4);
    nibble_block(block + 8, out,
                 [d, m, high](unsigned q, int i) { return static_cast<float>(q | (high >> i & 1U) << 4) * d + m; });
}

void dequantize_q8_0(const std::byte* block, float* out) {
    const float d = f16_at(block, 0);
    for (int i = 0; i < 32; ++i) out[i] = static_cast<float>(i8_at(block, 2 + i)) * d;
}

void dequantize_iq4_nl(const std::byte* block, float* out) {
    const float d = f16_at(block, 0);
    nibble_block(block + 2, out, [d](unsigned q, int) { return d * static_cast<float>(kIq4Levels[q]); });
}

// E2M1 values doubled, so that they are integers; the scale is halved in turn.
constexpr std::int8_t kDoubledE2M1[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

// 2^(e - 128): half the E8M0 scale 2^(e - 127). 255 is the format's NaN (ggml takes it for 2^127, but no quantiser
// writes it).
float half_e8m0(std::uint8_t e) {
    if (e == 255) return std::numeric_limits<float>::quiet_NaN();
    if (e < 2) return std::bit_cast<float>(0x00200000U << e);  // subnormal
    return std::bit_cast<float>((e - 1U) << 23);
}

void dequantize_mxfp4(const std::byte* block, float* out) {
    const float d = half_e8m0(u8_at(block, 0));
    nibble_block(block + 1, out, [d](unsigned q, int) { return d * static_cast<float>(kDoubledE2M1[q]); });
}

template <void (*block_fn)(const std::byte*, float*)>
void dequantize_blocks(DType type, const std::byte* data, std::int64_t elements, float* out) {
    const DTypeInfo& info = dtype_info(type);
    for (std::int64_t i = 0; i < elements; i += info.block_elements) {
        block_fn(data, out + i);
        data += info.block_bytes;
    }
}

// Set bits of `exponent` that are all ones in a NaN or an infinity. No early exit: nearly all data is finite, and the
// plain loop vectorises.
template <typename Word>
bool words_are_finite(const std::byte* p, std::int64_t stride_bytes, std::int64_t count, Word exponent) {
    unsigned bad = 0;
    for (std::int64_t i = 0; i < count; ++i) {
        Word word;
        std::memcpy(&word, p + i * stride_bytes, sizeof(Word));
        bad |= static_cast<unsigned>((word & exponent) == exponent);
    }
    return bad == 0;
}

// Whether the f16 at `offset` of every block is finite.
bool scales_are_finite(DType type, const std::byte* data, std::int64_t elements, int offset) {
    const DTypeInfo& info = dtype_info(type);
    return words_are_finite<std::uint16_t>(data + offset, info.block_bytes, elements / info.block_elements, 0x7C00U);
}

// E8M0 exponents whose largest value, 6 * 2^(e - 127), still fits f32.
bool mxfp4_is_finite(const std::byte* data, std::int64_t elements) {
    bool finite = true;
    for (std::int64_t i = 0; i < elements / 32; ++i) finite = finite && u8_at(data, 17 * i) <= 252;
    return finite;
}

}  // namespace

void dequantize_row(DType type, const std::byte* data, std::int64_t elements, float* out) {
    switch (type) {
        case DType::kF32:
            return dequantize_blocks<dequantize_f32>(type, data, elements, out);
        case DType::kF16:
            return dequantize_blocks<dequantize_f16>(type, data, elements, out);
        case DType::kBF16:
            return dequantize_blocks<dequantize_bf16>(type, data, elements, out);
        case DType::kQ4_0:
            return dequantize_blocks<dequantize_q4_0>(type, data, elements, out);
        case DType::kQ4_1:
            return dequantize_blocks<dequantize_q4_1>(type, data, elements, out);
        case DType::kQ5_0:
            return dequantize_blocks<dequantize_q5_0>(type, data, elements, out);
        case DType::kQ5_1:
            return dequantize_blocks<dequantize_q5_1>(type, data, elements, out);
        case DType::kQ8_0:
            return dequantize_blocks<dequantize_q8_0>(type, data, elements, out);
        case DType::kQ2_K:
            return dequantize_blocks<dequantize_q2_k>(type, data, elements, out);
        case DType::kQ3_K:
            return dequantize_blocks<dequantize_q3_k>(type, data, elements, out);
        case DType::kQ4_K:
            return dequantize_blocks<dequantize_q4_k>(type, data, elements, out);
        case DType::kQ5_K:
            return dequantize_blocks<dequantize_q5_k>(type, data, elements, out);
        case DType::kQ6_K:
            return dequantize_blocks<dequantize_q6_k>(type, data, elements, out);
        case DType::kIQ4_NL:
            return dequantize_blocks<dequantize_iq4_nl>(type, data, elements, out);
        case DType::kIQ4_XS:
            return dequantize_blocks<dequantize_iq4_xs>(type, data, elements, out);
        case DType::kMXFP4:
            return dequantize_blocks<dequantize_mxfp4>(type, data, elements, out);
        case DType::kCount:
            break;
    }
}

bool row_is_finite(DType type, const std::byte* data, std::int64_t elements) {
    switch (type) {
        case DType::kF32:
            return words_are_finite<std::uint32_t>(data, 4, elements, 0x7F800000U);
        case DType::kF16:
            return words_are_finite<std::uint16_t>(data, 2, elements, 0x7C00U);
        case DType::kBF16:
            return words_are_finite<std::uint16_t>(data, 2, elements, 0x7F80U);
        case DType::kQ4_0:
        case DType::kQ5_0:
        case DType::kQ8_0:
        case DType::kIQ4_NL:
        case DType::kIQ4_XS:
            return scales_are_finite(type, data, elements, 0);
        case DType::kQ4_1:
        case DType::kQ5_1:
        case DType::kQ4_K:
        case DType::kQ5_K:
            return scales_are_finite(type, data, elements, 0) && scales_are_finite(type, data, elements, 2);
        case DType::kQ2_K:
            return scales_are_finite(type, data, elements, 80) && scales_are_finite(type, data, elements, 82);
        case DType::kQ3_K:
            return scales_are_finite(type, data, elements, 108);
        case DType::kQ6_K:
            return scales_are_finite(type, data, elements, 208);
        case DType::kMXFP4:
            return mxfp4_is_finite(data, elements);
        case DType::kCount:
            break;
    }
    return false;
}

}  // namespace frontier

// Field access shared by the code that reads file blocks. Internal to src/kernels, baseline code only.
//
// The formats are those of ggml (ggml-common.h, ggml-quants.c); offsets are bytes from the start of a block.
//   Q4_0    d 0, nibbles 2            Q4_1  d 0, m 2, nibbles 4
//   Q5_0    d 0, high 2, nibbles 6    Q5_1  d 0, m 2, high 4, nibbles 8      (high: bit i belongs to element i)
//   Q8_0    d 0, i8 2                 IQ4_NL  d 0, nibbles 2                 MXFP4  e 0, nibbles 1
//   Q2_K    scale|min nibbles 0, quants 16, d 80, dmin 82
//   Q3_K    high bits 0, quants 32, scales 96, d 108
//   Q4_K    d 0, dmin 2, scales 4, nibbles 16       Q5_K  d 0, dmin 2, scales 4, high 16, nibbles 48
//   Q6_K    low nibbles 0, high pairs 128, i8 scales 192, d 208
//   IQ4_XS  d 0, u16 scales_h 2, scales_l 4, nibbles 8
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "tensor/half.h"

namespace frontier {

inline std::uint8_t u8_at(const std::byte* p, std::int64_t offset) {
    return static_cast<std::uint8_t>(p[offset]);
}
inline std::int8_t i8_at(const std::byte* p, std::int64_t offset) {
    return static_cast<std::int8_t>(p[offset]);
}
inline std::uint16_t u16_at(const std::byte* p, std::int64_t offset) {
    std::uint16_t x;
    std::memcpy(&x, p + offset, 2);
    return x;
}
inline std::uint32_t u32_at(const std::byte* p, std::int64_t offset) {
    std::uint32_t x;
    std::memcpy(&x, p + offset, 4);
    return x;
}
inline float f16_at(const std::byte* p, std::int64_t offset) {
    return to_f32(F16{u16_at(p, offset)});
}

// Sub-block scale and minimum `j` (0..7) of Q4_K and Q5_K, 6 bits each in 12 bytes: the first four of either kind in
// the low bits of bytes j and 4 + j; the last four in the nibbles of bytes 8.. with their top bits above the first
// four.
struct ScaleMin {
    std::uint8_t scale;
    std::uint8_t min;
};
inline ScaleMin scale_min_at(const std::byte* scales, int j) {
    if (j < 4)
        return {static_cast<std::uint8_t>(u8_at(scales, j) & 63), static_cast<std::uint8_t>(u8_at(scales, j + 4) & 63)};
    const unsigned low = u8_at(scales, j + 4);
    return {static_cast<std::uint8_t>((low & 15) | u8_at(scales, j - 4) >> 6 << 4),
            static_cast<std::uint8_t>(low >> 4 | u8_at(scales, j) >> 6 << 4)};
}

// Quant `k` (0..255) of a Q4_K block: sub-blocks 2 i and 2 i + 1 are the low and high nibbles of bytes 32 i.. .
inline unsigned q4_k_quant(const std::byte* nibbles, int k) {
    return u8_at(nibbles, k / 64 * 32 + k % 32) >> (k / 32 % 2 * 4) & 15U;
}

// Quant `k` (0..255) of a Q6_K block, 0..63. Each half of 128 elements takes 64 bytes of low nibbles and 32 of pairs:
// its elements 0..63 are the low nibbles, 64..127 the high ones; pair byte l serves l, l + 32, l + 64, l + 96.
inline unsigned q6_k_quant(const std::byte* block, int k) {
    const int half = k / 128;
    const int r = k % 128;
    const unsigned low = u8_at(block, half * 64 + r % 64) >> (r / 64 * 4) & 15U;
    const unsigned high = u8_at(block, 128 + half * 32 + r % 32) >> (r / 32 * 2) & 3U;
    return low | high << 4;
}

// The K types and IQ4_XS, 256 elements a block. Defined in dequantize_k.cc.
void dequantize_q2_k(const std::byte* block, float* out);
void dequantize_q3_k(const std::byte* block, float* out);
void dequantize_q4_k(const std::byte* block, float* out);
void dequantize_q5_k(const std::byte* block, float* out);
void dequantize_q6_k(const std::byte* block, float* out);
void dequantize_iq4_xs(const std::byte* block, float* out);

// The levels of IQ4_NL and IQ4_XS.
inline constexpr std::int8_t kIq4Levels[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                               1,    13,   25,  38,  53,  69,  89,  113};

}  // namespace frontier

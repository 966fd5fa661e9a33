// Dequantisation of the 256-element block types. The order of the multiplications is ggml's, so that results agree to
// the last bit.
#include "kernels/block_formats.h"

namespace frontier {

void dequantize_q2_k(const std::byte* block, float* out) {
    const float d = f16_at(block, 80);
    const float dmin = f16_at(block, 82);
    for (int group = 0; group < 16; ++group) {  // 16 elements
        const unsigned sc = u8_at(block, group);
        const float scale = d * static_cast<float>(sc & 15);
        const float min = dmin * static_cast<float>(sc >> 4);
        // Each half of 128 elements has 32 bytes; pairs of groups share them, two bits further up each time.
        const int first = 16 + group / 8 * 32 + group % 2 * 16;
        const int shift = group / 2 % 4 * 2;
        for (int i = 0; i < 16; ++i) *out++ = scale * static_cast<float>(u8_at(block, first + i) >> shift & 3) - min;
    }
}

void dequantize_q3_k(const std::byte* block, float* out) {
    const float d = f16_at(block, 108);
    const std::byte* scales = block + 96;
    for (int group = 0; group < 16; ++group) {
        // 6-bit scales: low nibbles in 8 bytes (groups 0..7 low, 8..15 high), top pairs in the last 4 bytes.
        const int low = u8_at(scales, group % 8) >> (group / 8 * 4) & 15;
        const int high = u8_at(scales, 8 + group % 4) >> (group / 4 * 2) & 3;
        const float scale = d * static_cast<float>((low | high << 4) - 32);
        const int first = 32 + group / 8 * 32 + group % 2 * 16;
        const int shift = group / 2 % 4 * 2;
        const int high_first = group % 2 * 16;
        const int high_bit = group / 2;  // a clear high bit subtracts 4
        for (int i = 0; i < 16; ++i) {
            const int q = u8_at(block, first + i) >> shift & 3;
            const int offset = (u8_at(block, high_first + i) >> high_bit & 1) != 0 ? 0 : 4;
            *out++ = scale * static_cast<float>(q - offset);
        }
    }
}

void dequantize_q4_k(const std::byte* block, float* out) {
    const float d = f16_at(block, 0);
    const float dmin = f16_at(block, 2);
    for (int j = 0; j < 8; ++j) {
        const ScaleMin sm = scale_min_at(block + 4, j);
        const float scale = d * static_cast<float>(sm.scale);
        const float min = dmin * static_cast<float>(sm.min);
        for (int i = 0; i < 32; ++i) *out++ = scale * static_cast<float>(q4_k_quant(block + 16, 32 * j + i)) - min;
    }
}

void dequantize_q5_k(const std::byte* block, float* out) {
    const float d = f16_at(block, 0);
    const float dmin = f16_at(block, 2);
    for (int j = 0; j < 8; ++j) {
        const ScaleMin sm = scale_min_at(block + 4, j);
        const float scale = d * static_cast<float>(sm.scale);
        const float min = dmin * static_cast<float>(sm.min);
        for (int i = 0; i < 32; ++i) {
            const unsigned high = u8_at(block, 16 + i) >> j & 1U;
            *out++ = scale * static_cast<float>(q4_k_quant(block + 48, 32 * j + i) | high << 4) - min;
        }
    }
}

void dequantize_q6_k(const std::byte* block, float* out) {
    const float d = f16_at(block, 208);
    for (int k = 0; k < 256; ++k) {
        const float scale = d * static_cast<float>(i8_at(block, 192 + k / 16));
        *out++ = scale * static_cast<float>(static_cast<int>(q6_k_quant(block, k)) - 32);
    }
}

void dequantize_iq4_xs(const std::byte* block, float* out) {
    const float d = f16_at(block, 0);
    const unsigned scales_high = u16_at(block, 2);
    for (int j = 0; j < 8; ++j) {
        const unsigned low = u8_at(block, 4 + j / 2) >> (j % 2 * 4) & 15U;
        const unsigned high = scales_high >> (2 * j) & 3U;
        const float scale = d * static_cast<float>(static_cast<int>(low | high << 4) - 32);
        const std::byte* nibbles = block + 8 + 16 * j;
        for (int i = 0; i < 16; ++i) {
            out[i] = scale * static_cast<float>(kIq4Levels[u8_at(nibbles, i) & 15]);
            out[16 + i] = scale * static_cast<float>(kIq4Levels[u8_at(nibbles, i) >> 4]);
        }
        out += 32;
    }
}

}  // namespace frontier

// Integer kernels in plain C++. The f32 operations below are the contract that every ISA repeats; per block of 32 k,
// with a = the activations' scale and isum an exact integer, and `+=`, `-=` fused (one rounding for product and sum):
//   Q4_0        acc += (d * a) * f32(sum (q - 8) x)
//   Q8_0        acc += (d * a) * f32(sum q x)
//   Q4_K, Q5_K  acc += ((d * scale) * a) * f32(sum q x);  acc -= (dmin * min) * (a * f32(sum x))
//   Q6_K        acc += (d * a) * f32(scale0 * sum (q - 32) x over the first 16 k + scale1 * the same over the last 16)
// d * scale and dmin * min are exact in f32 (11 + 6 bits); every isum is below 2^24, so its conversion is exact too.
#include <bit>

#include "kernels/block_formats.h"
#include "kernels/isa_functions.h"

namespace frontier::scalar {
namespace {

// Activations of one token within one block of 32 k.
struct BlockActivations {
    const std::int8_t* quants;
    float scale;
    float scaled_sum;
    std::int32_t sum;
};

// a * b + c with one rounding, on hosts without the instruction: the product is exact in f64, and a sum rounded to odd
// there (its last bit set when it is inexact) rounds to f32 as the exact sum would (Boldo and Melquiond, "Emulation of
// a FMA and correctly rounded sums", 2008).
float fused(float a, float b, float c) {
    const double product = static_cast<double>(a) * b;
    const double sum = product + c;
    const double c_part = sum - product;
    const double error = (product - (sum - c_part)) + (c - c_part);
    auto bits = std::bit_cast<std::uint64_t>(sum);
    if ((error > 0 || error < 0) && (bits & 1) == 0) bits += (error > 0) == (sum > 0) ? 1 : -1;
    return static_cast<float>(std::bit_cast<double>(bits));
}

// Sum of q * x over nibbles (see packing.h) of 32 k.
std::int32_t nibble_dot(const std::byte* nibbles, int lane, const std::int8_t* x) {
    std::int32_t sum = 0;
    for (int i = 0; i < 16; ++i) {
        const int byte = u8_at(nibbles, i / 4 * 64 + 4 * lane + i % 4);
        sum += (byte & 15) * x[i] + (byte >> 4) * x[16 + i];
    }
    return sum;
}

struct Q4_0 {
    static constexpr int kBlocks = 1;  // of 32 k in one packed block
    static constexpr int kBytes = 288;
    static void add(const std::byte* block, int, int lane, const BlockActivations& x, float& acc) {
        const std::int32_t isum = nibble_dot(block + 32, lane, x.quants) - 8 * x.sum;
        acc = fused(f16_at(block, 2 * lane) * x.scale, static_cast<float>(isum), acc);
    }
};

struct Q8_0 {
    static constexpr int kBlocks = 1;
    static constexpr int kBytes = 544;
    static void add(const std::byte* block, int, int lane, const BlockActivations& x, float& acc) {
        std::int32_t isum = 0;
        for (int i = 0; i < 32; ++i) isum += i8_at(block, 32 + i / 4 * 64 + 4 * lane + i % 4) * x.quants[i];
        acc = fused(f16_at(block, 2 * lane) * x.scale, static_cast<float>(isum), acc);
    }
};

// acc += scaled product, acc -= scaled minimum; `block` begins with the scales and minima of Q4_K and Q5_K.
void add_with_min(const std::byte* block, int j, int lane, const BlockActivations& x, std::int32_t isum, float& acc) {
    const float scale = f16_at(block, 2 * lane) * static_cast<float>(u8_at(block, 64 + 16 * j + lane));
    const float min = f16_at(block, 32 + 2 * lane) * static_cast<float>(u8_at(block, 192 + 16 * j + lane));
    acc = fused(scale * x.scale, static_cast<float>(isum), acc);
    acc = fused(-min, x.scaled_sum, acc);
}

struct Q4_K {
    static constexpr int kBlocks = 8;
    static constexpr int kBytes = 2368;
    static void add(const std::byte* block, int j, int lane, const BlockActivations& x, float& acc) {
        add_with_min(block, j, lane, x, nibble_dot(block + 320 + 256 * j, lane, x.quants), acc);
    }
};

struct Q5_K {
    static constexpr int kBlocks = 8;
    static constexpr int kBytes = 2880;
    static void add(const std::byte* block, int j, int lane, const BlockActivations& x, float& acc) {
        const std::byte* nibbles = block + 320 + 320 * j;
        std::int32_t isum = nibble_dot(nibbles, lane, x.quants);
        for (int i = 0; i < 32; ++i) isum += 16 * (u8_at(nibbles, 256 + 4 * lane + i % 4) >> (i / 4) & 1) * x.quants[i];
        add_with_min(block, j, lane, x, isum, acc);
    }
};

struct Q6_K {
    static constexpr int kBlocks = 8;
    static constexpr int kBytes = 3360;
    static void add(const std::byte* block, int j, int lane, const BlockActivations& x, float& acc) {
        const std::byte* nibbles = block + 288 + 384 * j + 4 * lane;
        std::int32_t group_sum[2] = {0, 0};
        for (int i = 0; i < 32; ++i) {
            const int low = u8_at(nibbles, i % 16 / 4 * 64 + i % 4) >> (i / 16 * 4) & 15;
            const int high = u8_at(nibbles, 256 + i % 8 / 4 * 64 + i % 4) >> (i / 8 * 2) & 3;
            group_sum[i / 16] += ((low | high << 4) - 32) * x.quants[i];
        }
        const std::int32_t isum =
            i8_at(block, 32 + 32 * j + lane) * group_sum[0] + i8_at(block, 48 + 32 * j + lane) * group_sum[1];
        acc = fused(f16_at(block, 2 * lane) * x.scale, static_cast<float>(isum), acc);
    }
};

template <typename Format>
void panel_matmul(const std::byte* panel, const Q8Activations& activations, int tokens, float* out,
                  std::int64_t out_stride) {
    const std::int64_t blocks = activations.cols / kQ8Block;
    for (int t = 0; t < tokens; ++t) {
        const std::int8_t* quants = activations.quants + t * activations.cols;
        const float* scales = activations.scales + t * blocks;
        const float* scaled_sums = activations.scaled_sums + t * blocks;
        const std::int16_t* sums = activations.sums + 2 * t * blocks;
        float acc[kPanelRows] = {};
        for (std::int64_t b = 0; b < blocks; ++b) {
            const BlockActivations x = {quants + b * kQ8Block, scales[b], scaled_sums[b],
                                        sums[2 * b] + sums[2 * b + 1]};
            const std::byte* block = panel + b / Format::kBlocks * Format::kBytes;
            for (int lane = 0; lane < kPanelRows; ++lane)
                Format::add(block, static_cast<int>(b % Format::kBlocks), lane, x, acc[lane]);
        }
        for (int lane = 0; lane < kPanelRows; ++lane) out[t * out_stride + lane] = acc[lane];
    }
}

template <typename Format>
void panels_matmul(const std::byte* panels, int count, const Q8Activations& activations, int tokens, float* out,
                   std::int64_t out_stride) {
    const std::int64_t panel_bytes = activations.cols / (kQ8Block * Format::kBlocks) * Format::kBytes;
    for (int p = 0; p < count; ++p)
        panel_matmul<Format>(panels + p * panel_bytes, activations, tokens, out + p * kPanelRows, out_stride);
}

}  // namespace

void fill_matmul_int8(KernelTable& table) {
    table.int8_panels[static_cast<int>(DType::kQ4_0)] = panels_matmul<Q4_0>;
    table.int8_panels[static_cast<int>(DType::kQ8_0)] = panels_matmul<Q8_0>;
    table.int8_panels[static_cast<int>(DType::kQ4_K)] = panels_matmul<Q4_K>;
    table.int8_panels[static_cast<int>(DType::kQ5_K)] = panels_matmul<Q5_K>;
    table.int8_panels[static_cast<int>(DType::kQ6_K)] = panels_matmul<Q6_K>;
}

}  // namespace frontier::scalar

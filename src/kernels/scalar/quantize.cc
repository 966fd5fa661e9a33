// Int8 activations in plain C++.
#include <bit>
#include <cstring>
#include <limits>

#include "kernels/isa_functions.h"
#include "kernels/quantize_limits.h"

namespace frontier::scalar {
namespace {

// Adding 1.5 * 2^23 leaves the integer nearest to x (ties to even), |x| < 2^22, in the low bits: what cvtps2dq gives.
std::int32_t round_to_int(float x) {
    constexpr float kMagic = 12582912.0F;
    return std::bit_cast<std::int32_t>(x + kMagic) - std::bit_cast<std::int32_t>(kMagic);
}

void quantize_block(const float* x, std::int8_t* quants, float* scale, std::int16_t* sums) {
    // Magnitudes compared as integers: a NaN or an infinity wins over every finite number.
    std::uint32_t max_bits = 0;
    for (int i = 0; i < kQ8Block; ++i) {
        const std::uint32_t bits = std::bit_cast<std::uint32_t>(x[i]) & 0x7FFFFFFFU;
        max_bits = bits > max_bits ? bits : max_bits;
    }
    if (max_bits >= kNotFiniteBits || max_bits < kSmallestScaledBits) {
        std::memset(quants, 0, kQ8Block);
        *scale = max_bits >= kNotFiniteBits ? std::numeric_limits<float>::quiet_NaN() : 0.0F;
        sums[0] = sums[1] = 0;
        return;
    }
    const float max = std::bit_cast<float>(max_bits);
    const float inverse = 127.0F / max;
    *scale = max / 127.0F;
    for (int half = 0; half < 2; ++half) {
        std::int32_t sum = 0;
        for (int i = 16 * half; i < 16 * half + 16; ++i) {
            const std::int32_t q = round_to_int(x[i] * inverse);
            quants[i] = static_cast<std::int8_t>(q);
            sum += q;
        }
        sums[half] = static_cast<std::int16_t>(sum);
    }
}

void quantize_q8(const float* x, const Q8Activations& out) {
    for (std::int64_t b = 0; b < out.cols / kQ8Block; ++b) {
        std::int16_t* sums = out.sums + 2 * b;
        quantize_block(x + b * kQ8Block, out.quants + b * kQ8Block, out.scales + b, sums);
        out.scaled_sums[b] = out.scales[b] * static_cast<float>(sums[0] + sums[1]);
    }
}

}  // namespace

void fill_quantize(KernelTable& table) {
    table.quantize_q8 = quantize_q8;
}

}  // namespace frontier::scalar

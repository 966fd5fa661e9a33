#include "tensor/random_blocks.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "base/rng.h"
#include "tensor/half.h"

namespace frontier {
namespace {

// Uniform integers in [low, low + count).
constexpr double uniform_mean(int low, int count) {
    return low + (count - 1) / 2.0;
}
constexpr double uniform_square(int low, int count) {
    const double m = uniform_mean(low, count);
    return (static_cast<double>(count) * count - 1) / 12.0 + m * m;
}

// The second moment of d * s * q - m_factor * d * m with independent uniform s, q, m, in units of d^2; m_factor is
// chosen as E[q] so that the mean vanishes (s and m share one range).
constexpr double with_minimum(int scale_count, int quant_count) {
    const double q = uniform_mean(0, quant_count);
    const double s = uniform_mean(0, scale_count);
    const double s2 = uniform_square(0, scale_count);
    return s2 * uniform_square(0, quant_count) + q * q * s2 - 2 * q * s * q * s;
}

constexpr std::array<int, 16> kIq4Values = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
constexpr double iq4_square() {
    double sum = 0;
    for (const int v : kIq4Values) sum += static_cast<double>(v) * v;
    return sum / 16;
}

// How a block of uniformly random bytes becomes a sensible one: the f16 scale (and minimum) is overwritten.
struct Recipe {
    int d_offset;          // bytes from the block's start
    int min_offset;        // -1: none
    double min_factor;     // minimum = min_factor * d
    double second_moment;  // of the values, in units of d^2
};

// Types without a minimum have quants that are not quite centred; a random sign of d restores the mean of 0.
Recipe recipe(DType type) {
    switch (type) {
        case DType::kQ4_0:
            return {0, -1, 0, uniform_square(-8, 16)};
        case DType::kQ4_1:
            return {0, 2, -7.5, uniform_square(0, 16) - 7.5 * 7.5};
        case DType::kQ5_0:
            return {0, -1, 0, uniform_square(-16, 32)};
        case DType::kQ5_1:
            return {0, 2, -15.5, uniform_square(0, 32) - 15.5 * 15.5};
        case DType::kQ8_0:
            return {0, -1, 0, uniform_square(-128, 256)};
        case DType::kQ2_K:
            return {80, 82, 1.5, with_minimum(16, 4)};
        case DType::kQ3_K:
            return {108, -1, 0, uniform_square(-32, 64) * uniform_square(-4, 8)};
        case DType::kQ4_K:
            return {0, 2, 7.5, with_minimum(64, 16)};
        case DType::kQ5_K:
            return {0, 2, 15.5, with_minimum(64, 32)};
        case DType::kQ6_K:
            return {208, -1, 0, uniform_square(-128, 256) * uniform_square(-32, 64)};
        case DType::kIQ4_NL:
            return {0, -1, 0, iq4_square()};
        case DType::kIQ4_XS:
            return {0, -1, 0, uniform_square(-32, 64) * iq4_square()};
        default:
            return {0, -1, 0, 1};
    }
}

// Scales vary by +-25% between blocks, so that a mix-up of blocks shows in tests.
constexpr int kScaleVariants = 32;
struct ScaleTable {
    std::array<std::uint16_t, kScaleVariants> d;
    std::array<std::uint16_t, kScaleVariants> min;
};

std::uint16_t finite_f16(double x) {
    return to_f16(static_cast<float>(std::clamp(x, -65504.0, 65504.0))).bits;
}

ScaleTable scale_table(const Recipe& r, float stddev) {
    std::array<double, kScaleVariants> factor;
    double square = 0;
    for (int i = 0; i < kScaleVariants; ++i) {
        factor[i] = 0.75 + 0.5 * i / (kScaleVariants - 1);
        square += factor[i] * factor[i] / kScaleVariants;
    }
    const double base = stddev / std::sqrt(r.second_moment * square);
    ScaleTable table;
    for (int i = 0; i < kScaleVariants; ++i) {
        table.d[i] = finite_f16(base * factor[i]);
        table.min[i] = finite_f16(base * factor[i] * r.min_factor);
    }
    return table;
}

void fill_bytes(const RandomStream& random, std::uint64_t counter, std::byte* out, std::int64_t bytes) {
    for (; bytes >= 8; bytes -= 8, out += 8) {
        const std::uint64_t word = random.at(counter++);
        std::memcpy(out, &word, 8);
    }
    const std::uint64_t word = random.at(counter);
    std::memcpy(out, &word, static_cast<std::size_t>(bytes));
}

void fill_scaled(DType type, const RandomStream& random, std::int64_t first, std::int64_t blocks, float stddev,
                 std::byte* out) {
    const Recipe r = recipe(type);
    const ScaleTable table = scale_table(r, stddev);
    const std::int64_t bytes = dtype_info(type).block_bytes;
    const auto words = static_cast<std::uint64_t>(bytes / 8 + 2);  // the last one picks the scale
    for (std::int64_t b = 0; b < blocks; ++b, out += bytes) {
        const std::uint64_t counter = static_cast<std::uint64_t>(first + b) * words;
        fill_bytes(random, counter, out, bytes);
        const std::uint64_t pick = random.at(counter + words - 1);
        const std::size_t variant = pick % kScaleVariants;
        const auto sign = static_cast<std::uint16_t>(r.min_offset < 0 ? (pick >> 63) << 15 : 0);
        const auto d = static_cast<std::uint16_t>(table.d[variant] ^ sign);
        std::memcpy(out + r.d_offset, &d, 2);
        if (r.min_offset >= 0) {
            std::memcpy(out + r.min_offset, &table.min[variant], 2);
        }
    }
}

// The scale is a power of two, d = 2^(e - 128) over quants with mean square 34.25: two neighbouring exponents are
// mixed so that the mean square comes out right.
void fill_mxfp4(const RandomStream& random, std::int64_t first, std::int64_t blocks, float stddev, std::byte* out) {
    const double target = std::max(static_cast<double>(stddev), 1e-30) / std::sqrt(34.25);
    const int floor_exponent = std::clamp(static_cast<int>(std::floor(std::log2(target))), -126, 124);
    const double ratio = target / std::ldexp(1.0, floor_exponent);
    const double upper_share = std::clamp((ratio * ratio - 1) / 3, 0.0, 1.0);  // of blocks that get exponent + 1
    const auto threshold = static_cast<std::uint64_t>(upper_share * 0x1p32);
    for (std::int64_t b = 0; b < blocks; ++b, out += 17) {
        const std::uint64_t counter = static_cast<std::uint64_t>(first + b) * 3;
        fill_bytes(random, counter, out + 1, 16);
        const bool upper = (random.at(counter + 2) >> 32) < threshold;
        out[0] = static_cast<std::byte>(floor_exponent + 128 + (upper ? 1 : 0));
    }
}

// Sum of four 16-bit uniforms (Irwin-Hall): mean 2 * 65535, variance 4 * (65536^2 - 1) / 12.
float nearly_normal(std::uint64_t word, float factor) {
    const auto sum =
        static_cast<std::int32_t>((word & 0xFFFF) + ((word >> 16) & 0xFFFF) + ((word >> 32) & 0xFFFF) + (word >> 48));
    return static_cast<float>(sum - 2 * 65535) * factor;
}

template <typename T, typename Convert>
void fill_floats(const RandomStream& random, std::int64_t first, std::int64_t count, float stddev, std::byte* out,
                 Convert convert) {
    const auto factor = static_cast<float>(stddev / std::sqrt((65536.0 * 65536.0 - 1) / 3));
    for (std::int64_t i = 0; i < count; ++i) {
        const T value = convert(nearly_normal(random.at(static_cast<std::uint64_t>(first + i)), factor));
        std::memcpy(out + i * static_cast<std::int64_t>(sizeof(T)), &value, sizeof(T));
    }
}

}  // namespace

void fill_random_blocks(DType type, std::uint64_t seed, std::uint64_t stream, std::int64_t first_block,
                        std::int64_t blocks, float stddev, std::byte* out) {
    const RandomStream random(seed, stream);
    switch (type) {
        case DType::kF32:
            return fill_floats<float>(random, first_block, blocks, stddev, out, [](float x) { return x; });
        case DType::kF16:
            return fill_floats<F16>(random, first_block, blocks, stddev, out,
                                    [](float x) { return to_f16(std::clamp(x, -65504.0F, 65504.0F)); });
        case DType::kBF16:
            return fill_floats<BF16>(random, first_block, blocks, stddev, out, [](float x) { return to_bf16(x); });
        case DType::kMXFP4:
            return fill_mxfp4(random, first_block, blocks, stddev, out);
        default:
            return fill_scaled(type, random, first_block, blocks, stddev, out);
    }
}

}  // namespace frontier

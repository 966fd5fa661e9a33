// Scalar conversions between f32 and the 16-bit floats. Exact in the widening direction; round to nearest even in the
// narrowing one, as the hardware instructions do. Vector code uses the instructions; both give the same bits.
#pragma once

#include <bit>
#include <cstdint>

namespace frontier {

struct F16 {
    std::uint16_t bits;
};
struct BF16 {
    std::uint16_t bits;
};

inline float to_f32(BF16 x) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(x.bits) << 16);
}

inline BF16 to_bf16(float x) {
    const auto u = std::bit_cast<std::uint32_t>(x);
    if ((u & 0x7FFFFFFFU) > 0x7F800000U) return {static_cast<std::uint16_t>((u >> 16) | 0x40U)};  // quiet the NaN
    return {static_cast<std::uint16_t>((u + 0x7FFFU + ((u >> 16) & 1U)) >> 16)};
}

inline float to_f32(F16 x) {
    const std::uint32_t sign = static_cast<std::uint32_t>(x.bits & 0x8000U) << 16;
    const std::uint32_t magnitude = x.bits & 0x7FFFU;
    if (magnitude >= 0x7C00U) {  // infinity and NaN; NaNs come out quiet, as from vcvtph2ps
        const std::uint32_t quiet = magnitude > 0x7C00U ? 0x400000U : 0U;
        return std::bit_cast<float>(sign | 0x7F800000U | (magnitude & 0x3FFU) << 13 | quiet);
    }
    // Shifting the fields into place leaves the exponent 112 too small; the multiplication is exact, also for
    // subnormals, since every f16 value is a normal f32.
    const float scaled = std::bit_cast<float>(magnitude << 13) * 0x1.0p112F;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(scaled) | sign);
}

inline F16 to_f16(float x) {
    const auto u = std::bit_cast<std::uint32_t>(x);
    const auto sign = static_cast<std::uint16_t>((u >> 16) & 0x8000U);
    const std::uint32_t magnitude = u & 0x7FFFFFFFU;
    if (magnitude > 0x7F800000U) return {static_cast<std::uint16_t>(sign | 0x7E00U | ((magnitude >> 13) & 0x3FFU))};
    if (magnitude >= 0x477FF000U) return {static_cast<std::uint16_t>(sign | 0x7C00U)};  // 65520 and above
    if (magnitude < 0x38800000U) {  // below the smallest normal f16: let the adder round at the right bit
        const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
        return {static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3F000000U))};
    }
    const std::uint32_t rounded = magnitude - 0x38000000U + 0xFFFU + ((magnitude >> 13) & 1U);
    return {static_cast<std::uint16_t>(sign | (rounded >> 13))};
}

}  // namespace frontier

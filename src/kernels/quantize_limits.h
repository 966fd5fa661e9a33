// Bounds that every ISA's quantize_q8 shares, as the bits of a magnitude. Internal to src/kernels.
#pragma once

#include <cstdint>

namespace frontier {

inline constexpr std::uint32_t kNotFiniteBits = 0x7F800000U;
// Blocks below 2^-100 become zero: 127 / max must not overflow, and max / 127 must not be subnormal, which vector units
// may treat differently.
inline constexpr std::uint32_t kSmallestScaledBits = (127U - 100U) << 23;

}  // namespace frontier

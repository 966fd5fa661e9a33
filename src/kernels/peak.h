// Loops that do nothing but arithmetic on registers, or nothing but reads: what they reach is the limit that kernels
// are measured against. Call only what the host supports (see cpu_features()).
#pragma once

#include <cstddef>
#include <cstdint>

namespace frontier {

// Runs `iterations` rounds of independent chains, enough of them to cover the latency; returns the operations done (a
// multiply-add is two). *sink receives the sum of the accumulators' 64-bit words: every 32-bit lane holds 60
// (int8), 1.0F (f32), 2.0F (bf16) or 32.0F (bf16 tiles) for each round.
using PeakLoop = double (*)(std::int64_t iterations, std::uint64_t* sink);

// Sums the bytes' 64-bit words as `streams` sequential streams of equal length read in turn. bytes: a multiple of
// streams * kReadStepBytes; data: 64-byte aligned. Returns the sum (mod 2^64).
using ReadLoop = std::uint64_t (*)(const std::byte* data, std::int64_t bytes, int streams);
inline constexpr std::int64_t kReadStepBytes = 256;

namespace scalar {
double peak_f32(std::int64_t iterations, std::uint64_t* sink);   // SSE2 multiply, add
double peak_int8(std::int64_t iterations, std::uint64_t* sink);  // int8 widened, pmaddwd, paddd
std::uint64_t read_words(const std::byte* data, std::int64_t bytes, int streams);
}  // namespace scalar

namespace avx2 {
double peak_f32(std::int64_t iterations, std::uint64_t* sink);   // fused multiply-add
double peak_int8(std::int64_t iterations, std::uint64_t* sink);  // vpmaddubsw, vpmaddwd, vpaddd
std::uint64_t read_words(const std::byte* data, std::int64_t bytes, int streams);
}  // namespace avx2

namespace avx512 {
double peak_f32(std::int64_t iterations, std::uint64_t* sink);
double peak_int8(std::int64_t iterations, std::uint64_t* sink);       // as AVX2, 64 bytes wide
double peak_int8_vnni(std::int64_t iterations, std::uint64_t* sink);  // vpdpbusd; needs avx512_vnni
double peak_bf16(std::int64_t iterations, std::uint64_t* sink);       // vdpbf16ps; needs avx512_bf16
std::uint64_t read_words(const std::byte* data, std::int64_t bytes, int streams);
}  // namespace avx512

namespace amx {
double peak_bf16(std::int64_t iterations, std::uint64_t* sink);  // tdpbf16ps; needs Isa::kAmx
}  // namespace amx

}  // namespace frontier

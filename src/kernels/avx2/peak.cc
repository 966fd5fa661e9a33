// AVX2 and FMA limits. As every file of this folder: nothing outside the anonymous namespace but the entry points.
#include "kernels/peak.h"

#include <immintrin.h>

namespace frontier::avx2 {
namespace {

// Latency 4 or 5 cycles times two FMAs per cycle asks for 10 chains; 12 accumulators and the operands fit into the 16
// registers.
// The accumulators are named one by one because the compiler keeps an array of them in memory.

// Makes the compiler forget what it knows about a register's value, at no cost: otherwise it would compute an invariant
// product once, or one chain for all, since all hold the same value.
template <typename V>
inline __attribute__((always_inline)) void forget(V& value) {
    __asm__ volatile("" : "+x"(value));
}

// The sum of the 64-bit words.
inline __attribute__((always_inline)) std::uint64_t fold(__m256i value) {
    std::uint64_t words[4];
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(words), value);
    std::uint64_t sum = 0;
    for (const std::uint64_t word : words) sum += word;
    return sum;
}

inline __attribute__((always_inline)) __m256i dot(__m256i sum, __m256i& weights, __m256i activations, __m256i ones) {
    forget(weights);
    return _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(weights, activations), ones));
}

}  // namespace

double peak_f32(std::int64_t iterations, std::uint64_t* sink) {
    __m256 s0 = _mm256_setzero_ps(), s1 = _mm256_setzero_ps(), s2 = _mm256_setzero_ps(), s3 = _mm256_setzero_ps(),
           s4 = _mm256_setzero_ps(), s5 = _mm256_setzero_ps(), s6 = _mm256_setzero_ps(), s7 = _mm256_setzero_ps(),
           s8 = _mm256_setzero_ps(), s9 = _mm256_setzero_ps(), s10 = _mm256_setzero_ps(), s11 = _mm256_setzero_ps();
    __m256 a = _mm256_set1_ps(1.0F);
    const __m256 b = _mm256_set1_ps(1.0F);
    for (std::int64_t i = 0; i < iterations; ++i) {
        s0 = _mm256_fmadd_ps(a, b, s0);
        forget(s0);
        s1 = _mm256_fmadd_ps(a, b, s1);
        forget(s1);
        s2 = _mm256_fmadd_ps(a, b, s2);
        forget(s2);
        s3 = _mm256_fmadd_ps(a, b, s3);
        forget(s3);
        s4 = _mm256_fmadd_ps(a, b, s4);
        forget(s4);
        s5 = _mm256_fmadd_ps(a, b, s5);
        forget(s5);
        s6 = _mm256_fmadd_ps(a, b, s6);
        forget(s6);
        s7 = _mm256_fmadd_ps(a, b, s7);
        forget(s7);
        s8 = _mm256_fmadd_ps(a, b, s8);
        forget(s8);
        s9 = _mm256_fmadd_ps(a, b, s9);
        forget(s9);
        s10 = _mm256_fmadd_ps(a, b, s10);
        forget(s10);
        s11 = _mm256_fmadd_ps(a, b, s11);
        forget(s11);
    }
    *sink = fold(_mm256_castps_si256(s0)) + fold(_mm256_castps_si256(s1)) + fold(_mm256_castps_si256(s2)) +
            fold(_mm256_castps_si256(s3)) + fold(_mm256_castps_si256(s4)) + fold(_mm256_castps_si256(s5)) +
            fold(_mm256_castps_si256(s6)) + fold(_mm256_castps_si256(s7)) + fold(_mm256_castps_si256(s8)) +
            fold(_mm256_castps_si256(s9)) + fold(_mm256_castps_si256(s10)) + fold(_mm256_castps_si256(s11));
    return static_cast<double>(iterations) * 12 * 8 * 2;
}

double peak_int8(std::int64_t iterations, std::uint64_t* sink) {
    __m256i s0 = _mm256_setzero_si256(), s1 = _mm256_setzero_si256(), s2 = _mm256_setzero_si256(),
            s3 = _mm256_setzero_si256(), s4 = _mm256_setzero_si256(), s5 = _mm256_setzero_si256(),
            s6 = _mm256_setzero_si256(), s7 = _mm256_setzero_si256();
    __m256i weights = _mm256_set1_epi8(3);
    const __m256i activations = _mm256_set1_epi8(5);
    const __m256i ones = _mm256_set1_epi16(1);
    for (std::int64_t i = 0; i < iterations; ++i) {
        s0 = dot(s0, weights, activations, ones);
        s1 = dot(s1, weights, activations, ones);
        s2 = dot(s2, weights, activations, ones);
        s3 = dot(s3, weights, activations, ones);
        s4 = dot(s4, weights, activations, ones);
        s5 = dot(s5, weights, activations, ones);
        s6 = dot(s6, weights, activations, ones);
        s7 = dot(s7, weights, activations, ones);
    }
    *sink = fold(s0) + fold(s1) + fold(s2) + fold(s3) + fold(s4) + fold(s5) + fold(s6) + fold(s7);
    return static_cast<double>(iterations) * 8 * 32 * 2;
}

std::uint64_t read_words(const std::byte* data, std::int64_t bytes, int streams) {
    const std::int64_t stream_bytes = bytes / streams;
    __m256i sums[4];
    for (auto& sum : sums) sum = _mm256_setzero_si256();
    for (std::int64_t offset = 0; offset < stream_bytes; offset += kReadStepBytes) {
        for (int s = 0; s < streams; ++s) {
            const auto* from = reinterpret_cast<const __m256i*>(data + s * stream_bytes + offset);
#pragma GCC unroll 8
            for (int v = 0; v < 8; ++v) sums[v % 4] = _mm256_add_epi64(sums[v % 4], _mm256_load_si256(from + v));
        }
    }
    const __m256i sum = _mm256_add_epi64(_mm256_add_epi64(sums[0], sums[1]), _mm256_add_epi64(sums[2], sums[3]));
    std::uint64_t words[4];
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(words), sum);
    return words[0] + words[1] + words[2] + words[3];
}

}  // namespace frontier::avx2

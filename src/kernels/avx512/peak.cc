// AVX-512 limits. As every file of this folder: nothing outside the anonymous namespace but the entry points. The loops
// for VNNI and BF16 raise the instruction set of their own function only.
#include "kernels/peak.h"

#include <immintrin.h>

namespace frontier::avx512 {
namespace {

// Latency 4 or 5 cycles times two per cycle asks for 10 chains; 12 of the 32 registers are ample.
// The accumulators are named one by one because the compiler keeps an array of them in memory.

// Makes the compiler forget what it knows about a register's value, at no cost: otherwise it would compute an invariant
// product once, or one chain for all, since all hold the same value.
template <typename V>
inline __attribute__((always_inline)) void forget(V& value) {
    __asm__ volatile("" : "+v"(value));
}

// The sum of the 64-bit words.
inline __attribute__((always_inline)) std::uint64_t fold(__m512i value) {
    std::uint64_t words[8];
    _mm512_storeu_si512(words, value);
    std::uint64_t sum = 0;
    for (const std::uint64_t word : words) sum += word;
    return sum;
}

inline __attribute__((always_inline)) __m512i dot(__m512i sum, __m512i& weights, __m512i activations, __m512i ones) {
    forget(weights);
    return _mm512_add_epi32(sum, _mm512_madd_epi16(_mm512_maddubs_epi16(weights, activations), ones));
}

}  // namespace

double peak_f32(std::int64_t iterations, std::uint64_t* sink) {
    __m512 s0 = _mm512_setzero_ps(), s1 = _mm512_setzero_ps(), s2 = _mm512_setzero_ps(), s3 = _mm512_setzero_ps(),
           s4 = _mm512_setzero_ps(), s5 = _mm512_setzero_ps(), s6 = _mm512_setzero_ps(), s7 = _mm512_setzero_ps(),
           s8 = _mm512_setzero_ps(), s9 = _mm512_setzero_ps(), s10 = _mm512_setzero_ps(), s11 = _mm512_setzero_ps();
    __m512 a = _mm512_set1_ps(1.0F);
    const __m512 b = _mm512_set1_ps(1.0F);
    for (std::int64_t i = 0; i < iterations; ++i) {
        s0 = _mm512_fmadd_ps(a, b, s0);
        forget(s0);
        s1 = _mm512_fmadd_ps(a, b, s1);
        forget(s1);
        s2 = _mm512_fmadd_ps(a, b, s2);
        forget(s2);
        s3 = _mm512_fmadd_ps(a, b, s3);
        forget(s3);
        s4 = _mm512_fmadd_ps(a, b, s4);
        forget(s4);
        s5 = _mm512_fmadd_ps(a, b, s5);
        forget(s5);
        s6 = _mm512_fmadd_ps(a, b, s6);
        forget(s6);
        s7 = _mm512_fmadd_ps(a, b, s7);
        forget(s7);
        s8 = _mm512_fmadd_ps(a, b, s8);
        forget(s8);
        s9 = _mm512_fmadd_ps(a, b, s9);
        forget(s9);
        s10 = _mm512_fmadd_ps(a, b, s10);
        forget(s10);
        s11 = _mm512_fmadd_ps(a, b, s11);
        forget(s11);
    }
    *sink = fold(_mm512_castps_si512(s0)) + fold(_mm512_castps_si512(s1)) + fold(_mm512_castps_si512(s2)) +
            fold(_mm512_castps_si512(s3)) + fold(_mm512_castps_si512(s4)) + fold(_mm512_castps_si512(s5)) +
            fold(_mm512_castps_si512(s6)) + fold(_mm512_castps_si512(s7)) + fold(_mm512_castps_si512(s8)) +
            fold(_mm512_castps_si512(s9)) + fold(_mm512_castps_si512(s10)) + fold(_mm512_castps_si512(s11));
    return static_cast<double>(iterations) * 12 * 16 * 2;
}

double peak_int8(std::int64_t iterations, std::uint64_t* sink) {
    __m512i s0 = _mm512_setzero_si512(), s1 = _mm512_setzero_si512(), s2 = _mm512_setzero_si512(),
            s3 = _mm512_setzero_si512(), s4 = _mm512_setzero_si512(), s5 = _mm512_setzero_si512(),
            s6 = _mm512_setzero_si512(), s7 = _mm512_setzero_si512(), s8 = _mm512_setzero_si512(),
            s9 = _mm512_setzero_si512(), s10 = _mm512_setzero_si512(), s11 = _mm512_setzero_si512();
    __m512i weights = _mm512_set1_epi8(3);
    const __m512i activations = _mm512_set1_epi8(5);
    const __m512i ones = _mm512_set1_epi16(1);
    for (std::int64_t i = 0; i < iterations; ++i) {
        s0 = dot(s0, weights, activations, ones);
        s1 = dot(s1, weights, activations, ones);
        s2 = dot(s2, weights, activations, ones);
        s3 = dot(s3, weights, activations, ones);
        s4 = dot(s4, weights, activations, ones);
        s5 = dot(s5, weights, activations, ones);
        s6 = dot(s6, weights, activations, ones);
        s7 = dot(s7, weights, activations, ones);
        s8 = dot(s8, weights, activations, ones);
        s9 = dot(s9, weights, activations, ones);
        s10 = dot(s10, weights, activations, ones);
        s11 = dot(s11, weights, activations, ones);
    }
    *sink = fold(s0) + fold(s1) + fold(s2) + fold(s3) + fold(s4) + fold(s5) + fold(s6) + fold(s7) + fold(s8) +
            fold(s9) + fold(s10) + fold(s11);
    return static_cast<double>(iterations) * 12 * 64 * 2;
}

__attribute__((target("avx512vnni"))) double peak_int8_vnni(std::int64_t iterations, std::uint64_t* sink) {
    __m512i s0 = _mm512_setzero_si512(), s1 = _mm512_setzero_si512(), s2 = _mm512_setzero_si512(),
            s3 = _mm512_setzero_si512(), s4 = _mm512_setzero_si512(), s5 = _mm512_setzero_si512(),
            s6 = _mm512_setzero_si512(), s7 = _mm512_setzero_si512(), s8 = _mm512_setzero_si512(),
            s9 = _mm512_setzero_si512(), s10 = _mm512_setzero_si512(), s11 = _mm512_setzero_si512();
    __m512i weights = _mm512_set1_epi8(3);
    const __m512i activations = _mm512_set1_epi8(5);
    for (std::int64_t i = 0; i < iterations; ++i) {
        s0 = _mm512_dpbusd_epi32(s0, weights, activations);
        forget(s0);
        s1 = _mm512_dpbusd_epi32(s1, weights, activations);
        forget(s1);
        s2 = _mm512_dpbusd_epi32(s2, weights, activations);
        forget(s2);
        s3 = _mm512_dpbusd_epi32(s3, weights, activations);
        forget(s3);
        s4 = _mm512_dpbusd_epi32(s4, weights, activations);
        forget(s4);
        s5 = _mm512_dpbusd_epi32(s5, weights, activations);
        forget(s5);
        s6 = _mm512_dpbusd_epi32(s6, weights, activations);
        forget(s6);
        s7 = _mm512_dpbusd_epi32(s7, weights, activations);
        forget(s7);
        s8 = _mm512_dpbusd_epi32(s8, weights, activations);
        forget(s8);
        s9 = _mm512_dpbusd_epi32(s9, weights, activations);
        forget(s9);
        s10 = _mm512_dpbusd_epi32(s10, weights, activations);
        forget(s10);
        s11 = _mm512_dpbusd_epi32(s11, weights, activations);
        forget(s11);
    }
    *sink = fold(s0) + fold(s1) + fold(s2) + fold(s3) + fold(s4) + fold(s5) + fold(s6) + fold(s7) + fold(s8) +
            fold(s9) + fold(s10) + fold(s11);
    return static_cast<double>(iterations) * 12 * 64 * 2;
}

__attribute__((target("avx512bf16"))) double peak_bf16(std::int64_t iterations, std::uint64_t* sink) {
    __m512 s0 = _mm512_setzero_ps(), s1 = _mm512_setzero_ps(), s2 = _mm512_setzero_ps(), s3 = _mm512_setzero_ps(),
           s4 = _mm512_setzero_ps(), s5 = _mm512_setzero_ps(), s6 = _mm512_setzero_ps(), s7 = _mm512_setzero_ps(),
           s8 = _mm512_setzero_ps(), s9 = _mm512_setzero_ps(), s10 = _mm512_setzero_ps(), s11 = _mm512_setzero_ps();
    const auto a = reinterpret_cast<__m512bh>(_mm512_set1_epi16(0x3F80));  // bf16 1
    const auto b = a;
    for (std::int64_t i = 0; i < iterations; ++i) {
        s0 = _mm512_dpbf16_ps(s0, a, b);
        forget(s0);
        s1 = _mm512_dpbf16_ps(s1, a, b);
        forget(s1);
        s2 = _mm512_dpbf16_ps(s2, a, b);
        forget(s2);
        s3 = _mm512_dpbf16_ps(s3, a, b);
        forget(s3);
        s4 = _mm512_dpbf16_ps(s4, a, b);
        forget(s4);
        s5 = _mm512_dpbf16_ps(s5, a, b);
        forget(s5);
        s6 = _mm512_dpbf16_ps(s6, a, b);
        forget(s6);
        s7 = _mm512_dpbf16_ps(s7, a, b);
        forget(s7);
        s8 = _mm512_dpbf16_ps(s8, a, b);
        forget(s8);
        s9 = _mm512_dpbf16_ps(s9, a, b);
        forget(s9);
        s10 = _mm512_dpbf16_ps(s10, a, b);
        forget(s10);
        s11 = _mm512_dpbf16_ps(s11, a, b);
        forget(s11);
    }
    *sink = fold(_mm512_castps_si512(s0)) + fold(_mm512_castps_si512(s1)) + fold(_mm512_castps_si512(s2)) +
            fold(_mm512_castps_si512(s3)) + fold(_mm512_castps_si512(s4)) + fold(_mm512_castps_si512(s5)) +
            fold(_mm512_castps_si512(s6)) + fold(_mm512_castps_si512(s7)) + fold(_mm512_castps_si512(s8)) +
            fold(_mm512_castps_si512(s9)) + fold(_mm512_castps_si512(s10)) + fold(_mm512_castps_si512(s11));
    return static_cast<double>(iterations) * 12 * 32 * 2;
}

std::uint64_t read_words(const std::byte* data, std::int64_t bytes, int streams) {
    const std::int64_t stream_bytes = bytes / streams;
    __m512i sums[4];
    for (auto& sum : sums) sum = _mm512_setzero_si512();
    for (std::int64_t offset = 0; offset < stream_bytes; offset += kReadStepBytes) {
        for (int s = 0; s < streams; ++s) {
            const std::byte* from = data + s * stream_bytes + offset;
#pragma GCC unroll 4
            for (int v = 0; v < 4; ++v) sums[v] = _mm512_add_epi64(sums[v], _mm512_load_si512(from + v * 64));
        }
    }
    const __m512i sum = _mm512_add_epi64(_mm512_add_epi64(sums[0], sums[1]), _mm512_add_epi64(sums[2], sums[3]));
    std::uint64_t words[8];
    _mm512_storeu_si512(words, sum);
    std::uint64_t total = 0;
    for (const std::uint64_t word : words) total += word;
    return total;
}

}  // namespace frontier::avx512

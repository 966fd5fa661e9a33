// The baseline's limits: SSE2, which every x86-64 has and the compiler uses for ordinary code.
#include "kernels/peak.h"

#include <emmintrin.h>

namespace frontier::scalar {
namespace {

// The latency of an addition (3 or 4 cycles) times two per cycle asks for 8 chains; 16 registers leave room for them,
// the operands and temporaries.
// The accumulators are named one by one because the compiler keeps an array of them in memory.

// Makes the compiler forget what it knows about a register's value, at no cost: otherwise it would compute an invariant
// product once, or one chain for all, since all hold the same value.
template <typename V>
inline __attribute__((always_inline)) void forget(V& value) {
    __asm__ volatile("" : "+x"(value));
}

// The sum of the 64-bit words.
inline __attribute__((always_inline)) std::uint64_t fold(__m128i value) {
    std::uint64_t words[2];
    _mm_storeu_si128(reinterpret_cast<__m128i*>(words), value);
    std::uint64_t sum = 0;
    for (const std::uint64_t word : words) sum += word;
    return sum;
}

inline __attribute__((always_inline)) __m128 multiply_add(__m128 sum, __m128& a, __m128 b) {
    forget(a);
    return _mm_add_ps(sum, _mm_mul_ps(a, b));
}

// 16 weights: widened to 16 bits by unpack and shift, multiplied with activations that are 16 bits wide already.
inline __attribute__((always_inline)) __m128i dot(__m128i sum, __m128i& weights, __m128i activations) {
    forget(weights);
    const __m128i low = _mm_srai_epi16(_mm_unpacklo_epi8(weights, weights), 8);
    const __m128i high = _mm_srai_epi16(_mm_unpackhi_epi8(weights, weights), 8);
    sum = _mm_add_epi32(sum, _mm_madd_epi16(low, activations));
    return _mm_add_epi32(sum, _mm_madd_epi16(high, activations));
}

}  // namespace

double peak_f32(std::int64_t iterations, std::uint64_t* sink) {
    __m128 s0 = _mm_setzero_ps(), s1 = _mm_setzero_ps(), s2 = _mm_setzero_ps(), s3 = _mm_setzero_ps(),
           s4 = _mm_setzero_ps(), s5 = _mm_setzero_ps(), s6 = _mm_setzero_ps(), s7 = _mm_setzero_ps(),
           s8 = _mm_setzero_ps(), s9 = _mm_setzero_ps();
    __m128 a = _mm_set1_ps(1.0F);
    const __m128 b = _mm_set1_ps(1.0F);
    for (std::int64_t i = 0; i < iterations; ++i) {
        s0 = multiply_add(s0, a, b);
        s1 = multiply_add(s1, a, b);
        s2 = multiply_add(s2, a, b);
        s3 = multiply_add(s3, a, b);
        s4 = multiply_add(s4, a, b);
        s5 = multiply_add(s5, a, b);
        s6 = multiply_add(s6, a, b);
        s7 = multiply_add(s7, a, b);
        s8 = multiply_add(s8, a, b);
        s9 = multiply_add(s9, a, b);
    }
    *sink = fold(_mm_castps_si128(s0)) + fold(_mm_castps_si128(s1)) + fold(_mm_castps_si128(s2)) +
            fold(_mm_castps_si128(s3)) + fold(_mm_castps_si128(s4)) + fold(_mm_castps_si128(s5)) +
            fold(_mm_castps_si128(s6)) + fold(_mm_castps_si128(s7)) + fold(_mm_castps_si128(s8)) +
            fold(_mm_castps_si128(s9));
    return static_cast<double>(iterations) * 10 * 4 * 2;
}

double peak_int8(std::int64_t iterations, std::uint64_t* sink) {
    __m128i s0 = _mm_setzero_si128(), s1 = _mm_setzero_si128(), s2 = _mm_setzero_si128(), s3 = _mm_setzero_si128(),
            s4 = _mm_setzero_si128(), s5 = _mm_setzero_si128(), s6 = _mm_setzero_si128(), s7 = _mm_setzero_si128();
    __m128i weights = _mm_set1_epi8(3);
    const __m128i activations = _mm_set1_epi16(5);
    for (std::int64_t i = 0; i < iterations; ++i) {
        s0 = dot(s0, weights, activations);
        s1 = dot(s1, weights, activations);
        s2 = dot(s2, weights, activations);
        s3 = dot(s3, weights, activations);
        s4 = dot(s4, weights, activations);
        s5 = dot(s5, weights, activations);
        s6 = dot(s6, weights, activations);
        s7 = dot(s7, weights, activations);
    }
    *sink = fold(s0) + fold(s1) + fold(s2) + fold(s3) + fold(s4) + fold(s5) + fold(s6) + fold(s7);
    return static_cast<double>(iterations) * 8 * 16 * 2;
}

std::uint64_t read_words(const std::byte* data, std::int64_t bytes, int streams) {
    const std::int64_t stream_bytes = bytes / streams;
    __m128i sums[4];
    for (auto& sum : sums) sum = _mm_setzero_si128();
    for (std::int64_t offset = 0; offset < stream_bytes; offset += kReadStepBytes) {
        for (int s = 0; s < streams; ++s) {
            const auto* from = reinterpret_cast<const __m128i*>(data + s * stream_bytes + offset);
#pragma GCC unroll 16
            for (int v = 0; v < 16; ++v) sums[v % 4] = _mm_add_epi64(sums[v % 4], _mm_load_si128(from + v));
        }
    }
    const __m128i sum = _mm_add_epi64(_mm_add_epi64(sums[0], sums[1]), _mm_add_epi64(sums[2], sums[3]));
    std::uint64_t words[2];
    _mm_storeu_si128(reinterpret_cast<__m128i*>(words), sum);
    return words[0] + words[1];
}

}  // namespace frontier::scalar

// Int8 activations with AVX2: the same bits as scalar/quantize.cc.
#include <immintrin.h>

#include "kernels/isa_functions.h"
#include "kernels/quantize_limits.h"

namespace frontier::avx2 {
namespace {

std::uint32_t max_lane(__m256i v) {
    __m128i m = _mm_max_epu32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    m = _mm_max_epu32(m, _mm_shuffle_epi32(m, 0x4E));
    m = _mm_max_epu32(m, _mm_shuffle_epi32(m, 0xB1));
    return static_cast<std::uint32_t>(_mm_cvtsi128_si32(m));
}

void quantize_block(const float* x, std::int8_t* quants, float* scale, std::int16_t* sums) {
    __m256 v[4];
    __m256i max_bits = _mm256_setzero_si256();
    for (int i = 0; i < 4; ++i) {
        v[i] = _mm256_loadu_ps(x + 8 * i);
        const __m256i magnitude = _mm256_and_si256(_mm256_castps_si256(v[i]), _mm256_set1_epi32(0x7FFFFFFF));
        max_bits = _mm256_max_epu32(max_bits, magnitude);
    }
    const std::uint32_t bits = max_lane(max_bits);
    if (bits >= kNotFiniteBits || bits < kSmallestScaledBits) {
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(quants), _mm256_setzero_si256());
        *scale = bits >= kNotFiniteBits ? __builtin_nanf("") : 0.0F;
        sums[0] = sums[1] = 0;
        return;
    }
    const float max = _mm_cvtss_f32(_mm_castsi128_ps(_mm_cvtsi32_si128(static_cast<int>(bits))));
    *scale = max / 127.0F;
    const __m256 inverse = _mm256_set1_ps(127.0F / max);
    __m256i q[4];
    for (int i = 0; i < 4; ++i) q[i] = _mm256_cvtps_epi32(_mm256_mul_ps(v[i], inverse));
    // The packs work within 128-bit lanes: dwords of the result are k 0-3, 8-11, 16-19, 24-27, 4-7, ...
    const __m256i packed = _mm256_packs_epi16(_mm256_packs_epi32(q[0], q[1]), _mm256_packs_epi32(q[2], q[3]));
    const __m256i bytes = _mm256_permutevar8x32_epi32(packed, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(quants), bytes);

    const __m256i pairs = _mm256_maddubs_epi16(_mm256_set1_epi8(1), bytes);
    __m256i sum = _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
    sum = _mm256_add_epi32(sum, _mm256_shuffle_epi32(sum, 0x4E));
    sum = _mm256_add_epi32(sum, _mm256_shuffle_epi32(sum, 0xB1));
    sums[0] = static_cast<std::int16_t>(_mm256_extract_epi32(sum, 0));
    sums[1] = static_cast<std::int16_t>(_mm256_extract_epi32(sum, 4));
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

}  // namespace frontier::avx2

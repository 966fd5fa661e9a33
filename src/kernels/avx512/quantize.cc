// Int8 activations with AVX-512: the same bits as scalar/quantize.cc.
#include "kernels/avx512/intrinsics.h"
#include "kernels/isa_functions.h"
#include "kernels/quantize_limits.h"

#ifndef FR_AVX512_NAMESPACE
#define FR_AVX512_NAMESPACE avx512
#endif

namespace frontier::FR_AVX512_NAMESPACE {
namespace {

void quantize_block(const float* x, std::int8_t* quants, float* scale, std::int16_t* sums) {
    const __m512 v[2] = {_mm512_loadu_ps(x), _mm512_loadu_ps(x + 16)};
    const __m512i magnitude_bits = _mm512_set1_epi32(0x7FFFFFFF);
    const auto bits = static_cast<std::uint32_t>(
        _mm512_reduce_max_epi32(_mm512_max_epi32(_mm512_and_si512(_mm512_castps_si512(v[0]), magnitude_bits),
                                                 _mm512_and_si512(_mm512_castps_si512(v[1]), magnitude_bits))));
    if (bits >= kNotFiniteBits || bits < kSmallestScaledBits) {
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(quants), _mm256_setzero_si256());
        *scale = bits >= kNotFiniteBits ? __builtin_nanf("") : 0.0F;
        sums[0] = sums[1] = 0;
        return;
    }
    const float max = _mm_cvtss_f32(_mm_castsi128_ps(_mm_cvtsi32_si128(static_cast<int>(bits))));
    *scale = max / 127.0F;
    const __m512 inverse = _mm512_set1_ps(127.0F / max);
    for (int half = 0; half < 2; ++half) {
        const __m512i q = _mm512_cvtps_epi32(_mm512_mul_ps(v[half], inverse));
        _mm_storeu_si128(reinterpret_cast<__m128i*>(quants + 16 * half), _mm512_cvtepi32_epi8(q));
        sums[half] = static_cast<std::int16_t>(_mm512_reduce_add_epi32(q));
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

}  // namespace frontier::FR_AVX512_NAMESPACE

// The AVX-512 kernels for hosts without AVX-512: their sources over SIMDe, which computes each intrinsic with AVX2 (or
// plain) code, so that their logic is tested everywhere. Compiled with the flags of the AVX2 kernels.
#define FR_AVX512_EMULATED
#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx512.h>
#include <simde/x86/f16c.h>

#include "kernels/kernels.h"

// What the packaged SIMDe (0.7.4) does not have.
namespace {

__m512 from_halves(__m256 low, __m256 high) {
    simde__m512_private r;
    r.m256[0] = low;
    r.m256[1] = high;
    return simde__m512_from_private(r);
}
__m512i from_halves(__m256i low, __m256i high) {
    simde__m512i_private r;
    r.m256i[0] = low;
    r.m256i[1] = high;
    return simde__m512i_from_private(r);
}
__m256 half(__m512 v, int i) {
    return simde__m512_to_private(v).m256[i];
}
__m256i half(__m512i v, int i) {
    return simde__m512i_to_private(v).m256i[i];
}

__m512 emulated_cvtph_ps(__m256i v) {
    return from_halves(_mm256_cvtph_ps(_mm256_castsi256_si128(v)), _mm256_cvtph_ps(_mm256_extracti128_si256(v, 1)));
}
__m512 emulated_cvtepi32_ps(__m512i v) {
    return from_halves(_mm256_cvtepi32_ps(half(v, 0)), _mm256_cvtepi32_ps(half(v, 1)));
}
__m512i emulated_cvtps_epi32(__m512 v) {
    return from_halves(_mm256_cvtps_epi32(half(v, 0)), _mm256_cvtps_epi32(half(v, 1)));
}
__m512i emulated_cvtepu8_epi32(__m128i v) {
    return from_halves(_mm256_cvtepu8_epi32(v), _mm256_cvtepu8_epi32(_mm_srli_si128(v, 8)));
}
__m512i emulated_cvtepi8_epi32(__m128i v) {
    return from_halves(_mm256_cvtepi8_epi32(v), _mm256_cvtepi8_epi32(_mm_srli_si128(v, 8)));
}
__m256i emulated_cvtepi32_epi16(__m512i v) {
    const simde__m512i_private from = simde__m512i_to_private(v);
    alignas(32) std::int16_t to[16];
    for (int i = 0; i < 16; ++i) to[i] = static_cast<std::int16_t>(from.i32[i]);
    return _mm256_load_si256(reinterpret_cast<const __m256i*>(to));
}
__m128i emulated_cvtepi32_epi8(__m512i v) {
    const simde__m512i_private from = simde__m512i_to_private(v);
    alignas(16) std::int8_t to[16];
    for (int i = 0; i < 16; ++i) to[i] = static_cast<std::int8_t>(from.i32[i]);
    return _mm_load_si128(reinterpret_cast<const __m128i*>(to));
}
int emulated_reduce_max_epi32(__m512i v) {
    const simde__m512i_private from = simde__m512i_to_private(v);
    int max = from.i32[0];
    for (int i = 1; i < 16; ++i) max = from.i32[i] > max ? from.i32[i] : max;
    return max;
}
int emulated_reduce_add_epi32(__m512i v) {
    const simde__m512i_private from = simde__m512i_to_private(v);
    int sum = 0;
    for (int i = 0; i < 16; ++i) sum += from.i32[i];
    return sum;
}

}  // namespace

#undef _mm512_madd_epi16  // defined with the arguments of the masked form
#define _mm512_madd_epi16 simde_mm512_madd_epi16
#define _mm512_cvtph_ps emulated_cvtph_ps
#define _mm512_cvtepi32_ps emulated_cvtepi32_ps
#define _mm512_cvtps_epi32 emulated_cvtps_epi32
#define _mm512_cvtepu8_epi32 emulated_cvtepu8_epi32
#define _mm512_cvtepi8_epi32 emulated_cvtepi8_epi32
#define _mm512_cvtepi32_epi16 emulated_cvtepi32_epi16
#define _mm512_cvtepi32_epi8 emulated_cvtepi32_epi8
#define _mm512_reduce_max_epi32 emulated_reduce_max_epi32
#define _mm512_reduce_add_epi32 emulated_reduce_add_epi32

// Each source in a namespace of its own, since their helpers share names.
#define FR_AVX512_NAMESPACE avx512_emulated_quantize
#include "kernels/avx512/quantize.cc"
#undef FR_AVX512_NAMESPACE
#define FR_AVX512_NAMESPACE avx512_emulated_float
#include "kernels/avx512/matmul_float.cc"
#undef FR_AVX512_NAMESPACE
#define FR_AVX512_NAMESPACE avx512_emulated_int8
#define FR_AVX512_VNNI 0
#include "kernels/avx512/matmul_int8.cc"
#undef FR_AVX512_NAMESPACE
#undef FR_AVX512_VNNI
#define FR_AVX512_NAMESPACE avx512_emulated_vnni
#define FR_AVX512_VNNI 1
#include "kernels/avx512/matmul_int8.cc"

// The AMX kernels: AVX-512 as above around tiles in plain C++.
#define FR_AMX_EMULATED
#define FR_AMX_NAMESPACE amx_emulated
#include "amx_tiles_emulated.h"
#include "kernels/amx/matmul_tiles.cc"

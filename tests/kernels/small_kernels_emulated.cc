// The AVX-512 elementwise and attention sources over SIMDe, compiled with the flags of the AVX2 kernels.
#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx512.h>
#include <simde/x86/f16c.h>

#include "kernels/isa_functions.h"

// What the packaged SIMDe (0.7.4) does not have.
namespace {

__m512 emulated_cvtph_ps(__m256i v) {
    simde__m512_private r;
    r.m256[0] = _mm256_cvtph_ps(_mm256_castsi256_si128(v));
    r.m256[1] = _mm256_cvtph_ps(_mm256_extracti128_si256(v, 1));
    return simde__m512_from_private(r);
}
__m256i emulated_cvtps_ph(__m512 v) {
    const simde__m512_private from = simde__m512_to_private(v);
    return _mm256_set_m128i(_mm256_cvtps_ph(from.m256[1], _MM_FROUND_TO_NEAREST_INT),
                            _mm256_cvtps_ph(from.m256[0], _MM_FROUND_TO_NEAREST_INT));
}
__m512i emulated_cvtps_epi32(__m512 v) {
    const simde__m512_private from = simde__m512_to_private(v);
    simde__m512i_private r;
    r.m256i[0] = _mm256_cvtps_epi32(from.m256[0]);
    r.m256i[1] = _mm256_cvtps_epi32(from.m256[1]);
    return simde__m512i_from_private(r);
}
__m512d emulated_cvtps_pd(__m256 v) {
    simde__m512d_private r;
    r.m256d[0] = _mm256_cvtps_pd(_mm256_castps256_ps128(v));
    r.m256d[1] = _mm256_cvtps_pd(_mm256_extractf128_ps(v, 1));
    return simde__m512d_from_private(r);
}
__m256 emulated_extractf32x8_ps(__m512 v, int half) {
    return simde__m512_to_private(v).m256[half];
}
__m512 emulated_permute_ps(__m512 v, int control) {
    const simde__m512_private from = simde__m512_to_private(v);
    simde__m512_private r;
    for (int i = 0; i < 16; ++i) r.f32[i] = from.f32[i / 4 * 4 + (control >> (2 * (i % 4)) & 3)];
    return simde__m512_from_private(r);
}
__m512 emulated_duplicate(__m512 v, int odd) {
    const simde__m512_private from = simde__m512_to_private(v);
    simde__m512_private r;
    for (int i = 0; i < 16; ++i) r.f32[i] = from.f32[i / 2 * 2 + odd];
    return simde__m512_from_private(r);
}
__m512 emulated_moveldup_ps(__m512 v) {
    return emulated_duplicate(v, 0);
}
__m512 emulated_movehdup_ps(__m512 v) {
    return emulated_duplicate(v, 1);
}
__m512 emulated_fmaddsub_ps(__m512 a, __m512 b, __m512 c) {
    simde__m512_private x = simde__m512_to_private(a);
    const simde__m512_private y = simde__m512_to_private(b);
    const simde__m512_private z = simde__m512_to_private(c);
    for (int i = 0; i < 2; ++i) x.m256[i] = _mm256_fmaddsub_ps(x.m256[i], y.m256[i], z.m256[i]);
    return simde__m512_from_private(x);
}
// SIMDe's own keeps the first operand on NaN; the instruction, and what relies on it, the second.
__m512 emulated_max_ps(__m512 a, __m512 b) {
    simde__m512_private x = simde__m512_to_private(a);
    const simde__m512_private y = simde__m512_to_private(b);
    for (int i = 0; i < 2; ++i) x.m256[i] = _mm256_max_ps(x.m256[i], y.m256[i]);
    return simde__m512_from_private(x);
}
__m512 emulated_min_ps(__m512 a, __m512 b) {
    simde__m512_private x = simde__m512_to_private(a);
    const simde__m512_private y = simde__m512_to_private(b);
    for (int i = 0; i < 2; ++i) x.m256[i] = _mm256_min_ps(x.m256[i], y.m256[i]);
    return simde__m512_from_private(x);
}

}  // namespace

#undef _mm512_cvtph_ps
#undef _mm512_cvtps_ph
#undef _mm512_cvtps_epi32
#undef _mm512_cvtps_pd
#undef _mm512_extractf32x8_ps
#undef _mm512_permute_ps
#undef _mm512_moveldup_ps
#undef _mm512_movehdup_ps
#undef _mm512_fmaddsub_ps
#undef _mm512_max_ps
#undef _mm512_min_ps
#define _mm512_cvtph_ps emulated_cvtph_ps
#define _mm512_cvtps_ph(v, rounding) emulated_cvtps_ph(v)
#define _mm512_cvtps_epi32 emulated_cvtps_epi32
#define _mm512_cvtps_pd emulated_cvtps_pd
#define _mm512_extractf32x8_ps emulated_extractf32x8_ps
#define _mm512_permute_ps emulated_permute_ps
#define _mm512_moveldup_ps emulated_moveldup_ps
#define _mm512_movehdup_ps emulated_movehdup_ps
#define _mm512_fmaddsub_ps emulated_fmaddsub_ps
#define _mm512_max_ps emulated_max_ps
#define _mm512_min_ps emulated_min_ps

// Namespaces of their own: the sources share names with each other and with the library's real AVX-512 objects.
#define avx512 avx512_emulated_elementwise
#include "kernels/avx512/elementwise.cc"
#undef avx512
#define avx512 avx512_emulated_attention
#include "kernels/avx512/attention.cc"
#undef avx512

namespace frontier {

void fill_emulated_avx512(KernelTable& table) {
    avx512_emulated_elementwise::fill_elementwise(table);
    avx512_emulated_attention::fill_attention(table);
}

}  // namespace frontier

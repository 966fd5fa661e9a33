// F32, F16 and BF16 panels with AVX-512: one vector holds the 16 rows of a panel; f32 sums in ascending k, one fused
// multiply-add per k and lane, so the same bits as AVX2.
#include "kernels/avx512/intrinsics.h"
#include "kernels/isa_functions.h"

#ifndef FR_AVX512_NAMESPACE
#define FR_AVX512_NAMESPACE avx512
#endif

namespace frontier::FR_AVX512_NAMESPACE {
namespace {

__m512i load_pairs(const std::byte* p) {
    return _mm512_loadu_si512(p);
}

// Readers give the 16 weights of k and of k + 1; `pair` is the panel at k.
struct F32Reader {
    static constexpr std::int64_t kPairBytes = 128;
    static __m512 even(const std::byte* pair) { return _mm512_loadu_ps(pair); }
    static __m512 odd(const std::byte* pair) { return _mm512_loadu_ps(pair + 64); }
};

struct BF16Reader {
    static constexpr std::int64_t kPairBytes = 64;
    static __m512 even(const std::byte* pair) { return _mm512_castsi512_ps(_mm512_slli_epi32(load_pairs(pair), 16)); }
    static __m512 odd(const std::byte* pair) {
        return _mm512_castsi512_ps(_mm512_and_si512(load_pairs(pair), _mm512_set1_epi32(static_cast<int>(0xFFFF0000))));
    }
};

struct F16Reader {
    static constexpr std::int64_t kPairBytes = 64;
    static __m512 even(const std::byte* pair) { return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(load_pairs(pair))); }
    static __m512 odd(const std::byte* pair) {
        return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(_mm512_srli_epi32(load_pairs(pair), 16)));
    }
};

template <int kTokens>
[[gnu::always_inline]] inline void multiply_add(__m512 w, const float* x, std::int64_t stride,
                                                __m512 (&sums)[kTokens]) {
#pragma GCC unroll 16
    for (int t = 0; t < kTokens; ++t) sums[t] = _mm512_fmadd_ps(w, _mm512_set1_ps(x[t * stride]), sums[t]);
}

template <typename Reader, int kTokens>
void tile(const std::byte* panel, std::int64_t cols, const float* x, std::int64_t stride, float* out,
          std::int64_t out_stride) {
    __m512 sums[kTokens];
#pragma GCC unroll 16
    for (int t = 0; t < kTokens; ++t) sums[t] = _mm512_setzero_ps();
    for (std::int64_t k = 0; k + 1 < cols; k += 2) {
        multiply_add<kTokens>(Reader::even(panel), x + k, stride, sums);
        multiply_add<kTokens>(Reader::odd(panel), x + k + 1, stride, sums);
        panel += Reader::kPairBytes;
    }
    if (cols % 2 != 0) multiply_add<kTokens>(Reader::even(panel), x + cols - 1, stride, sums);
#pragma GCC unroll 16
    for (int t = 0; t < kTokens; ++t) _mm512_storeu_ps(out + t * out_stride, sums[t]);
}

// Twelve chains cover the latency of 4 cycles at two multiply-adds per cycle and make the widening of 16-bit weights
// (3 to 5 instructions) a small part; what is left over goes in powers of two.
constexpr int kTileTokens = 12;

template <typename Reader>
void panel_matmul(const std::byte* panel, std::int64_t cols, const float* x, std::int64_t stride, int tokens,
                  float* out, std::int64_t out_stride) {
    int t = 0;
    for (; tokens - t >= kTileTokens; t += kTileTokens)
        tile<Reader, kTileTokens>(panel, cols, x + t * stride, stride, out + t * out_stride, out_stride);
    for (; tokens - t >= 4; t += 4)
        tile<Reader, 4>(panel, cols, x + t * stride, stride, out + t * out_stride, out_stride);
    for (; tokens - t >= 2; t += 2)
        tile<Reader, 2>(panel, cols, x + t * stride, stride, out + t * out_stride, out_stride);
    if (tokens - t == 1) tile<Reader, 1>(panel, cols, x + t * stride, stride, out + t * out_stride, out_stride);
}

}  // namespace

void fill_matmul_float(KernelTable& table) {
    table.float_panel[static_cast<int>(DType::kF32)] = panel_matmul<F32Reader>;
    table.float_panel[static_cast<int>(DType::kF16)] = panel_matmul<F16Reader>;
    table.float_panel[static_cast<int>(DType::kBF16)] = panel_matmul<BF16Reader>;
}

}  // namespace frontier::FR_AVX512_NAMESPACE

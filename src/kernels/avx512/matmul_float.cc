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
    static std::int64_t panel_bytes(std::int64_t cols) { return 64 * cols; }
    static constexpr std::int64_t kPairBytes = 128;
    static __m512 even(const std::byte* pair) { return _mm512_loadu_ps(pair); }
    static __m512 odd(const std::byte* pair) { return _mm512_loadu_ps(pair + 64); }
};

struct BF16Reader {
    static std::int64_t panel_bytes(std::int64_t cols) { return 64 * ((cols + 1) / 2); }
    static constexpr std::int64_t kPairBytes = 64;
    static __m512 even(const std::byte* pair) { return _mm512_castsi512_ps(_mm512_slli_epi32(load_pairs(pair), 16)); }
    static __m512 odd(const std::byte* pair) {
        return _mm512_castsi512_ps(_mm512_and_si512(load_pairs(pair), _mm512_set1_epi32(static_cast<int>(0xFFFF0000))));
    }
};

struct F16Reader {
    static std::int64_t panel_bytes(std::int64_t cols) { return 64 * ((cols + 1) / 2); }
    static constexpr std::int64_t kPairBytes = 64;
    static __m512 even(const std::byte* pair) { return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(load_pairs(pair))); }
    static __m512 odd(const std::byte* pair) {
        return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(_mm512_srli_epi32(load_pairs(pair), 16)));
    }
};

// 16 weights of one k, or sums of one token.
using Row = __m512;

Row zero_row() {
    return _mm512_setzero_ps();
}
Row load_row(const float* p) {
    return _mm512_loadu_ps(p);
}
void store_row(float* p, Row row) {
    _mm512_storeu_ps(p, row);
}
// sum += w * *x
[[gnu::always_inline]] inline void add_product(Row& sum, Row w, const float* x) {
    sum = _mm512_fmadd_ps(w, _mm512_set1_ps(*x), sum);
}

#include "kernels/shared/float_tile.inc"

// Twelve chains cover the latency of 4 cycles at two multiply-adds per cycle and make the widening of 16-bit weights
// (3 to 5 instructions) a small part; what is left over goes in powers of two. One token takes four panels at a time,
// two tokens two, for the same reason, and for several streams of reads.
constexpr int kTileTokens = 12;

template <typename Reader>
void panels_matmul(const std::byte* panels, int count, std::int64_t cols, const float* x, std::int64_t stride,
                   int tokens, float* out, std::int64_t out_stride) {
    const std::int64_t panel_bytes = Reader::panel_bytes(cols);
    int p = 0;
    if (tokens == 1) {
        for (; p + 4 <= count; p += 4)
            tile<Reader, 1, 4>(panels + p * panel_bytes, cols, x, stride, out + p * kPanelRows, out_stride, false);
        for (; p + 2 <= count; p += 2)
            tile<Reader, 1, 2>(panels + p * panel_bytes, cols, x, stride, out + p * kPanelRows, out_stride, false);
    }
    if (tokens == 2)
        for (; p + 2 <= count; p += 2)
            tile<Reader, 2, 2>(panels + p * panel_bytes, cols, x, stride, out + p * kPanelRows, out_stride, false);
    for (; p < count; ++p) {
        const std::byte* panel = panels + p * panel_bytes;
        float* panel_out = out + p * kPanelRows;
        int t = 0;
        for (; tokens - t >= kTileTokens; t += kTileTokens)
            tile<Reader, kTileTokens>(panel, cols, x + t * stride, stride, panel_out + t * out_stride, out_stride,
                                      false);
        for (; tokens - t >= 4; t += 4)
            tile<Reader, 4>(panel, cols, x + t * stride, stride, panel_out + t * out_stride, out_stride, false);
        for (; tokens - t >= 2; t += 2)
            tile<Reader, 2>(panel, cols, x + t * stride, stride, panel_out + t * out_stride, out_stride, false);
        if (tokens - t == 1)
            tile<Reader, 1>(panel, cols, x + t * stride, stride, panel_out + t * out_stride, out_stride, false);
    }
}

}  // namespace

void fill_matmul_float(KernelTable& table) {
    table.float_panels[static_cast<int>(DType::kF32)] = panels_matmul<F32Reader>;
    table.float_panels[static_cast<int>(DType::kF16)] = panels_matmul<F16Reader>;
    table.float_panels[static_cast<int>(DType::kBF16)] = panels_matmul<BF16Reader>;
}

}  // namespace frontier::FR_AVX512_NAMESPACE

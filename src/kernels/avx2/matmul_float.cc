// F32, F16 and BF16 panels with AVX2 and FMA: f32 sums in ascending k, one fused multiply-add per k and lane.
#include <immintrin.h>

#include "kernels/isa_functions.h"

namespace frontier::avx2 {
namespace {

// 16 weights of one k, or sums of one token.
struct Row {
    __m256 low;   // rows 0..7
    __m256 high;  // rows 8..15
};

__m256i load_bytes(const std::byte* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
}

// Readers give the weights of k and k + 1; `pair` is the panel at k, 128 (F32) or 64 bytes long.
struct F32Reader {
    static std::int64_t panel_bytes(std::int64_t cols) { return 64 * cols; }
    static constexpr std::int64_t kPairBytes = 128;
    static Row even(const std::byte* pair) {
        const auto* w = reinterpret_cast<const float*>(pair);
        return {_mm256_loadu_ps(w), _mm256_loadu_ps(w + 8)};
    }
    static Row odd(const std::byte* pair) { return even(pair + 64); }
};

struct BF16Reader {
    static std::int64_t panel_bytes(std::int64_t cols) { return 64 * ((cols + 1) / 2); }
    static constexpr std::int64_t kPairBytes = 64;
    static __m256 shifted(__m256i pairs) { return _mm256_castsi256_ps(_mm256_slli_epi32(pairs, 16)); }
    static __m256 masked(__m256i pairs) {
        return _mm256_castsi256_ps(_mm256_and_si256(pairs, _mm256_set1_epi32(static_cast<int>(0xFFFF0000))));
    }
    static Row even(const std::byte* pair) { return {shifted(load_bytes(pair)), shifted(load_bytes(pair + 32))}; }
    static Row odd(const std::byte* pair) { return {masked(load_bytes(pair)), masked(load_bytes(pair + 32))}; }
};

struct F16Reader {
    static std::int64_t panel_bytes(std::int64_t cols) { return 64 * ((cols + 1) / 2); }
    static constexpr std::int64_t kPairBytes = 64;
    // The halves at even (or odd) positions of 8 pairs, in order: gathered within 128-bit lanes, then across.
    static __m128i gather(__m256i pairs, __m256i order) {
        const __m256i in_lanes = _mm256_shuffle_epi8(pairs, order);
        return _mm256_castsi256_si128(_mm256_permute4x64_epi64(in_lanes, 0x08));
    }
    static __m256i even_order() {
        return _mm256_broadcastsi128_si256(
            _mm_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, -128, -128, -128, -128, -128, -128, -128, -128));
    }
    static __m256i odd_order() {
        return _mm256_broadcastsi128_si256(
            _mm_setr_epi8(2, 3, 6, 7, 10, 11, 14, 15, -128, -128, -128, -128, -128, -128, -128, -128));
    }
    static Row widened(const std::byte* pair, __m256i order) {
        return {_mm256_cvtph_ps(gather(load_bytes(pair), order)),
                _mm256_cvtph_ps(gather(load_bytes(pair + 32), order))};
    }
    static Row even(const std::byte* pair) { return widened(pair, even_order()); }
    static Row odd(const std::byte* pair) { return widened(pair, odd_order()); }
};

Row zero_row() {
    return {_mm256_setzero_ps(), _mm256_setzero_ps()};
}
Row load_row(const float* p) {
    return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)};
}
void store_row(float* p, Row row) {
    _mm256_storeu_ps(p, row.low);
    _mm256_storeu_ps(p + 8, row.high);
}
// sum += w * *x
[[gnu::always_inline]] inline void add_product(Row& sum, Row w, const float* x) {
    const __m256 a = _mm256_broadcast_ss(x);
    sum.low = _mm256_fmadd_ps(w.low, a, sum.low);
    sum.high = _mm256_fmadd_ps(w.high, a, sum.high);
}

#include "kernels/shared/float_tile.inc"

// 6 tokens x 2 vectors of sums, two of weights and one of activations fill 15 of the 16 registers, and 12 independent
// chains cover the latency of 4 cycles at two multiply-adds per cycle.
constexpr int kTileTokens = 6;

// Widening competes with the multiply-adds (six tokens of F16 take twice the time of F32), so that for more tokens a
// stretch of k is widened once: 128 k x 16 rows are 8 KiB, a quarter of the usual first-level cache.
constexpr std::int64_t kStretch = 128;

// What to bring into L2 while something else is computed, in even portions: all at once, the requests would keep those
// of the computation waiting (there are about 24 places for misses).
struct Ahead {
    const char* next;
    const char* end;
    std::int64_t portion_bytes;
    bool activations = false;  // those of the next stretch, too

    Ahead(const std::byte* from, std::int64_t bytes, int portions)
        : next(reinterpret_cast<const char*>(from)),
          end(next + bytes),
          portion_bytes((bytes / 64 + portions - 1) / portions * 64) {}
    void fetch_portion() {
        for (std::int64_t i = 0; i < portion_bytes && next < end; i += 64, next += 64) _mm_prefetch(next, _MM_HINT_T1);
    }
    // x: the first of some tokens, behind the stretch in work. What lies behind the last column is asked for in vain.
    void fetch_activations(const float* x, std::int64_t stride, int tokens) const {
        if (!activations) return;
        for (int t = 0; t < tokens; ++t)
            for (int i = 0; i < kStretch; i += 16)
                _mm_prefetch(reinterpret_cast<const char*>(x + t * stride + i), _MM_HINT_T1);
    }
};

// Tiles of nearly equal size: one of 6 and one of 2 would take 6 + 4 cycles per k, because 2 tokens have too few chains
// to hide the latency; two of 4 take 4 + 4.
int tiles_of(int tokens) {
    return (tokens + kTileTokens - 1) / kTileTokens;
}

template <typename Reader>
void all_tokens(const std::byte* panel, std::int64_t cols, const float* x, std::int64_t stride, int tokens, float* out,
                std::int64_t out_stride, bool continued, Ahead ahead) {
    constexpr decltype(&tile<Reader, 1>) kTiles[kTileTokens] = {tile<Reader, 1>, tile<Reader, 2>, tile<Reader, 3>,
                                                                tile<Reader, 4>, tile<Reader, 5>, tile<Reader, 6>};
    for (int tiles = tiles_of(tokens); tiles > 0; --tiles) {
        const int count = (tokens + tiles - 1) / tiles;
        ahead.fetch_portion();
        ahead.fetch_activations(x + cols, stride, count);
        kTiles[count - 1](panel, cols, x, stride, out, out_stride, continued);
        tokens -= count;
        x += count * stride;
        out += count * out_stride;
    }
}

// k = 0 .. count - 1 of a panel as F32: where it lies, or in `widened` [kStretch][16].
template <typename Reader>
const std::byte* as_f32(const std::byte* panel, std::int64_t count, float* widened) {
    if constexpr (Reader::kPairBytes == F32Reader::kPairBytes) return panel;
    for (std::int64_t k = 0; k < count; k += 2) {  // an odd last k has a padding partner in the panel
        const Row even = Reader::even(panel);
        const Row odd = Reader::odd(panel);
        _mm256_store_ps(widened + k * kPanelRows, even.low);
        _mm256_store_ps(widened + k * kPanelRows + 8, even.high);
        _mm256_store_ps(widened + k * kPanelRows + 16, odd.low);
        _mm256_store_ps(widened + k * kPanelRows + 24, odd.high);
        panel += Reader::kPairBytes;
    }
    return reinterpret_cast<const std::byte*>(widened);
}

// A stretch of k of all panels before the next one, so that the tokens' activations there stay in L2.
template <typename Reader>
void over_stretches(const std::byte* panels, int count, std::int64_t cols, const float* x, std::int64_t stride,
                    int tokens, float* out, std::int64_t out_stride) {
    alignas(64) float widened[kStretch * kPanelRows];
    for (std::int64_t k = 0; k < cols; k += kStretch) {
        const std::int64_t stretch = cols - k < kStretch ? cols - k : kStretch;
        for (int p = 0; p < count; ++p) {
            const std::byte* from = panels + p * Reader::panel_bytes(cols) + k / 2 * Reader::kPairBytes;
            // In use next; the hardware cannot guess it.
            const std::byte* next =
                p + 1 < count ? from + Reader::panel_bytes(cols) : panels + (k + stretch) / 2 * Reader::kPairBytes;
            Ahead ahead(next, stretch / 2 * Reader::kPairBytes, tiles_of(tokens));
            ahead.activations = p + 1 == count && k + stretch < cols;
            all_tokens<F32Reader>(as_f32<Reader>(from, stretch, widened), stretch, x + k, stride, tokens,
                                  out + p * kPanelRows, out_stride, k > 0, ahead);
        }
    }
}

// One or two tokens: two panels at a time, for the chains to hide the latency and two streams of reads.
template <typename Reader>
void panels_matmul(const std::byte* panels, int count, std::int64_t cols, const float* x, std::int64_t stride,
                   int tokens, float* out, std::int64_t out_stride) {
    const std::int64_t panel_bytes = Reader::panel_bytes(cols);
    int p = 0;
    if (tokens <= 2) {
        for (; p + kPanelsSideBySide <= count; p += kPanelsSideBySide) {
            const std::byte* pair = panels + p * panel_bytes;
            float* pair_out = out + p * kPanelRows;
            if (tokens == 1)
                tile<Reader, 1, kPanelsSideBySide>(pair, cols, x, stride, pair_out, out_stride, false);
            else
                tile<Reader, 2, kPanelsSideBySide>(pair, cols, x, stride, pair_out, out_stride, false);
        }
    }
    if (tokens > kTileTokens) return over_stretches<Reader>(panels, count, cols, x, stride, tokens, out, out_stride);
    for (; p < count; ++p)
        all_tokens<Reader>(panels + p * panel_bytes, cols, x, stride, tokens, out + p * kPanelRows, out_stride, false,
                           Ahead(panels, 0, 1));
}

}  // namespace

void fill_matmul_float(KernelTable& table) {
    table.float_panels[static_cast<int>(DType::kF32)] = panels_matmul<F32Reader>;
    table.float_panels[static_cast<int>(DType::kF16)] = panels_matmul<F16Reader>;
    table.float_panels[static_cast<int>(DType::kBF16)] = panels_matmul<BF16Reader>;
}

}  // namespace frontier::avx2

// F32, F16 and BF16 panels with AVX2 and FMA: f32 sums in ascending k, one fused multiply-add per k and lane.
#include <immintrin.h>

#include "kernels/isa_functions.h"

namespace frontier::avx2 {
namespace {

// 16 weights of one k.
struct Weights {
    __m256 low;   // rows 0..7
    __m256 high;  // rows 8..15
};

__m256i load_bytes(const std::byte* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
}

// Readers give the weights of k and k + 1; `pair` is the panel at k, 128 (F32) or 64 bytes long.
struct F32Reader {
    static constexpr std::int64_t kPairBytes = 128;
    static Weights even(const std::byte* pair) {
        const auto* w = reinterpret_cast<const float*>(pair);
        return {_mm256_loadu_ps(w), _mm256_loadu_ps(w + 8)};
    }
    static Weights odd(const std::byte* pair) { return even(pair + 64); }
};

struct BF16Reader {
    static constexpr std::int64_t kPairBytes = 64;
    static __m256 shifted(__m256i pairs) { return _mm256_castsi256_ps(_mm256_slli_epi32(pairs, 16)); }
    static __m256 masked(__m256i pairs) {
        return _mm256_castsi256_ps(_mm256_and_si256(pairs, _mm256_set1_epi32(static_cast<int>(0xFFFF0000))));
    }
    static Weights even(const std::byte* pair) { return {shifted(load_bytes(pair)), shifted(load_bytes(pair + 32))}; }
    static Weights odd(const std::byte* pair) { return {masked(load_bytes(pair)), masked(load_bytes(pair + 32))}; }
};

struct F16Reader {
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
    static Weights widened(const std::byte* pair, __m256i order) {
        return {_mm256_cvtph_ps(gather(load_bytes(pair), order)),
                _mm256_cvtph_ps(gather(load_bytes(pair + 32), order))};
    }
    static Weights even(const std::byte* pair) { return widened(pair, even_order()); }
    static Weights odd(const std::byte* pair) { return widened(pair, odd_order()); }
};

template <int kTokens>
struct Sums {
    __m256 low[kTokens];
    __m256 high[kTokens];
};

template <int kTokens>
[[gnu::always_inline]] inline void multiply_add(const Weights& w, const float* x, std::int64_t stride,
                                                Sums<kTokens>& sums) {
#pragma GCC unroll 8
    for (int t = 0; t < kTokens; ++t) {
        const __m256 a = _mm256_broadcast_ss(x + t * stride);
        sums.low[t] = _mm256_fmadd_ps(w.low, a, sums.low[t]);
        sums.high[t] = _mm256_fmadd_ps(w.high, a, sums.high[t]);
    }
}

// kTokens x 16 outputs; `continued` adds to what is in out (the earlier k).
template <typename Reader, int kTokens>
void tile(const std::byte* panel, std::int64_t cols, const float* x, std::int64_t stride, float* out,
          std::int64_t out_stride, bool continued) {
    Sums<kTokens> sums;
#pragma GCC unroll 8
    for (int t = 0; t < kTokens; ++t) {
        sums.low[t] = continued ? _mm256_loadu_ps(out + t * out_stride) : _mm256_setzero_ps();
        sums.high[t] = continued ? _mm256_loadu_ps(out + t * out_stride + 8) : _mm256_setzero_ps();
    }
    for (std::int64_t k = 0; k + 1 < cols; k += 2) {
        // See kPrefetchBytes in matmul_int8.cc. F32 alone needs none: one token then does little but read.
        if constexpr (kTokens == 1 && Reader::kPairBytes == 64)
            _mm_prefetch(reinterpret_cast<const char*>(panel + 2048), _MM_HINT_T0);
        multiply_add<kTokens>(Reader::even(panel), x + k, stride, sums);
        multiply_add<kTokens>(Reader::odd(panel), x + k + 1, stride, sums);
        panel += Reader::kPairBytes;
    }
    if (cols % 2 != 0) multiply_add<kTokens>(Reader::even(panel), x + cols - 1, stride, sums);
#pragma GCC unroll 8
    for (int t = 0; t < kTokens; ++t) {
        _mm256_storeu_ps(out + t * out_stride, sums.low[t]);
        _mm256_storeu_ps(out + t * out_stride + 8, sums.high[t]);
    }
}

// 6 tokens x 2 vectors of sums, two of weights and one of activations fill 15 of the 16 registers, and 12 independent
// chains cover the latency of 4 cycles at two multiply-adds per cycle.
constexpr int kTileTokens = 6;

template <typename Reader>
void all_tokens(const std::byte* panel, std::int64_t cols, const float* x, std::int64_t stride, int tokens, float* out,
                std::int64_t out_stride, bool continued) {
    for (; tokens >= kTileTokens; tokens -= kTileTokens) {
        tile<Reader, kTileTokens>(panel, cols, x, stride, out, out_stride, continued);
        x += kTileTokens * stride;
        out += kTileTokens * out_stride;
    }
    switch (tokens) {
        case 1:
            return tile<Reader, 1>(panel, cols, x, stride, out, out_stride, continued);
        case 2:
            return tile<Reader, 2>(panel, cols, x, stride, out, out_stride, continued);
        case 3:
            return tile<Reader, 3>(panel, cols, x, stride, out, out_stride, continued);
        case 4:
            return tile<Reader, 4>(panel, cols, x, stride, out, out_stride, continued);
        case 5:
            return tile<Reader, 5>(panel, cols, x, stride, out, out_stride, continued);
        default:
            return;
    }
}

void f32_panel_matmul(const std::byte* panel, std::int64_t cols, const float* activations,
                      std::int64_t activation_stride, int tokens, float* out, std::int64_t out_stride) {
    all_tokens<F32Reader>(panel, cols, activations, activation_stride, tokens, out, out_stride, false);
}

// Widening competes with the multiply-adds (six tokens of F16 take twice the time of F32), so that for more tokens a
// stretch of k is widened once: 128 k x 16 rows are 8 KiB, a quarter of the usual first-level cache.
constexpr std::int64_t kStretch = 128;

template <typename Reader>
void widened_panel_matmul(const std::byte* panel, std::int64_t cols, const float* activations,
                          std::int64_t activation_stride, int tokens, float* out, std::int64_t out_stride) {
    if (tokens <= kTileTokens) {
        all_tokens<Reader>(panel, cols, activations, activation_stride, tokens, out, out_stride, false);
        return;
    }
    alignas(64) float widened[kStretch * kPanelRows];
    for (std::int64_t k = 0; k < cols; k += kStretch) {
        const std::int64_t count = cols - k < kStretch ? cols - k : kStretch;
        for (std::int64_t i = 0; i < count; i += 2) {  // an odd last k has a padding partner in the panel
            const std::byte* pair = panel + (k + i) / 2 * Reader::kPairBytes;
            const Weights even = Reader::even(pair);
            const Weights odd = Reader::odd(pair);
            _mm256_store_ps(widened + i * kPanelRows, even.low);
            _mm256_store_ps(widened + i * kPanelRows + 8, even.high);
            _mm256_store_ps(widened + i * kPanelRows + 16, odd.low);
            _mm256_store_ps(widened + i * kPanelRows + 24, odd.high);
        }
        all_tokens<F32Reader>(reinterpret_cast<const std::byte*>(widened), count, activations + k, activation_stride,
                              tokens, out, out_stride, k > 0);
    }
}

}  // namespace

void fill_matmul_float(KernelTable& table) {
    table.float_panel[static_cast<int>(DType::kF32)] = f32_panel_matmul;
    table.float_panel[static_cast<int>(DType::kF16)] = widened_panel_matmul<F16Reader>;
    table.float_panel[static_cast<int>(DType::kBF16)] = widened_panel_matmul<BF16Reader>;
}

}  // namespace frontier::avx2

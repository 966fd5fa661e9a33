// Integer kernels with AVX2. The order of the f32 operations is that of scalar/matmul_int8.cc.
//
// maddubs multiplies unsigned weights by signed activations and adds pairs into int16, which holds the sum of eight
// words of 4-bit weights (8 * 2 * 15 * 127 = 30480), of four of 5 bits (31496), of two of 6 bits (32004). 8-bit weights
// lend their sign to the activations; one pair, 32512, is all that fits. (Widening them to int16, or two 4-bit planes,
// are four operations per 32 products as well, and took as long: Zen 3, three integer vector operations per cycle. Nor
// was it faster to take the magnitudes once for all tokens.)
//
// Few tokens (kDirectTokens) read the panel as it lies, a tile of tokens at a time. More tokens share the work of
// unpacking: a stretch of kStretchBlocks blocks is unpacked to bytes on the stack, then all tokens pass over it, the
// sums of the earlier k waiting in `out`.
#include <immintrin.h>

#include "kernels/isa_functions.h"

namespace frontier::avx2 {
namespace {

#include "kernels/shared/int8_lanes_avx2.inc"
#include "kernels/shared/int8_types.inc"

FR_INLINE __m256i broadcast4(const void* p) {
    std::int32_t word;
    __builtin_memcpy(&word, p, 4);
    return _mm256_set1_epi32(word);
}

// Pins a running sum: GCC would turn a chain of additions into a tree, whose leaves do not fit the registers (the tiles
// of 4 tokens then spent more instructions on spilling than on arithmetic).
FR_INLINE void pin(__m256i& sum) {
    asm("" : "+x"(sum));
}

// The activations of a tile of tokens from some block on.
struct Activations {
    const std::int8_t* quants;
    const float* scales;
    const float* scaled_sums;
    const std::int16_t* sums;
    std::int64_t cols;

    FR_INLINE __m256i word(int token, int w) const { return broadcast4(quants + token * cols + 4 * w); }
    FR_INLINE __m256 scale(int token) const { return _mm256_broadcast_ss(scales + token * (cols / 32)); }
    FR_INLINE __m256 scaled_sum(int token) const { return _mm256_broadcast_ss(scaled_sums + token * (cols / 32)); }
    FR_INLINE __m256i sum_pair(int token) const { return broadcast4(sums + token * (cols / 16)); }
    FR_INLINE void advance(int blocks) {
        quants += 32 * blocks;
        scales += blocks;
        scaled_sums += blocks;
        sums += 2 * blocks;
    }
};

// A block of 32 k unpacked: words of unsigned bytes (signed for 8 bits), scales as f32.
template <typename Type>
struct Unpacked {
    alignas(64) std::byte bytes[512];
    __m256 scales[kHalves];
    __m256 mins[Type::kHasMin ? kHalves : 0];
    __m256i group_scales[Type::kHasGroups ? 2 : 0][kHalves];

    FR_INLINE Bytes word(int w, int h) const { return load_bytes(bytes + word_at(w, h)); }
    FR_INLINE Floats scale(int h) const { return scales[h]; }
    FR_INLINE Floats min(int h) const { return mins[h]; }
    FR_INLINE GroupScale group_scale(int group, int h) const { return group_scales[group][h]; }
    FR_INLINE void set(const Type& from) {
        FR_UNROLL
        for (int h = 0; h < kHalves; ++h) {
            FR_UNROLL
            for (int w = 0; w < 8; ++w)
                _mm256_store_si256(reinterpret_cast<__m256i*>(bytes + word_at(w, h)), from.word(w, h));
            scales[h] = from.scale(h);
            if constexpr (Type::kHasMin) mins[h] = from.min(h);
            if constexpr (Type::kHasGroups)
                for (int group = 0; group < 2; ++group) group_scales[group][h] = from.group_scale(group, h);
        }
    }
};

// What multiplies the int16 sums of the words from `w` on.
template <typename Type, typename Block>
FR_INLINE __m256i factor(const Block& block, int w, int h) {
    if constexpr (Type::kHasGroups) {
        return block.group_scale(w / 4, h);
    } else {
        return _mm256_set1_epi16(1);
    }
}

// dots[t][h] = the block's exact sums of quant * x (times the groups' scales), int32 lanes.
template <typename Type, int kTokens, typename Block>
FR_INLINE void block_dots(const Block& block, const Activations& x, __m256i (&dots)[kTokens][kHalves]) {
    constexpr int kWords = Type::kBits == 4 ? 8 : Type::kBits == 5 ? 4 : Type::kBits == 6 ? 2 : 1;  // per int16 sum
    FR_UNROLL
    for (int first = 0; first < 8; first += kWords) {
        __m256i sums[kTokens][kHalves];
        FR_UNROLL
        for (int w = first; w < first + kWords; ++w) {
            FR_UNROLL
            for (int h = 0; h < kHalves; ++h) {
                const Bytes q = block.word(w, h);
                const Bytes magnitude = Type::kBits == 8 ? _mm256_abs_epi8(q) : q;
                FR_UNROLL
                for (int t = 0; t < kTokens; ++t) {
                    const __m256i a = x.word(t, w);
                    const __m256i p = _mm256_maddubs_epi16(magnitude, Type::kBits == 8 ? _mm256_sign_epi8(a, q) : a);
                    sums[t][h] = w == first ? p : _mm256_add_epi16(sums[t][h], p);
                    pin(sums[t][h]);
                }
            }
        }
        FR_UNROLL
        for (int h = 0; h < kHalves; ++h) {
            const __m256i s = factor<Type>(block, first, h);
            FR_UNROLL
            for (int t = 0; t < kTokens; ++t) {
                const __m256i d = _mm256_madd_epi16(sums[t][h], s);
                dots[t][h] = first == 0 ? d : _mm256_add_epi32(dots[t][h], d);
                if (first > 0) pin(dots[t][h]);
            }
        }
    }
}

// sums[t][h] += the block's products.
template <typename Type, int kTokens, typename Block>
FR_INLINE void add_block(const Block& block, const Activations& x, __m256 (&sums)[kTokens][kHalves]) {
    __m256i dots[kTokens][kHalves];
    block_dots<Type, kTokens>(block, x, dots);
    FR_UNROLL
    for (int t = 0; t < kTokens; ++t) {
        const __m256 a = x.scale(t);
        FR_UNROLL
        for (int h = 0; h < kHalves; ++h) {
            __m256i isum = dots[t][h];
            if constexpr (Type::kHasGroups) {  // the zero point times both scales: at most 32 * 128, so int16 holds it
                static_assert(Type::kZeroPoint == 32);
                const __m256i both = _mm256_blend_epi16(block.group_scale(0, h), block.group_scale(1, h), 0xAA);
                isum = _mm256_sub_epi32(isum, _mm256_madd_epi16(x.sum_pair(t), _mm256_slli_epi16(both, 5)));
            } else if constexpr (Type::kZeroPoint != 0) {
                isum = _mm256_add_epi32(isum, _mm256_madd_epi16(x.sum_pair(t), _mm256_set1_epi16(-Type::kZeroPoint)));
            }
            sums[t][h] = _mm256_fmadd_ps(_mm256_mul_ps(block.scale(h), a), _mm256_cvtepi32_ps(isum), sums[t][h]);
        }
        if constexpr (Type::kHasMin) {
            const __m256 scaled_sum = x.scaled_sum(t);
            FR_UNROLL
            for (int h = 0; h < kHalves; ++h) sums[t][h] = _mm256_fnmadd_ps(block.min(h), scaled_sum, sums[t][h]);
        }
    }
}

template <int kTokens>
FR_INLINE void store(const __m256 (&sums)[kTokens][kHalves], float* out, std::int64_t out_stride) {
    FR_UNROLL
    for (int t = 0; t < kTokens; ++t) {
        _mm256_storeu_ps(out + t * out_stride, sums[t][0]);
        _mm256_storeu_ps(out + t * out_stride + 8, sums[t][1]);
    }
}

// kTokens x 16 outputs of each of kPanels panels.
template <typename Type, int kTokens, int kPanels>
[[gnu::noinline]] void direct(const std::byte* panels, std::int64_t panel_bytes, std::int64_t blocks, Activations x,
                              float* out, std::int64_t out_stride, bool prefetch) {
    __m256 sums[kPanels][kTokens][kHalves] = {};
    const auto add = [&](const std::byte* packed, int sub) __attribute__((always_inline)) {
        FR_UNROLL
        for (int p = 0; p < kPanels; ++p) add_block<Type, kTokens>(Type(packed + p * panel_bytes, sub), x, sums[p]);
        x.advance(1);
    };
    for_blocks<Type, kPanels>(panels, panel_bytes, blocks, prefetch, add);
    for (int p = 0; p < kPanels; ++p) store<kTokens>(sums[p], out + p * kPanelRows, out_stride);
}

template <typename Type, int kTokens>
[[gnu::noinline]] void over_unpacked(const Unpacked<Type>* unpacked, int blocks, Activations x, float* out,
                                     std::int64_t out_stride, bool continued) {
    __m256 sums[kTokens][kHalves] = {};
    if (continued) {
        for (int t = 0; t < kTokens; ++t) {
            sums[t][0] = _mm256_loadu_ps(out + t * out_stride);
            sums[t][1] = _mm256_loadu_ps(out + t * out_stride + 8);
        }
    }
    for (int b = 0; b < blocks; ++b) {
        add_block<Type, kTokens>(unpacked[b], x, sums);
        x.advance(1);
    }
    store<kTokens>(sums, out, out_stride);
}

// 4 tokens x 2 vectors of int16 sums leave 8 registers for weights, activations and some of the f32 sums. Three tokens,
// whose sums would all fit, were no faster, and two halves of a tile, one after the other, slower (Zen 3).
constexpr int kTileTokens = 4;
// Unpacked, 8 KiB of bytes and up to 4 KiB of scales: with the activations of a tile well inside a 32 KiB L1.
constexpr int kStretchBlocks = 16;
// Up to this many tokens the panel is read as it lies; the values are where the times crossed (Zen 3).
template <typename Type>
constexpr int kDirectTokens = Type::kBits == 8                    ? 1 << 30
                              : Type::kHasMin || Type::kHasGroups ? 4
                                                                  : 24;

Activations at_token(const Q8Activations& activations, int token, std::int64_t block) {
    const std::int64_t cols = activations.cols;
    Activations x = {activations.quants + token * cols, activations.scales + token * (cols / 32),
                     activations.scaled_sums + token * (cols / 32), activations.sums + token * (cols / 16), cols};
    x.advance(static_cast<int>(block));
    return x;
}

// f(token, count) for tiles of kTileTokens and what is left over, the count as a constant.
template <typename F>
FR_INLINE void for_tiles(int tokens, const F& f) {
    int t = 0;
    for (; t + kTileTokens <= tokens; t += kTileTokens) f.template operator()<kTileTokens>(t);
    switch (tokens - t) {
        case 1:
            return f.template operator()<1>(t);
        case 2:
            return f.template operator()<2>(t);
        case 3:
            return f.template operator()<3>(t);
        default:
            return;
    }
}

// A stretch of k of all panels before the next one, so that the tokens' activations there stay in L2.
template <typename Type>
void over_stretches(const std::byte* panels, int count, const Q8Activations& activations, int tokens, float* out,
                    std::int64_t out_stride) {
    const std::int64_t blocks = activations.cols / kQ8Block;
    const std::int64_t panel_bytes = blocks / Type::kSuperBlocks * Type::kBytes;
    Unpacked<Type> unpacked[kStretchBlocks];
    for (std::int64_t first = 0; first < blocks; first += kStretchBlocks) {
        const int stretch = static_cast<int>(blocks - first < kStretchBlocks ? blocks - first : kStretchBlocks);
        for (int p = 0; p < count; ++p) {
            for (int b = 0; b < stretch; ++b) {
                const std::int64_t block = first + b;
                unpacked[b].set(Type(panels + p * panel_bytes + block / Type::kSuperBlocks * Type::kBytes,
                                     static_cast<int>(block % Type::kSuperBlocks)));
            }
            float* panel_out = out + p * kPanelRows;
            for_tiles(tokens, [&]<int kTokens>(int t) {
                over_unpacked<Type, kTokens>(unpacked, stretch, at_token(activations, t, first),
                                             panel_out + t * out_stride, out_stride, first > 0);
            });
        }
    }
}

// One token reads two panels side by side: two streams of requests gain 3 to 8% of bandwidth over one (Q4_0, Q8_0,
// Q4_K, Q5_K, Q6_K on Zen 3; with four some types gain as much again and others lose a tenth). More tokens take panel
// by panel, of which the first tile of tokens brings each into the caches.
template <typename Type>
void as_it_lies(const std::byte* panels, int count, const Q8Activations& activations, int tokens, float* out,
                std::int64_t out_stride) {
    const std::int64_t blocks = activations.cols / kQ8Block;
    const std::int64_t panel_bytes = blocks / Type::kSuperBlocks * Type::kBytes;
    int p = 0;
    for (; tokens == 1 && p + kPanelsSideBySide <= count; p += kPanelsSideBySide)
        direct<Type, 1, kPanelsSideBySide>(panels + p * panel_bytes, panel_bytes, blocks, at_token(activations, 0, 0),
                                           out + p * kPanelRows, out_stride, true);
    for (; p < count; ++p) {
        for_tiles(tokens, [&]<int kTokens>(int t) {
            direct<Type, kTokens, 1>(panels + p * panel_bytes, panel_bytes, blocks, at_token(activations, t, 0),
                                     out + p * kPanelRows + t * out_stride, out_stride, t == 0);
        });
    }
}

template <typename Type>
void panels_matmul(const std::byte* panels, int count, const Q8Activations& activations, int tokens, float* out,
                   std::int64_t out_stride) {
    if (tokens > kDirectTokens<Type>)
        over_stretches<Type>(panels, count, activations, tokens, out, out_stride);
    else
        as_it_lies<Type>(panels, count, activations, tokens, out, out_stride);
}

}  // namespace

void fill_matmul_int8(KernelTable& table) {
    table.int8_panels[static_cast<int>(DType::kQ4_0)] = panels_matmul<Q4_0>;
    table.int8_panels[static_cast<int>(DType::kQ8_0)] = panels_matmul<Q8_0>;
    table.int8_panels[static_cast<int>(DType::kQ4_K)] = panels_matmul<Q4_K>;
    table.int8_panels[static_cast<int>(DType::kQ5_K)] = panels_matmul<Q5_K>;
    table.int8_panels[static_cast<int>(DType::kQ6_K)] = panels_matmul<Q6_K>;
}

}  // namespace frontier::avx2

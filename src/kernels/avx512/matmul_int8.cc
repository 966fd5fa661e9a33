// Integer kernels with AVX-512: one vector holds four k of the 16 rows of a panel. The order of the f32 operations is
// that of scalar/matmul_int8.cc. Compiled twice: with VNNI (dpbusd adds four products to int32 at once) and without
// (maddubs; the int16 bounds are those of avx2/matmul_int8.cc).
//
// A block of 32 k is unpacked into 8 vectors of unsigned bytes, which kTileTokens tokens then share; that costs about
// a tenth of the arithmetic, so no copy is kept.
#include "kernels/avx512/intrinsics.h"
#include "kernels/isa_functions.h"

#ifndef FR_AVX512_NAMESPACE
#define FR_AVX512_NAMESPACE avx512
#define FR_AVX512_VNNI 0
#endif

namespace frontier::FR_AVX512_NAMESPACE {
namespace {

#ifndef FR_INLINE
#define FR_INLINE [[gnu::always_inline]] inline
#define FR_UNROLL _Pragma("GCC unroll 16")
// Keeps GCC from turning a chain of additions into a tree, whose leaves would not fit the registers.
#ifdef FR_AVX512_EMULATED
#define FR_PIN(sum)
#else
#define FR_PIN(sum) asm("" : "+v"(sum))
#endif
#endif

FR_INLINE __m512i load(const std::byte* p) {
    return _mm512_loadu_si512(p);
}
FR_INLINE __m128i load16(const std::byte* p) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
}
FR_INLINE __m512 load_f16(const std::byte* p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
FR_INLINE __m512i broadcast4(const void* p) {
    std::int32_t word;
    __builtin_memcpy(&word, p, 4);
    return _mm512_set1_epi32(word);
}

// The activations of a tile of tokens from some block on.
struct Activations {
    const std::int8_t* quants;
    const float* scales;
    const std::int16_t* sums;
    std::int64_t cols;

    FR_INLINE __m512i word(int token, int w) const { return broadcast4(quants + token * cols + 4 * w); }
    FR_INLINE __m512 scale(int token) const { return _mm512_set1_ps(scales[token * (cols / 32)]); }
    FR_INLINE std::int32_t sum16(int token, int group) const { return sums[token * (cols / 16) + group]; }
    FR_INLINE std::int32_t sum32(int token) const { return sum16(token, 0) + sum16(token, 1); }
    FR_INLINE void advance() {
        quants += 32;
        scales += 1;
        sums += 2;
    }
};

struct Words {
    __m512i of[8];
};

FR_INLINE Words unpack_nibbles(const std::byte* nibbles) {
    const __m512i mask = _mm512_set1_epi8(15);
    Words words;
    FR_UNROLL
    for (int w = 0; w < 4; ++w) {
        const __m512i v = load(nibbles + 64 * w);
        words.of[w] = _mm512_and_si512(v, mask);
        words.of[4 + w] = _mm512_and_si512(_mm512_srli_epi16(v, 4), mask);
    }
    return words;
}

// acc + (scale * a) * f32(isum)
FR_INLINE __m512 add_scaled(__m512 acc, __m512 scale, __m512 a, __m512i isum) {
    return _mm512_add_ps(acc, _mm512_mul_ps(_mm512_mul_ps(scale, a), _mm512_cvtepi32_ps(isum)));
}

#if FR_AVX512_VNNI

// start + sum over 8 words of words * x
FR_INLINE __m512i nibble_dot(const Words& words, const Activations& x, int token, std::int32_t start) {
    __m512i dot = _mm512_set1_epi32(start);
    FR_UNROLL
    for (int w = 0; w < 8; ++w) dot = _mm512_dpbusd_epi32(dot, words.of[w], x.word(token, w));
    return dot;
}

#else

FR_INLINE __m512i nibble_dot(const Words& words, const Activations& x, int token, std::int32_t start) {
    __m512i dot = _mm512_maddubs_epi16(words.of[0], x.word(token, 0));
    FR_UNROLL
    for (int w = 1; w < 8; ++w) {
        dot = _mm512_add_epi16(dot, _mm512_maddubs_epi16(words.of[w], x.word(token, w)));
        FR_PIN(dot);
    }
    return _mm512_add_epi32(_mm512_madd_epi16(dot, _mm512_set1_epi16(1)), _mm512_set1_epi32(start));
}

#endif

struct Q4_0 {
    Words words;
    __m512 scale;
    FR_INLINE Q4_0(const std::byte* panel, std::int64_t b)
        : words(unpack_nibbles(panel + 288 * b + 32)), scale(load_f16(panel + 288 * b)) {}
    FR_INLINE __m512 add(__m512 acc, const Activations& x, int token) const {
        return add_scaled(acc, scale, x.scale(token), nibble_dot(words, x, token, -8 * x.sum32(token)));
    }
};

struct Q4_K {
    Words words;
    __m512 scale;
    __m512 min;
    FR_INLINE Q4_K(const std::byte* panel, std::int64_t b) {
        const std::byte* superblock = panel + 2368 * (b / 8);
        const std::int64_t j = b % 8;
        words = unpack_nibbles(superblock + 320 + 256 * j);
        scale = _mm512_mul_ps(load_f16(superblock),
                              _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(load16(superblock + 64 + 16 * j))));
        min = _mm512_mul_ps(load_f16(superblock + 32),
                            _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(load16(superblock + 192 + 16 * j))));
    }
    FR_INLINE __m512 add(__m512 acc, const Activations& x, int token) const {
        const __m512 a = x.scale(token);
        acc = add_scaled(acc, scale, a, nibble_dot(words, x, token, 0));
        const __m512 scaled_sum = _mm512_mul_ps(a, _mm512_cvtepi32_ps(_mm512_set1_epi32(x.sum32(token))));
        return _mm512_sub_ps(acc, _mm512_mul_ps(min, scaled_sum));
    }
};

struct Q6_K {
    Words words;  // 0..63
    __m512 scale;
    __m512i group_scale[2];  // of 16 k each, int32
    FR_INLINE Q6_K(const std::byte* panel, std::int64_t b) {
        const std::byte* superblock = panel + 3360 * (b / 8);
        const std::int64_t j = b % 8;
        const std::byte* nibbles = superblock + 288 + 384 * j;
        const __m512i mask = _mm512_set1_epi8(0x30);
        words = unpack_nibbles(nibbles);
        FR_UNROLL
        for (int h = 0; h < 2; ++h) {
            const __m512i pairs = load(nibbles + 256 + 64 * h);
            const __m512i high[4] = {_mm512_slli_epi16(pairs, 4), _mm512_slli_epi16(pairs, 2), pairs,
                                     _mm512_srli_epi16(pairs, 2)};
            FR_UNROLL
            for (int s = 0; s < 4; ++s)
                words.of[2 * s + h] = _mm512_or_si512(words.of[2 * s + h], _mm512_and_si512(high[s], mask));
            group_scale[h] = _mm512_cvtepi8_epi32(load16(superblock + 32 + 16 * (2 * j + h)));
        }
        scale = load_f16(superblock);
    }
    // Sum of (q - 32) * x over 16 k.
    FR_INLINE __m512i group_dot(const Activations& x, int token, int group) const {
        const __m512i offset = _mm512_set1_epi32(-32 * x.sum16(token, group));
        const int w = 4 * group;
#if FR_AVX512_VNNI
        __m512i dot = offset;
        FR_UNROLL
        for (int i = 0; i < 4; ++i) dot = _mm512_dpbusd_epi32(dot, words.of[w + i], x.word(token, w + i));
        return dot;
#else
        const __m512i ones = _mm512_set1_epi16(1);
        const __m512i first = _mm512_add_epi16(_mm512_maddubs_epi16(words.of[w], x.word(token, w)),
                                               _mm512_maddubs_epi16(words.of[w + 1], x.word(token, w + 1)));
        const __m512i second = _mm512_add_epi16(_mm512_maddubs_epi16(words.of[w + 2], x.word(token, w + 2)),
                                                _mm512_maddubs_epi16(words.of[w + 3], x.word(token, w + 3)));
        return _mm512_add_epi32(_mm512_add_epi32(_mm512_madd_epi16(first, ones), _mm512_madd_epi16(second, ones)),
                                offset);
#endif
    }
    FR_INLINE __m512 add(__m512 acc, const Activations& x, int token) const {
        const __m512i isum = _mm512_add_epi32(_mm512_mullo_epi32(group_dot(x, token, 0), group_scale[0]),
                                              _mm512_mullo_epi32(group_dot(x, token, 1), group_scale[1]));
        return add_scaled(acc, scale, x.scale(token), isum);
    }
};

// The weights are q + 128, 0..255, corrected by -128 * sum(x). Without VNNI they are split into two 4-bit planes.
struct Q8_0 {
#if FR_AVX512_VNNI
    Words words;
#else
    Words high;
    Words low;
#endif
    __m512 scale;
    FR_INLINE Q8_0(const std::byte* panel, std::int64_t b) {
        const std::byte* block = panel + 544 * b;
        scale = load_f16(block);
        FR_UNROLL
        for (int w = 0; w < 8; ++w) {
            const __m512i q = _mm512_xor_si512(load(block + 32 + 64 * w), _mm512_set1_epi8(-128));
#if FR_AVX512_VNNI
            words.of[w] = q;
#else
            const __m512i mask = _mm512_set1_epi8(15);
            high.of[w] = _mm512_and_si512(_mm512_srli_epi16(q, 4), mask);
            low.of[w] = _mm512_and_si512(q, mask);
#endif
        }
    }
    FR_INLINE __m512 add(__m512 acc, const Activations& x, int token) const {
        const std::int32_t offset = -128 * x.sum32(token);
#if FR_AVX512_VNNI
        const __m512i isum = nibble_dot(words, x, token, offset);
#else
        const __m512i isum =
            _mm512_add_epi32(_mm512_slli_epi32(nibble_dot(high, x, token, 0), 4), nibble_dot(low, x, token, offset));
#endif
        return add_scaled(acc, scale, x.scale(token), isum);
    }
};

template <typename Format, int kTokens>
void tile(const std::byte* panel, std::int64_t blocks, Activations x, float* out, std::int64_t out_stride) {
    __m512 sums[kTokens];
    FR_UNROLL
    for (int t = 0; t < kTokens; ++t) sums[t] = _mm512_setzero_ps();
    for (std::int64_t b = 0; b < blocks; ++b) {
        const Format block(panel, b);
        FR_UNROLL
        for (int t = 0; t < kTokens; ++t) sums[t] = block.add(sums[t], x, t);
        x.advance();
    }
    FR_UNROLL
    for (int t = 0; t < kTokens; ++t) _mm512_storeu_ps(out + t * out_stride, sums[t]);
}

// Eight sums, eight words of weights and the block's scales leave room among 32 registers for what is in flight.
constexpr int kTileTokens = 8;

Activations at_token(const Q8Activations& activations, int token) {
    const std::int64_t cols = activations.cols;
    return {activations.quants + token * cols, activations.scales + token * (cols / 32),
            activations.sums + token * (cols / 16), cols};
}

template <typename Format>
void panel_matmul(const std::byte* panel, const Q8Activations& activations, int tokens, float* out,
                  std::int64_t out_stride) {
    const std::int64_t blocks = activations.cols / kQ8Block;
    int t = 0;
    for (; tokens - t >= kTileTokens; t += kTileTokens)
        tile<Format, kTileTokens>(panel, blocks, at_token(activations, t), out + t * out_stride, out_stride);
    for (; tokens - t >= 4; t += 4)
        tile<Format, 4>(panel, blocks, at_token(activations, t), out + t * out_stride, out_stride);
    for (; tokens - t >= 2; t += 2)
        tile<Format, 2>(panel, blocks, at_token(activations, t), out + t * out_stride, out_stride);
    if (tokens - t == 1) tile<Format, 1>(panel, blocks, at_token(activations, t), out + t * out_stride, out_stride);
}

}  // namespace

void fill_matmul_int8(KernelTable& table) {
    table.int8_panel[static_cast<int>(DType::kQ4_0)] = panel_matmul<Q4_0>;
    table.int8_panel[static_cast<int>(DType::kQ8_0)] = panel_matmul<Q8_0>;
    table.int8_panel[static_cast<int>(DType::kQ4_K)] = panel_matmul<Q4_K>;
    table.int8_panel[static_cast<int>(DType::kQ6_K)] = panel_matmul<Q6_K>;
}

}  // namespace frontier::FR_AVX512_NAMESPACE

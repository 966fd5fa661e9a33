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

#include "kernels/shared/int8_lanes_avx512.inc"
#include "kernels/shared/int8_types.inc"

// Keeps GCC from turning a chain of additions into a tree, whose leaves would not fit the registers.
FR_INLINE void pin([[maybe_unused]] __m512i& sum) {
#ifndef FR_AVX512_EMULATED
    asm("" : "+v"(sum));
#endif
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
    const float* scaled_sums;
    const std::int16_t* sums;
    std::int64_t cols;

    FR_INLINE __m512i word(int token, int w) const { return broadcast4(quants + token * cols + 4 * w); }
    FR_INLINE float scale(int token) const { return scales[token * (cols / 32)]; }
    FR_INLINE float scaled_sum(int token) const { return scaled_sums[token * (cols / 32)]; }
    FR_INLINE std::int32_t sum16(int token, int group) const { return sums[token * (cols / 16) + group]; }
    FR_INLINE std::int32_t sum32(int token) const { return sum16(token, 0) + sum16(token, 1); }
    FR_INLINE void advance() {
        quants += 32;
        scales += 1;
        scaled_sums += 1;
        sums += 2;
    }
};

// start + the sum of q[w] * x over words first .. first + count - 1; quants are unsigned and below 2^bits.
#if FR_AVX512_VNNI

template <int bits, int count>
FR_INLINE __m512i dot(const Bytes* q, int first, const Activations& x, int token, std::int32_t start) {
    __m512i sum = _mm512_set1_epi32(start);
    FR_UNROLL
    for (int w = first; w < first + count; ++w) sum = _mm512_dpbusd_epi32(sum, q[w], x.word(token, w));
    return sum;
}

#else

template <int bits, int count>
FR_INLINE __m512i dot(const Bytes* q, int first, const Activations& x, int token, std::int32_t start) {
    constexpr int kMostWords = bits == 4 ? 8 : bits == 5 ? 4 : 2;  // that int16 holds
    constexpr int kWords = kMostWords < count ? kMostWords : count;
    __m512i sum = _mm512_set1_epi32(start);
    FR_UNROLL
    for (int w = first; w < first + count; w += kWords) {
        __m512i part = _mm512_maddubs_epi16(q[w], x.word(token, w));
        FR_UNROLL
        for (int i = 1; i < kWords; ++i) {
            part = _mm512_add_epi16(part, _mm512_maddubs_epi16(q[w + i], x.word(token, w + i)));
            pin(part);
        }
        sum = _mm512_add_epi32(sum, _mm512_madd_epi16(part, _mm512_set1_epi16(1)));
    }
    return sum;
}

#endif

// The quants of a block of 32 k as unsigned bytes, and its exact sums with activations.
template <typename Type>
struct Quants {
    Bytes q[8];
    FR_INLINE explicit Quants(const Type& block) {
        FR_UNROLL
        for (int w = 0; w < 8; ++w) q[w] = block.word(w, 0);
    }
    FR_INLINE __m512i isum(const Activations& x, int token) const {
        return dot<Type::kBits, 8>(q, 0, x, token, -Type::kZeroPoint * x.sum32(token));
    }
};

// Signed quants become q + 128, 0..255, corrected by -128 * sum(x). Without VNNI they are split into two 4-bit planes.
template <>
struct Quants<Q8_0> {
    Bytes q[8];
    FR_INLINE explicit Quants(const Q8_0& block) {
        FR_UNROLL
        for (int w = 0; w < 8; ++w) q[w] = _mm512_xor_si512(block.word(w, 0), _mm512_set1_epi8(-128));
    }
    FR_INLINE __m512i isum(const Activations& x, int token) const {
        const std::int32_t start = -128 * x.sum32(token);
#if FR_AVX512_VNNI
        return dot<8, 8>(q, 0, x, token, start);
#else
        Bytes low[8];
        Bytes high[8];
        FR_UNROLL
        for (int w = 0; w < 8; ++w) {
            low[w] = low_bits<4>(q[w]);
            high[w] = low_bits<4>(shifted_right<4>(q[w]));
        }
        const __m512i high_sum = dot<4, 8>(high, 0, x, token, 0);
        const __m512i low_sum = dot<4, 8>(low, 0, x, token, start);
        return _mm512_add_epi32(_mm512_slli_epi32(high_sum, 4), low_sum);
#endif
    }
};

// A block of 32 k, read once for a tile of tokens.
template <typename Type>
struct Block {
    Quants<Type> quants;
    Floats scale;
    Floats min;
    GroupScale group_scale[2];
    FR_INLINE explicit Block(const Type& block) : quants(block), scale(block.scale(0)) {
        if constexpr (Type::kHasMin) min = block.min(0);
        if constexpr (Type::kHasGroups)
            for (int group = 0; group < 2; ++group) group_scale[group] = block.group_scale(group, 0);
    }
    FR_INLINE Floats isum(const Activations& x, int token) const {
        if constexpr (Type::kHasGroups) {
            Floats parts[2];
            FR_UNROLL
            for (int g = 0; g < 2; ++g) {
                const std::int32_t start = -Type::kZeroPoint * x.sum16(token, g);
                const __m512i part = dot<Type::kBits, 4>(quants.q, 4 * g, x, token, start);
                parts[g] = _mm512_cvtepi32_ps(part);
            }
            return _mm512_fmadd_ps(parts[1], group_scale[1], times(parts[0], group_scale[0]));
        } else {
            return _mm512_cvtepi32_ps(quants.isum(x, token));
        }
    }
    FR_INLINE void add(Floats& sum, const Activations& x, int token) const {
        const float a = x.scale(token);
        sum = _mm512_fmadd_ps(times(scale, _mm512_set1_ps(a)), isum(x, token), sum);
        if constexpr (Type::kHasMin) sum = _mm512_fnmadd_ps(min, _mm512_set1_ps(x.scaled_sum(token)), sum);
    }
};

template <typename Type, int kTokens>
[[gnu::noinline]] void tile(const std::byte* panel, std::int64_t blocks, Activations x, float* out,
                            std::int64_t out_stride, bool prefetch) {
    Floats sums[kTokens];
    FR_UNROLL
    for (int t = 0; t < kTokens; ++t) sums[t] = _mm512_setzero_ps();
    for_blocks<Type>(panel, 0, blocks, prefetch, [&](const std::byte* packed, int sub) __attribute__((always_inline)) {
        const Block<Type> block(Type(packed, sub));
        FR_UNROLL
        for (int t = 0; t < kTokens; ++t) block.add(sums[t], x, t);
        x.advance();
    });
    FR_UNROLL
    for (int t = 0; t < kTokens; ++t) _mm512_storeu_ps(out + t * out_stride, sums[t]);
}

// Eight sums, eight words of weights and the block's scales leave room among 32 registers for what is in flight.
constexpr int kTileTokens = 8;

Activations at_token(const Q8Activations& activations, int token) {
    const std::int64_t cols = activations.cols;
    return {activations.quants + token * cols, activations.scales + token * (cols / 32),
            activations.scaled_sums + token * (cols / 32), activations.sums + token * (cols / 16), cols};
}

template <typename Type>
void panels_matmul(const std::byte* panels, int count, const Q8Activations& activations, int tokens, float* out,
                   std::int64_t out_stride) {
    const std::int64_t blocks = activations.cols / kQ8Block;
    const std::int64_t bytes = blocks / Type::kSuperBlocks * Type::kBytes;
    for (int p = 0; p < count; ++p) {  // the first tile brings the panel into the caches
        const std::byte* panel = panels + p * bytes;
        float* to = out + p * kPanelRows;
        int t = 0;
        const auto run = [&]<int kTokens>() {
            tile<Type, kTokens>(panel, blocks, at_token(activations, t), to + t * out_stride, out_stride, t == 0);
            t += kTokens;
        };
        while (tokens - t >= kTileTokens) run.template operator()<kTileTokens>();
        if (tokens - t >= 4) run.template operator()<4>();
        if (tokens - t >= 2) run.template operator()<2>();
        if (tokens - t >= 1) run.template operator()<1>();
    }
}

}  // namespace

void fill_matmul_int8(KernelTable& table) {
    table.int8_panels[static_cast<int>(DType::kQ4_0)] = panels_matmul<Q4_0>;
    table.int8_panels[static_cast<int>(DType::kQ8_0)] = panels_matmul<Q8_0>;
    table.int8_panels[static_cast<int>(DType::kQ4_K)] = panels_matmul<Q4_K>;
    table.int8_panels[static_cast<int>(DType::kQ5_K)] = panels_matmul<Q5_K>;
    table.int8_panels[static_cast<int>(DType::kQ6_K)] = panels_matmul<Q6_K>;
}

}  // namespace frontier::FR_AVX512_NAMESPACE

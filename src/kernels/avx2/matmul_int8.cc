// Integer kernels with AVX2. The order of the f32 operations is that of scalar/matmul_int8.cc.
//
// maddubs multiplies unsigned weights by signed activations and adds pairs into int16. For 4-bit weights a lane of a
// block of 32 k sums 8 pairs of at most 2 * 15 * 127, 30480 in all: the whole block fits int16, and one madd finishes
// it. 6-bit weights reach 2 * 2 * 63 * 127 = 32004 after two pairs. 8-bit ones lend their sign to the activations; one
// pair, 32512, is all that fits. (Widening them to int16, or two 4-bit planes, took as long or longer: Zen 3.)
//
// Few tokens (Format::kDirectTokens; the values are where the times crossed on Zen 3) read the panel as it lies, a tile
// of tokens at a time. More tokens share the work of unpacking: a stretch of kStretchBlocks blocks is unpacked to bytes
// on the stack, then all tokens pass over it, the sums of the earlier k waiting in `out`.
#include <immintrin.h>

#include <climits>

#include "kernels/isa_functions.h"

namespace frontier::avx2 {
namespace {

#define FR_INLINE [[gnu::always_inline]] inline
#define FR_UNROLL _Pragma("GCC unroll 16")

FR_INLINE __m256i load(const std::byte* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
}
FR_INLINE __m256i load_u8_as_i32(const std::byte* p) {
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
}
FR_INLINE __m256i load_i8_as_i32(const std::byte* p) {
    return _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
}
FR_INLINE __m256 load_f16(const std::byte* p) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
FR_INLINE __m256i broadcast4(const void* p) {
    std::int32_t word;
    __builtin_memcpy(&word, p, 4);
    return _mm256_set1_epi32(word);
}
FR_INLINE __m256i dword_sums(__m256i words) {
    return _mm256_madd_epi16(words, _mm256_set1_epi16(1));
}
FR_INLINE __m256i low_nibbles(__m256i v) {
    return _mm256_and_si256(v, _mm256_set1_epi8(15));
}
FR_INLINE __m256i high_nibbles(__m256i v) {
    return low_nibbles(_mm256_srli_epi16(v, 4));
}

// Pins a running sum: GCC would turn a chain of additions into a tree, whose leaves do not fit the registers (the tiles
// of 4 tokens then spent more instructions on spilling than on arithmetic).
FR_INLINE void pin(__m256i& sum) {
    asm("" : "+x"(sum));
}

// Byte offset of word w (four k), half h (rows 8 h .. 8 h + 7) in a [words][16 rows][4] array.
constexpr int at(int w, int h) {
    return 64 * w + 32 * h;
}

// The activations of a tile of tokens from some block on.
struct Activations {
    const std::int8_t* quants;
    const float* scales;
    const std::int16_t* sums;
    std::int64_t cols;

    FR_INLINE __m256i word(int token, int w) const { return broadcast4(quants + token * cols + 4 * w); }
    FR_INLINE __m256 scale(int token) const { return _mm256_broadcast_ss(scales + token * (cols / 32)); }
    FR_INLINE __m256i sum_pair(int token) const { return broadcast4(sums + token * (cols / 16)); }
    FR_INLINE void advance(int blocks) {
        quants += 32 * blocks;
        scales += blocks;
        sums += 2 * blocks;
    }
};

template <int kTokens>
struct Sums {
    __m256 of[kTokens][2];
};

// acc += (scale * a) * f32(isum)
FR_INLINE void add_scaled(__m256& acc, __m256 scale, __m256 a, __m256i isum) {
    acc = _mm256_add_ps(acc, _mm256_mul_ps(_mm256_mul_ps(scale, a), _mm256_cvtepi32_ps(isum)));
}

// Sums of 8 words of weights below 16 times activations, int16 lanes.
template <int kTokens, typename Words>
FR_INLINE void nibble_dots(const Words& words, const Activations& x, __m256i (&dots)[kTokens][2]) {
    FR_UNROLL
    for (int w = 0; w < 8; ++w) {
        const __m256i w0 = words(w, 0);
        const __m256i w1 = words(w, 1);
        FR_UNROLL
        for (int t = 0; t < kTokens; ++t) {
            const __m256i a = x.word(t, w);
            const __m256i p0 = _mm256_maddubs_epi16(w0, a);
            const __m256i p1 = _mm256_maddubs_epi16(w1, a);
            dots[t][0] = w == 0 ? p0 : _mm256_add_epi16(dots[t][0], p0);
            dots[t][1] = w == 0 ? p1 : _mm256_add_epi16(dots[t][1], p1);
            pin(dots[t][0]);
            pin(dots[t][1]);
        }
    }
}

// Bytes of one block of 32 k, unpacked: [8 words][16 rows][4].
struct UnpackedWords {
    const std::byte* bytes;
    FR_INLINE __m256i operator()(int w, int h) const { return load(bytes + at(w, h)); }
};

// The same taken from packed nibbles on the fly.
struct NibbleWords {
    const std::byte* nibbles;
    FR_INLINE __m256i operator()(int w, int h) const {
        return w < 4 ? low_nibbles(load(nibbles + at(w, h))) : high_nibbles(load(nibbles + at(w - 4, h)));
    }
};

FR_INLINE void unpack_nibbles(const std::byte* nibbles, std::byte* bytes) {
    FR_UNROLL
    for (int w = 0; w < 8; ++w) {
        FR_UNROLL
        for (int h = 0; h < 2; ++h)
            _mm256_store_si256(reinterpret_cast<__m256i*>(bytes + at(w, h)), NibbleWords{nibbles}(w, h));
    }
}

// ---- Q4_0. A format says where a block lies (`Panel`), how it looks unpacked (`Unpacked`), and how to add it.

struct Q4_0 {
    static constexpr int kBlockBytes = 288;
    static constexpr int kDirectTokens = 24;
    struct Panel {
        const std::byte* block;
        Panel(const std::byte* panel, std::int64_t b) : block(panel + 288 * b) {}
        FR_INLINE NibbleWords words() const { return {block + 32}; }
        FR_INLINE __m256 scale(int h) const { return load_f16(block + 16 * h); }
    };
    struct Unpacked {
        alignas(64) std::byte bytes[512];
        __m256 scales[2];
        FR_INLINE UnpackedWords words() const { return {bytes}; }
        FR_INLINE __m256 scale(int h) const { return scales[h]; }
        FR_INLINE void set(const Panel& from) {
            unpack_nibbles(from.block + 32, bytes);
            for (int h = 0; h < 2; ++h) scales[h] = from.scale(h);
        }
    };
    template <int kTokens, typename Block>
    FR_INLINE static void add(const Block& block, const Activations& x, Sums<kTokens>& sums) {
        __m256i dots[kTokens][2];
        nibble_dots<kTokens>(block.words(), x, dots);
        FR_UNROLL
        for (int t = 0; t < kTokens; ++t) {
            const __m256i correction = _mm256_madd_epi16(x.sum_pair(t), _mm256_set1_epi16(-8));
            const __m256 a = x.scale(t);
            FR_UNROLL
            for (int h = 0; h < 2; ++h)
                add_scaled(sums.of[t][h], block.scale(h), a, _mm256_add_epi32(dword_sums(dots[t][h]), correction));
        }
    }
};

// ---- Q4_K

struct Q4_K {
    static constexpr int kBlockBytes = 2368 / 8;  // of 32 k, on average
    static constexpr int kDirectTokens = 4;
    struct Panel {
        const std::byte* superblock;
        int j;
        Panel(const std::byte* panel, std::int64_t b)
            : superblock(panel + 2368 * (b / 8)), j(static_cast<int>(b % 8)) {}
        FR_INLINE const std::byte* nibbles() const { return superblock + 320 + 256 * j; }
        FR_INLINE NibbleWords words() const { return {nibbles()}; }
        FR_INLINE __m256 scale(int h) const {
            return _mm256_mul_ps(load_f16(superblock + 16 * h),
                                 _mm256_cvtepi32_ps(load_u8_as_i32(superblock + 64 + 16 * j + 8 * h)));
        }
        FR_INLINE __m256 min(int h) const {
            return _mm256_mul_ps(load_f16(superblock + 32 + 16 * h),
                                 _mm256_cvtepi32_ps(load_u8_as_i32(superblock + 192 + 16 * j + 8 * h)));
        }
    };
    struct Unpacked {
        alignas(64) std::byte bytes[512];
        __m256 scales[2];
        __m256 mins[2];
        FR_INLINE UnpackedWords words() const { return {bytes}; }
        FR_INLINE __m256 scale(int h) const { return scales[h]; }
        FR_INLINE __m256 min(int h) const { return mins[h]; }
        FR_INLINE void set(const Panel& from) {
            unpack_nibbles(from.nibbles(), bytes);
            for (int h = 0; h < 2; ++h) {
                scales[h] = from.scale(h);
                mins[h] = from.min(h);
            }
        }
    };
    template <int kTokens, typename Block>
    FR_INLINE static void add(const Block& block, const Activations& x, Sums<kTokens>& sums) {
        __m256i dots[kTokens][2];
        nibble_dots<kTokens>(block.words(), x, dots);
        FR_UNROLL
        for (int t = 0; t < kTokens; ++t) {
            const __m256 a = x.scale(t);
            const __m256 scaled_sum = _mm256_mul_ps(a, _mm256_cvtepi32_ps(dword_sums(x.sum_pair(t))));
            FR_UNROLL
            for (int h = 0; h < 2; ++h) {
                add_scaled(sums.of[t][h], block.scale(h), a, dword_sums(dots[t][h]));
                sums.of[t][h] = _mm256_sub_ps(sums.of[t][h], _mm256_mul_ps(block.min(h), scaled_sum));
            }
        }
    }
};

// ---- Q6_K

struct Q6_K {
    static constexpr int kBlockBytes = 3360 / 8;  // of 32 k, on average
    static constexpr int kDirectTokens = 4;
    struct Words {  // six bits, 0..63
        const std::byte* nibbles;
        FR_INLINE __m256i operator()(int w, int h) const {
            const __m256i pairs = load(nibbles + 256 + at(w % 2, h));
            const __m256i high = w / 2 == 0   ? _mm256_slli_epi16(pairs, 4)
                                 : w / 2 == 1 ? _mm256_slli_epi16(pairs, 2)
                                 : w / 2 == 2 ? pairs
                                              : _mm256_srli_epi16(pairs, 2);
            return _mm256_or_si256(NibbleWords{nibbles}(w, h), _mm256_and_si256(high, _mm256_set1_epi8(0x30)));
        }
    };
    struct Panel {
        const std::byte* superblock;
        int j;
        Panel(const std::byte* panel, std::int64_t b)
            : superblock(panel + 3360 * (b / 8)), j(static_cast<int>(b % 8)) {}
        FR_INLINE Words words() const { return {superblock + 288 + 384 * j}; }
        FR_INLINE __m256 scale(int h) const { return load_f16(superblock + 16 * h); }
        // The scale of 16 k in both halves of each dword.
        FR_INLINE __m256i group_scale(int group, int h) const {
            const __m256i s = load_i8_as_i32(superblock + 32 + 16 * (2 * j + group) + 8 * h);
            return _mm256_blend_epi16(s, _mm256_slli_epi32(s, 16), 0xAA);
        }
        // 32 * the scales of both groups, side by side in each dword: at most 32 * 128, so int16 holds it.
        FR_INLINE __m256i offset_scale(int h) const {
            return _mm256_slli_epi16(_mm256_blend_epi16(group_scale(0, h), group_scale(1, h), 0xAA), 5);
        }
    };
    struct Unpacked {
        alignas(64) std::byte bytes[512];
        __m256 scales[2];
        __m256i group_scales[2][2];
        __m256i offset_scales[2];
        FR_INLINE UnpackedWords words() const { return {bytes}; }
        FR_INLINE __m256 scale(int h) const { return scales[h]; }
        FR_INLINE __m256i group_scale(int group, int h) const { return group_scales[group][h]; }
        FR_INLINE __m256i offset_scale(int h) const { return offset_scales[h]; }
        FR_INLINE void set(const Panel& from) {
            const Words words = from.words();
            FR_UNROLL
            for (int h = 0; h < 2; ++h) {
                FR_UNROLL
                for (int w = 0; w < 8; ++w)
                    _mm256_store_si256(reinterpret_cast<__m256i*>(bytes + at(w, h)), words(w, h));
                scales[h] = from.scale(h);
                group_scales[0][h] = from.group_scale(0, h);
                group_scales[1][h] = from.group_scale(1, h);
                offset_scales[h] = from.offset_scale(h);
            }
        }
    };
    template <int kTokens, typename Block>
    FR_INLINE static void add(const Block& block, const Activations& x, Sums<kTokens>& sums) {
        const auto words = block.words();
        __m256i dots[kTokens][2];
        FR_UNROLL
        for (int w = 0; w < 8; w += 2) {  // two words is what int16 holds
            const __m256i w00 = words(w, 0);
            const __m256i w01 = words(w, 1);
            const __m256i w10 = words(w + 1, 0);
            const __m256i w11 = words(w + 1, 1);
            const __m256i s0 = block.group_scale(w / 4, 0);
            const __m256i s1 = block.group_scale(w / 4, 1);
            FR_UNROLL
            for (int t = 0; t < kTokens; ++t) {
                const __m256i a0 = x.word(t, w);
                const __m256i a1 = x.word(t, w + 1);
                const __m256i p0 = _mm256_add_epi16(_mm256_maddubs_epi16(w00, a0), _mm256_maddubs_epi16(w10, a1));
                const __m256i p1 = _mm256_add_epi16(_mm256_maddubs_epi16(w01, a0), _mm256_maddubs_epi16(w11, a1));
                const __m256i d0 = _mm256_madd_epi16(p0, s0);
                const __m256i d1 = _mm256_madd_epi16(p1, s1);
                dots[t][0] = w == 0 ? d0 : _mm256_add_epi32(dots[t][0], d0);
                dots[t][1] = w == 0 ? d1 : _mm256_add_epi32(dots[t][1], d1);
                pin(dots[t][0]);
                pin(dots[t][1]);
            }
        }
        FR_UNROLL
        for (int t = 0; t < kTokens; ++t) {
            const __m256i pair = x.sum_pair(t);
            const __m256 a = x.scale(t);
            FR_UNROLL
            for (int h = 0; h < 2; ++h) {
                const __m256i offset = _mm256_madd_epi16(pair, block.offset_scale(h));
                add_scaled(sums.of[t][h], block.scale(h), a, _mm256_sub_epi32(dots[t][h], offset));
            }
        }
    }
};

// ---- Q8_0

struct Q8_0 {
    static constexpr int kBlockBytes = 544;
    static constexpr int kDirectTokens = INT_MAX;
    struct Panel {
        const std::byte* block;
        Panel(const std::byte* panel, std::int64_t b) : block(panel + 544 * b) {}
        FR_INLINE __m256 scale(int h) const { return load_f16(block + 16 * h); }
    };
    // |q| times x with the sign of q moved over.
    template <int kTokens, typename Block>
    FR_INLINE static void add(const Block& block, const Activations& x, Sums<kTokens>& sums) {
        __m256i dots[kTokens][2];
        FR_UNROLL
        for (int w = 0; w < 8; ++w) {
            FR_UNROLL
            for (int h = 0; h < 2; ++h) {
                const __m256i q = load(block.block + 32 + at(w, h));
                const __m256i magnitude = _mm256_abs_epi8(q);
                FR_UNROLL
                for (int t = 0; t < kTokens; ++t) {
                    const __m256i p = dword_sums(_mm256_maddubs_epi16(magnitude, _mm256_sign_epi8(x.word(t, w), q)));
                    dots[t][h] = w == 0 ? p : _mm256_add_epi32(dots[t][h], p);
                    pin(dots[t][h]);
                }
            }
        }
        FR_UNROLL
        for (int t = 0; t < kTokens; ++t) {
            const __m256 a = x.scale(t);
            FR_UNROLL
            for (int h = 0; h < 2; ++h) add_scaled(sums.of[t][h], block.scale(h), a, dots[t][h]);
        }
    }
};

// ---- Drivers

template <int kTokens>
FR_INLINE void store(const Sums<kTokens>& sums, float* out, std::int64_t out_stride) {
    FR_UNROLL
    for (int t = 0; t < kTokens; ++t) {
        _mm256_storeu_ps(out + t * out_stride, sums.of[t][0]);
        _mm256_storeu_ps(out + t * out_stride + 8, sums.of[t][1]);
    }
}

// The hardware's prefetcher alone reads panels at 70% of the bandwidth of a plain reading loop; asking this far ahead
// gives 90% (Zen 3, one core: 14.6 and 18.1 of 20.2 GB/s for Q4_0; 1 KiB and 8 KiB give less). What is asked for beyond
// the panel's end is the next panel.
constexpr std::int64_t kPrefetchBytes = 2048;

template <typename Format, int kTokens>
[[gnu::noinline]] void direct(const std::byte* panel, std::int64_t blocks, Activations x, float* out,
                              std::int64_t out_stride, bool prefetch) {
    Sums<kTokens> sums = {};
    const std::byte* ahead = panel + kPrefetchBytes;
    for (std::int64_t b = 0; b < blocks; ++b) {
        if (prefetch) {
            for (int i = 0; i < Format::kBlockBytes; i += 64)
                _mm_prefetch(reinterpret_cast<const char*>(ahead + i), _MM_HINT_T0);
            ahead += Format::kBlockBytes;
        }
        Format::template add<kTokens>(typename Format::Panel(panel, b), x, sums);
        x.advance(1);
    }
    store<kTokens>(sums, out, out_stride);
}

template <typename Format, int kTokens>
[[gnu::noinline]] void over_unpacked(const typename Format::Unpacked* unpacked, int blocks, Activations x, float* out,
                                     std::int64_t out_stride, bool continued) {
    Sums<kTokens> sums = {};
    if (continued) {
        for (int t = 0; t < kTokens; ++t) {
            sums.of[t][0] = _mm256_loadu_ps(out + t * out_stride);
            sums.of[t][1] = _mm256_loadu_ps(out + t * out_stride + 8);
        }
    }
    for (int b = 0; b < blocks; ++b) {
        Format::template add<kTokens>(unpacked[b], x, sums);
        x.advance(1);
    }
    store<kTokens>(sums, out, out_stride);
}

// 4 tokens x 2 vectors of int16 sums leave 8 registers for weights, activations and some of the f32 sums. Three tokens,
// whose sums would all fit, were no faster (Zen 3).
constexpr int kTileTokens = 4;
// Unpacked, 8 KiB of bytes and up to 4 KiB of scales: with the activations of a tile well inside a 32 KiB L1.
constexpr int kStretchBlocks = 16;

Activations at_token(const Q8Activations& activations, int token, std::int64_t block) {
    const std::int64_t cols = activations.cols;
    Activations x = {activations.quants + token * cols, activations.scales + token * (cols / 32),
                     activations.sums + token * (cols / 16), cols};
    x.quants += 32 * block;
    x.scales += block;
    x.sums += 2 * block;
    return x;
}

// The first tile of tokens brings the panel into the caches.
template <typename Format>
void all_direct(const std::byte* panel, const Q8Activations& activations, int tokens, float* out,
                std::int64_t out_stride) {
    const std::int64_t blocks = activations.cols / kQ8Block;
    int t = 0;
    for (; t + kTileTokens <= tokens; t += kTileTokens)
        direct<Format, kTileTokens>(panel, blocks, at_token(activations, t, 0), out + t * out_stride, out_stride,
                                    t == 0);
    const Activations x = at_token(activations, t, 0);
    float* rest = out + t * out_stride;
    switch (tokens - t) {
        case 1:
            return direct<Format, 1>(panel, blocks, x, rest, out_stride, t == 0);
        case 2:
            return direct<Format, 2>(panel, blocks, x, rest, out_stride, t == 0);
        case 3:
            return direct<Format, 3>(panel, blocks, x, rest, out_stride, t == 0);
        default:
            return;
    }
}

template <typename Format>
void over_stretches(const std::byte* panel, const Q8Activations& activations, int tokens, float* out,
                    std::int64_t out_stride) {
    const std::int64_t blocks = activations.cols / kQ8Block;
    typename Format::Unpacked unpacked[kStretchBlocks];
    for (std::int64_t first = 0; first < blocks; first += kStretchBlocks) {
        const int count = static_cast<int>(blocks - first < kStretchBlocks ? blocks - first : kStretchBlocks);
        for (int b = 0; b < count; ++b) unpacked[b].set(typename Format::Panel(panel, first + b));
        int t = 0;
        for (; t + kTileTokens <= tokens; t += kTileTokens)
            over_unpacked<Format, kTileTokens>(unpacked, count, at_token(activations, t, first), out + t * out_stride,
                                               out_stride, first > 0);
        const Activations x = at_token(activations, t, first);
        float* rest = out + t * out_stride;
        switch (tokens - t) {
            case 1:
                over_unpacked<Format, 1>(unpacked, count, x, rest, out_stride, first > 0);
                break;
            case 2:
                over_unpacked<Format, 2>(unpacked, count, x, rest, out_stride, first > 0);
                break;
            case 3:
                over_unpacked<Format, 3>(unpacked, count, x, rest, out_stride, first > 0);
                break;
            default:
                break;
        }
    }
}

template <typename Format>
void panel_matmul(const std::byte* panel, const Q8Activations& activations, int tokens, float* out,
                  std::int64_t out_stride) {
    if constexpr (Format::kDirectTokens < INT_MAX) {
        if (tokens > Format::kDirectTokens) return over_stretches<Format>(panel, activations, tokens, out, out_stride);
    }
    all_direct<Format>(panel, activations, tokens, out, out_stride);
}

}  // namespace

void fill_matmul_int8(KernelTable& table) {
    table.int8_panel[static_cast<int>(DType::kQ4_0)] = panel_matmul<Q4_0>;
    table.int8_panel[static_cast<int>(DType::kQ8_0)] = panel_matmul<Q8_0>;
    table.int8_panel[static_cast<int>(DType::kQ4_K)] = panel_matmul<Q4_K>;
    table.int8_panel[static_cast<int>(DType::kQ6_K)] = panel_matmul<Q6_K>;
}

}  // namespace frontier::avx2

// Products of bf16 activations with packed panels in AMX tiles.
//
// A tile is 16 rows of 64 bytes. The activations' tile holds 32 k of 16 tokens, the weights' tile 32 k of 16 outputs as
// 16 rows of [16 outputs][2 k]: that is the packed layout of BF16 panels, which are multiplied in place. Quantised
// panels are unpacked into it, kTileBlockK at a time, in the caller's scratch. Two panels x 256 k (16 KB) stay in L1
// beside the activations of 32 tokens (16 KB) and their sums (4 KB); twice the k would not, and the sums, which return
// to memory after each block of k, cost a third of what the activations do.
//
// Two by two tiles of sums take as many loads as multiplications; with the eight registers there are, no shape that
// still holds two panels takes fewer.
//
// Considered: int8 tiles, which multiply twice as fast. But every 32 k the sums must be converted and scaled by the
// scales of weights and activations: half of a tile (64 k) would stay empty, and each tile product (16 cycles) would
// be followed by a store, 16 conversions, 32 multiplications and 16 additions of whole vectors.
#include "kernels/amx/tiles.h"
#include "kernels/isa_functions.h"

namespace frontier::FR_AMX_NAMESPACE {
namespace {

#include "kernels/shared/int8_lanes_avx512.inc"
#include "kernels/shared/int8_types.inc"

constexpr int kTileRows = 16;
constexpr int kTileK = 32;
constexpr std::int64_t kTileBytes = 1024;

// 32 k of 16 rows: weight = quant * scale + offset, with quants of 8 unsigned bits. Word w holds k = 4 w .. 4 w + 3.
struct Block {
    __m512i words[8];
    __m512 scale[2];  // of k 0..15 and 16..31
    __m512 offset[2];
};

// An offset of -8, -32 or -128 scales is exact, so that the fused multiplication and addition rounds the weight once.
template <typename Type>
FR_INLINE Block unpacked(const Type& from) {
    constexpr bool kSigned = Type::kBits == 8;
    constexpr float kZero = kSigned ? 128 : Type::kZeroPoint;
    Block block;
    FR_UNROLL
    for (int w = 0; w < 8; ++w) {
        const Bytes word = from.word(w, 0);
        block.words[w] = kSigned ? _mm512_xor_si512(word, _mm512_set1_epi8(-128)) : word;
    }
    FR_UNROLL
    for (int g = 0; g < 2; ++g) {
        block.scale[g] = from.scale(0);
        if constexpr (Type::kHasGroups) block.scale[g] = times(block.scale[g], from.group_scale(g, 0));
        if constexpr (Type::kHasMin)
            block.offset[g] = _mm512_sub_ps(_mm512_setzero_ps(), from.min(0));
        else
            block.offset[g] = times(block.scale[g], _mm512_set1_ps(-kZero));
    }
    return block;
}

// The weights of k = 4 w + byte, in f32.
FR_INLINE __m512 weights(const Block& block, int w, __m512i byte) {
    const __m512 quants = _mm512_cvtepi32_ps(_mm512_shuffle_epi8(block.words[w], byte));
    return _mm512_fmadd_ps(quants, block.scale[w / 4], block.offset[w / 4]);
}

FR_INLINE void store_tile_rows(const Block& block, std::byte* tile) {
    // Byte `index` of each 32-bit lane to its lowest place, zeros above; the same in each group of four lanes.
    const auto byte_of_lanes = [](int index) {
        constexpr int kZero = static_cast<int>(0x80808000);
        return _mm512_setr_epi32(kZero | index, kZero | (4 + index), kZero | (8 + index), kZero | (12 + index),
                                 kZero | index, kZero | (4 + index), kZero | (8 + index), kZero | (12 + index),
                                 kZero | index, kZero | (4 + index), kZero | (8 + index), kZero | (12 + index),
                                 kZero | index, kZero | (4 + index), kZero | (8 + index), kZero | (12 + index));
    };
    // 16-bit element i of the lower half to 2 i, of the upper half to 2 i + 1.
    const auto pair = [](int i) { return i | (16 + i) << 16; };
    const __m512i interleave =
        _mm512_setr_epi32(pair(0), pair(1), pair(2), pair(3), pair(4), pair(5), pair(6), pair(7), pair(8), pair(9),
                          pair(10), pair(11), pair(12), pair(13), pair(14), pair(15));
    FR_UNROLL
    for (int w = 0; w < 8; ++w) {
        FR_UNROLL
        for (int h = 0; h < 2; ++h) {
            const __m512 even = weights(block, w, byte_of_lanes(2 * h));
            const __m512 odd = weights(block, w, byte_of_lanes(2 * h + 1));
            _mm512_store_si512(tile + 64 * (2 * w + h), _mm512_permutexvar_epi16(interleave, to_bf16(even, odd)));
        }
    }
}

// Tiles of one block of k, [panel][step of 32 k][kTileBytes].
struct WeightTiles {
    const std::byte* data;
    std::int64_t panel_bytes;
};

template <typename Type>
struct Unpacked {
    static WeightTiles tiles(const TileTask& task, int steps) {
        for (int p = 0; p < task.panel_count; ++p) {
            for (int s = 0; s < steps; ++s) {
                const std::int64_t b = task.first_k / kTileK + s;
                const std::byte* packed = task.panels + p * task.panel_bytes + b / Type::kSuperBlocks * Type::kBytes;
                store_tile_rows(unpacked(Type(packed, static_cast<int>(b % Type::kSuperBlocks))),
                                task.scratch + (p * steps + s) * kTileBytes);
            }
        }
        return {task.scratch, steps * kTileBytes};
    }
};

struct InPlace {
    static WeightTiles tiles(const TileTask& task, int steps) {
        constexpr std::int64_t kBytesPerPair = 64;
        const std::byte* first = task.panels + task.first_k / 2 * kBytesPerPair;
        if (task.k_count % kTileK == 0) return {first, task.panel_bytes};
        // The panel ends within the last tile: a copy gets zeros there.
        const std::int64_t bytes = (task.k_count + 1) / 2 * kBytesPerPair;
        const std::int64_t tile_bytes = steps * kTileBytes;
        for (int p = 0; p < task.panel_count; ++p) {
            std::byte* to = task.scratch + p * tile_bytes;
            for (std::int64_t at = 0; at < bytes; at += 64)
                _mm512_store_si512(to + at, load_bytes(first + p * task.panel_bytes + at));
            for (std::int64_t at = bytes; at < tile_bytes; at += 64)
                _mm512_store_si512(to + at, _mm512_setzero_si512());
        }
        return {task.scratch, tile_bytes};
    }
};

// Registers: sums 0..3 (two of each token tile), activations 4 and 5, weights 6 and 7.
void configure(int tokens) {
    TileConfig config;
    for (int tile = 0; tile < 8; ++tile) {
        const bool second = tile == 2 || tile == 3 || tile == 5;
        const int rows = tokens - (second ? kTileRows : 0);
        config.row_bytes[tile] = 64;
        config.rows[tile] = static_cast<std::uint8_t>(tile >= 6 || rows > kTileRows ? kTileRows : rows < 1 ? 1 : rows);
    }
    configure_tiles(config);
}

template <int kSum, bool kLoad>
FR_INLINE void begin_sum(const float* from, std::int64_t stride_bytes) {
    if constexpr (kLoad) {
        load_tile<kSum>(from, stride_bytes);
    } else {
        clear_tile<kSum>();
    }
}

// Some tokens, as many as the tiles are configured for (more than 16 with two token tiles), with one or two panels.
template <int kTokenTiles, int kPanels, bool kAdd>
void multiply(const std::uint16_t* x, std::int64_t x_stride, const WeightTiles& weights, int steps, float* out,
              std::int64_t out_stride) {
    const std::int64_t x_bytes = x_stride * 2;
    const std::int64_t out_bytes = out_stride * 4;
    const std::uint16_t* x2 = x + kTileRows * x_stride;
    float* out2 = out + kTileRows * out_stride;
    const std::byte* w = weights.data;
    const std::byte* w2 = w + weights.panel_bytes;
    begin_sum<0, kAdd>(out, out_bytes);
    if constexpr (kPanels == 2) begin_sum<1, kAdd>(out + kPanelRows, out_bytes);
    if constexpr (kTokenTiles == 2) begin_sum<2, kAdd>(out2, out_bytes);
    if constexpr (kTokenTiles == 2 && kPanels == 2) begin_sum<3, kAdd>(out2 + kPanelRows, out_bytes);
    for (int s = 0; s < steps; ++s) {
        load_tile<6>(w + s * kTileBytes, 64);
        load_tile<4>(x + s * kTileK, x_bytes);
        multiply_add_bf16<0, 4, 6>();
        if constexpr (kPanels == 2) {
            load_tile<7>(w2 + s * kTileBytes, 64);
            multiply_add_bf16<1, 4, 7>();
        }
        if constexpr (kTokenTiles == 2) {
            load_tile<5>(x2 + s * kTileK, x_bytes);
            multiply_add_bf16<2, 5, 6>();
            if constexpr (kPanels == 2) multiply_add_bf16<3, 5, 7>();
        }
    }
    store_tile<0>(out, out_bytes);
    if constexpr (kPanels == 2) store_tile<1>(out + kPanelRows, out_bytes);
    if constexpr (kTokenTiles == 2) store_tile<2>(out2, out_bytes);
    if constexpr (kTokenTiles == 2 && kPanels == 2) store_tile<3>(out2 + kPanelRows, out_bytes);
}

template <int kPanels, bool kAdd>
void multiply_all(const TileTask& task, const WeightTiles& weights, int steps) {
    constexpr int kStripe = 2 * kTileRows;
    const std::uint16_t* x = task.activations + task.first_k;
    int t = 0;
    if (task.tokens >= kStripe) configure(kStripe);
    for (; task.tokens - t >= kStripe; t += kStripe)
        multiply<2, kPanels, kAdd>(x + t * task.activation_stride, task.activation_stride, weights, steps,
                                   task.out + t * task.out_stride, task.out_stride);
    const int rest = task.tokens - t;
    if (rest > 0) {
        // Fewer rows, so that nothing beyond the last token is read or written.
        const auto tail = rest > kTileRows ? multiply<2, kPanels, kAdd> : multiply<1, kPanels, kAdd>;
        configure(rest);
        tail(x + t * task.activation_stride, task.activation_stride, weights, steps, task.out + t * task.out_stride,
             task.out_stride);
    }
    release_tiles();
}

template <typename Weights>
void multiply_block(const TileTask& task) {
    const int steps = (task.k_count + kTileK - 1) / kTileK;
    const WeightTiles weights = Weights::tiles(task, steps);
    const bool add = task.first_k > 0;
    if (task.panel_count == 2) {
        add ? multiply_all<2, true>(task, weights, steps) : multiply_all<2, false>(task, weights, steps);
    } else {
        add ? multiply_all<1, true>(task, weights, steps) : multiply_all<1, false>(task, weights, steps);
    }
}

void round_bf16(const float* x, std::int64_t cols, std::uint16_t* out) {
    std::int64_t k = 0;
    for (; k + kTileK <= cols; k += kTileK)
        _mm512_storeu_si512(out + k, to_bf16(_mm512_loadu_ps(x + k), _mm512_loadu_ps(x + k + 16)));
    if (k == cols) return;
    float rest[kTileK] = {};
    for (int i = 0; i < cols - k; ++i) rest[i] = x[k + i];
    _mm512_storeu_si512(out + k, to_bf16(_mm512_loadu_ps(rest), _mm512_loadu_ps(rest + 16)));
}

}  // namespace

void fill_matmul_tiles(KernelTable& table) {
    table.round_bf16 = round_bf16;
    table.bf16_tiles[static_cast<int>(DType::kBF16)] = multiply_block<InPlace>;
    table.bf16_tiles[static_cast<int>(DType::kQ4_0)] = multiply_block<Unpacked<Q4_0>>;
    table.bf16_tiles[static_cast<int>(DType::kQ8_0)] = multiply_block<Unpacked<Q8_0>>;
    table.bf16_tiles[static_cast<int>(DType::kQ4_K)] = multiply_block<Unpacked<Q4_K>>;
    table.bf16_tiles[static_cast<int>(DType::kQ5_K)] = multiply_block<Unpacked<Q5_K>>;
    table.bf16_tiles[static_cast<int>(DType::kQ6_K)] = multiply_block<Unpacked<Q6_K>>;
}

}  // namespace frontier::FR_AMX_NAMESPACE

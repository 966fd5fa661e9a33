// The kernel table: one row of pure functions per instruction set. Kernels never allocate, print, abort or throw.
//
// Numerics. Integer path: activations are int8 per block of 32 (scale = max|x| / 127, round to nearest even), block
// sums are exact integers, and a row's result is accumulated in f32 over blocks in ascending k by fused multiply-adds,
// lanes holding output rows; scalar/matmul_int8.cc spells the roundings out. So every ISA gives the same bits.
// Float path: f32 multiply-adds in ascending k; the scalar ISA accumulates in f64 and is the definition of correct.
// Tile path: weights and activations rounded to bf16 (nearest even), their products summed in f32.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/packing.h"
#include "platform/cpu_features.h"
#include "tensor/dtype.h"

namespace frontier {

inline constexpr int kQ8Block = 32;

// Int8 activations of several tokens. x[t][k] ~ scales[t][k / 32] * quants[t][k].
struct Q8Activations {
    std::int8_t* quants = nullptr;  // [tokens][cols]
    float* scales = nullptr;        // [tokens][cols / 32]
    float* scaled_sums = nullptr;   // [tokens][cols / 32]: scale * sum of quants over each 32 k, rounded once
    std::int16_t* sums = nullptr;   // [tokens][cols / 16]: sum of quants over each 16 k, |sum| <= 16 * 127
    std::int64_t cols = 0;          // a multiple of 32

    // Those of token t and on.
    Q8Activations from_token(std::int64_t t) const {
        const std::int64_t blocks = cols / kQ8Block;
        return {quants + t * cols, scales + t * blocks, scaled_sums + t * blocks, sums + 2 * t * blocks, cols};
    }
};

enum class KvType : std::uint8_t { kF16, kF32 };

inline constexpr int kPageTokens = 32;

// One KV head of one sequence against a block of query rows; causal, online softmax over pages in page order.
// A page of one layer and KV head holds K as [head_dim][32 tokens] (lanes are tokens) and V as [32 tokens][head_dim].
struct AttentionTask {
    const float* q = nullptr;   // [query_rows][q_stride], head h of the group at q + h * head_dim
    std::int64_t q_stride = 0;  // floats between query rows
    int query_rows = 0;         // consecutive positions first_position, first_position + 1, ...
    int group_heads = 0;        // query heads that share this KV head, adjacent in q
    int head_dim = 0;
    std::int64_t first_position = 0;  // of query row 0; keys 0..position are visible (less those behind the window)
    std::int64_t window_tokens = 0;   // 0 = unlimited; else keys position - window + 1 .. position
    float scale = 1;                  // applied to q . k
    KvType kv_type = KvType::kF16;
    const std::byte* k_base = nullptr;  // of this layer and head; page p at k_base + p * page_stride_bytes
    const std::byte* v_base = nullptr;
    std::int64_t page_stride_bytes = 0;
    const std::int32_t* block_table = nullptr;  // page of tokens [32 i, 32 i + 32)
    float* out = nullptr;                       // [query_rows][out_stride], head h at out + h * head_dim
    std::int64_t out_stride = 0;
    float* scratch = nullptr;  // attention_scratch_floats(query_rows * group_heads, head_dim)
};
std::int64_t attention_scratch_floats(int query_rows_times_heads, int head_dim);

// Tile kernels pay for unpacking a panel once per call: from this many tokens on that is worth it. Counted in
// instructions: for fewer, the integer kernels are done before the unpacking is.
inline constexpr std::int64_t kTileTokens = 32;
inline constexpr int kTileBlockK = 256;  // columns of one call at most: the block of a K type
inline constexpr std::int64_t kTileScratchBytes = 2 * kPanelRows * kTileBlockK * 2;

// One or two consecutive panels times many tokens over a stretch of columns.
struct TileTask {
    const std::byte* panels = nullptr;
    int panel_count = 1;           // 1 or 2: 16 or 32 outputs
    std::int64_t panel_bytes = 0;  // from one panel to the next
    std::int64_t first_k = 0;      // a multiple of kTileBlockK
    int k_count = 0;               // 1..kTileBlockK; a multiple of 32 unless the panel ends here
    // bf16 [tokens][activation_stride], from column 0 on; zeros after the last column up to a multiple of 32.
    const std::uint16_t* activations = nullptr;
    std::int64_t activation_stride = 0;  // elements
    int tokens = 0;
    float* out = nullptr;  // [tokens][out_stride]: first_k 0 stores, any other adds. Nothing else is written.
    std::int64_t out_stride = 0;
    std::byte* scratch = nullptr;  // kTileScratchBytes, 64-byte aligned
};

// So many panels at most a kernel reads side by side: it reads fastest if it is given a multiple of them.
inline constexpr int kPanelsSideBySide = 2;

struct KernelTable {
    Isa isa = Isa::kScalar;

    // `count` panels, one after another in memory: out[t][16 p + lane] = row `lane` of panel p . activations[t], for
    // p < count, t < tokens. out_stride in floats, >= 16 count.
    using Int8PanelsFn = void (*)(const std::byte* panels, int count, const Q8Activations& activations, int tokens,
                                  float* out, std::int64_t out_stride);
    using FloatPanelsFn = void (*)(const std::byte* panels, int count, std::int64_t cols, const float* activations,
                                   std::int64_t activation_stride, int tokens, float* out, std::int64_t out_stride);
    // Indexed by DType. Plain arrays, because the per-ISA files that fill them must not instantiate library templates.
    Int8PanelsFn int8_panels[kDTypeCount] = {};    // null: no integer kernel, use dequantize_panel + F32
    FloatPanelsFn float_panels[kDTypeCount] = {};  // F32, F16, BF16; null for the quantised types

    // Null: no tile kernel for this type, or none on this ISA.
    using Bf16TilesFn = void (*)(const TileTask& task);
    Bf16TilesFn bf16_tiles[kDTypeCount] = {};
    // One token for the tile kernels: x[cols] to bf16, followed by zeros up to a multiple of 32. NaN stays NaN. Null
    // where there are no tile kernels.
    void (*round_bf16)(const float* x, std::int64_t cols, std::uint16_t* out) = nullptr;

    // One token: x[out.cols] to the arrays of `out`. A NaN or infinite x makes its block's scale NaN, so that the fault
    // reaches the logits.
    void (*quantize_q8)(const float* x, const Q8Activations& out) = nullptr;

    // out[i] = x[i] / sqrt(mean(x^2) + eps) * gain[i]; out may be x.
    void (*rms_norm)(const float* x, const float* gain, float eps, std::int64_t n, float* out) = nullptr;
    // x[0..n) += y[0..n)
    void (*add)(float* x, const float* y, std::int64_t n) = nullptr;
    // out[i] = gate[i] * sigmoid(gate[i]) * up[i]; out may be gate.
    void (*silu_multiply)(const float* gate, const float* up, std::int64_t n, float* out) = nullptr;
    // Rotates the first 2 * pairs values of x. cos_sin: [pairs][2]. Interleaved: (x[2i], x[2i+1]); half-split:
    // (x[i], x[i + pairs]).
    void (*rope)(float* x, const float* cos_sin, int pairs, bool interleaved) = nullptr;
    // Stores one token's head into its page slot (token 0..31): K transposed, V as a row.
    void (*store_k)(const float* k, int head_dim, KvType type, int token, std::byte* page) = nullptr;
    void (*store_v)(const float* v, int head_dim, KvType type, int token, std::byte* page) = nullptr;
    void (*attention)(const AttentionTask& task) = nullptr;
};

// The row for `isa`, which must be supported by this host. Valid for the life of the process.
const KernelTable& kernel_table(Isa isa);

}  // namespace frontier

// One forward step as data: the batch, and the list of fused operations a backend runs in order.
// Recorded by the model, submitted once. Nothing here names a host pointer or a layout of the device.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "base/types.h"

namespace frontier {

// Handles into the backend's tables; a default-constructed one is invalid.
struct WeightId {
    std::int32_t index = -1;
    bool valid() const { return index >= 0; }
};
struct BufferId {
    std::int32_t index = -1;
    bool valid() const { return index >= 0; }
};

// Rows [first_row, first_row + rows) of the batch are consecutive tokens of one sequence.
struct SequenceSlice {
    std::int32_t first_row = 0;
    std::int32_t rows = 0;
    std::int32_t first_position = 0;      // position of the first of these rows in its sequence
    std::span<const PageId> block_table;  // pages of tokens 0..; covers first_position + rows tokens
};

struct StepInput {
    std::vector<TokenId> tokens;            // [n]
    std::vector<std::int32_t> positions;    // [n]
    std::vector<SequenceSlice> sequences;   // cover [0, n) in order
    std::vector<std::int32_t> logits_rows;  // ascending rows whose logits are wanted
};

enum class Activation : std::uint8_t { kSilu };

struct EmbedOp {
    WeightId table;
    BufferId out;
};  // out[n, dim]
struct RmsNormOp {
    BufferId in;
    WeightId gain;
    float eps;
    BufferId out;
};  // [n, dim]
struct QkvOp {  // in[n, dim]
    BufferId in;
    WeightId q, k, v;                 // [heads * head_dim, dim], [kv_heads * head_dim, dim] twice
    WeightId q_bias, k_bias, v_bias;  // invalid: none
    BufferId q_out, k_out, v_out;     // [n, heads * head_dim], [n, kv_heads * head_dim] twice
};
struct RopeKvWriteOp {  // per-head RMS norm (qwen3) if given, rotation of q and k, K and V to the cache
    std::int32_t layer;
    BufferId q, k, v;
    WeightId q_norm, k_norm;  // [head_dim], invalid: none
    float norm_eps;
};
struct AttentionOp {
    std::int32_t layer;
    BufferId q, out;
    float scale;
    std::int32_t window_tokens;
};
struct ProjectResidualOp {
    BufferId in;
    WeightId weight, bias;
    BufferId residual;
};  // residual += in . weight^T (+ bias)
struct GateUpOp {
    BufferId in;
    WeightId gate, up;
    Activation activation;
    BufferId out;
};  // out = act(gate) * up
struct LogitsOp {
    BufferId in;
    WeightId gain;
    float eps;
    WeightId weight;
    WeightId bias;
};  // final norm + head, asked rows

using Op = std::variant<EmbedOp, RmsNormOp, QkvOp, RopeKvWriteOp, AttentionOp, ProjectResidualOp, GateUpOp, LogitsOp>;

struct Step {
    StepInput input;
    std::vector<Op> ops;
};

}  // namespace frontier

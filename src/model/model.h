// A loaded decoder: weights bound by name and shape in a backend, and the recording of one forward pass.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "backend/backend.h"
#include "model/source.h"

namespace frontier {

class Model {
public:
    // Called from the loading thread after each tensor.
    using Progress = std::function<void(std::int64_t done_bytes, std::int64_t total_bytes)>;

    // Checks every tensor's name, type and shape against the config before the first upload; a mismatch names the
    // tensor, the expected and the actual. kDoesNotFit when the weights exceed the memory that is available.
    // Uploads in the source's order, so that a file is read sequentially; its pages are released as tensors are
    // packed.
    static Result<std::unique_ptr<Model>> load(ModelSource& source, Backend& backend, const Progress& progress = {});

    const ModelConfig& config() const { return config_; }

    // Appends one forward pass over step.input: embed, layers, final norm and head. The order is the architecture's.
    void record_forward(Step& step) const;

    // File bytes of the weights that one decode step reads: all matrices and vectors, of the embedding one row
    // (all of it where it is the head too).
    std::int64_t decode_bytes() const { return decode_bytes_; }
    // Multiply-adds x 2 of the weight matrices for one token, head included (attention excluded).
    std::int64_t flops_per_token() const { return flops_per_token_; }
    // The head's part of it: spent only on rows whose logits are asked for.
    std::int64_t head_flops_per_row() const { return head_flops_per_row_; }

private:
    Model() = default;
    struct Layer {
        WeightId attn_norm;                // [hidden]
        WeightId q, k, v;                  // [heads * head_dim, hidden], [kv_heads * head_dim, hidden] twice
        WeightId q_bias, k_bias, v_bias;   // [heads * head_dim], [kv_heads * head_dim] twice; invalid: none
        WeightId q_norm, k_norm;           // [head_dim]; invalid: none
        WeightId attn_out, attn_out_bias;  // [hidden, heads * head_dim], [hidden]; bias invalid: none
        WeightId ffn_norm;                 // [hidden]
        WeightId gate, up;                 // [ffn, hidden]
        WeightId down;                     // [hidden, ffn]
    };
    void record_layer(Step& step, std::int32_t index) const;

    ModelConfig config_;
    std::vector<Layer> layers_;
    WeightId embedding_;    // [vocab, hidden]
    WeightId output_norm_;  // [hidden]
    WeightId head_;         // [vocab, hidden]; the embedding when tied
    BufferId hidden_;       // [n, hidden], the residual stream
    BufferId normed_;       // [n, hidden]
    BufferId q_;            // [n, heads * head_dim]
    BufferId k_, v_;        // [n, kv_heads * head_dim]
    BufferId attended_;     // [n, heads * head_dim]
    BufferId ffn_;          // [n, ffn]
    std::int64_t decode_bytes_ = 0;
    std::int64_t flops_per_token_ = 0;
    std::int64_t head_flops_per_row_ = 0;
    friend class ModelLoader;
};

}  // namespace frontier

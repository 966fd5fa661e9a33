// Which tensors a decoder has: canonical (GGUF) names, shapes, and their Hugging Face names.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/config.h"

namespace frontier {

enum class WeightRole : std::uint8_t {
    // once
    kTokenEmbedding,  // [vocab, hidden]
    kOutputNorm,      // [hidden]
    kOutput,          // [vocab, hidden], absent when tied
    // per layer
    kAttnNorm,     // [hidden]
    kAttnQ,        // [heads * head_dim, hidden]
    kAttnK,        // [kv_heads * head_dim, hidden]
    kAttnV,        // [kv_heads * head_dim, hidden]
    kAttnQBias,    // [heads * head_dim]
    kAttnKBias,    // [kv_heads * head_dim]
    kAttnVBias,    // [kv_heads * head_dim]
    kAttnQNorm,    // [head_dim]
    kAttnKNorm,    // [head_dim]
    kAttnOut,      // [hidden, heads * head_dim]
    kAttnOutBias,  // [hidden]
    kFfnNorm,      // [hidden]
    kFfnGate,      // [ffn, hidden]
    kFfnUp,        // [ffn, hidden]
    kFfnDown,      // [hidden, ffn]
    kCount
};

struct WeightSpec {
    WeightRole role = WeightRole::kCount;
    std::int32_t layer = -1;  // -1: not of a layer
    std::string name;         // canonical
    std::vector<std::int64_t> shape;

    bool is_matrix() const { return shape.size() == 2; }
};

// Every tensor of the model, in the order in which llama.cpp's converters write them: embedding, layers, final norm,
// head.
std::vector<WeightSpec> weight_specs(const ModelConfig& config);

// "model.layers.3.self_attn.q_proj.weight" -> "blk.3.attn_q.weight"; nullopt for names that are none of ours.
std::optional<std::string> canonical_from_hf(std::string_view hf_name);

}  // namespace frontier

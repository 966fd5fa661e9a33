// Hyper-parameters of a decoder, from GGUF metadata or config.json; checked for sense before anything is allocated.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "base/json.h"
#include "base/result.h"
#include "formats/gguf.h"

namespace frontier {

// What an architecture does differently; one row per name in architectures.cc.
struct ArchitectureTraits {
    std::string_view name;               // GGUF general.architecture: "llama", "qwen2", "qwen3"
    bool qkv_bias = false;               // qwen2: always present
    bool qk_norm = false;                // qwen3: RMS norm over each head of q and k before the rotation
    bool gguf_rope_interleaved = false;  // llama GGUF files permute q and k for interleaved pairs
    bool sliding_window_from_config = false;
};

struct ModelConfig {
    const ArchitectureTraits* architecture = nullptr;
    std::string name;  // general.name, or the folder
    std::int32_t vocab_size = 0;
    std::int32_t hidden_size = 0;
    std::int32_t layers = 0;
    std::int32_t heads = 0;
    std::int32_t kv_heads = 0;
    std::int32_t head_dim = 0;
    std::int32_t ffn_size = 0;
    std::int32_t context_tokens = 0;  // trained
    float rms_norm_eps = 1e-5F;
    bool tied_embeddings = false;
    std::int32_t sliding_window_tokens = 0;  // 0 = none
    float attention_scale = 0;               // 1 / sqrt(head_dim) unless the file says otherwise
    RopeConfig rope;                         // with the scaling applied to inv_freq
};

Result<ModelConfig> config_from_gguf(const GgufFile& file);
Result<ModelConfig> config_from_hf(const Json& config_json, std::string_view where);

}  // namespace frontier

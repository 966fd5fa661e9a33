// Hyper-parameters of a decoder, from GGUF metadata or config.json; checked for sense before anything is allocated.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "base/json.h"
#include "base/result.h"
#include "formats/gguf.h"

namespace frontier {

// What an architecture does differently; one row per name in architectures.cc.
struct ArchitectureTraits {
    std::string_view name;               // GGUF general.architecture: "llama", "qwen2", "qwen3"
    bool qkv_bias = false;               // qwen2: always present; elsewhere only where the file says so
    bool qk_norm = false;                // qwen3: RMS norm over each head of q and k before the rotation
    bool gguf_rope_interleaved = false;  // llama GGUF files permute q and k for interleaved pairs
};

// Null for a name we do not run.
const ArchitectureTraits* find_architecture(std::string_view gguf_name);
std::string supported_architectures();  // "llama, qwen2, qwen3", for error texts

// How a Hugging Face class maps onto an architecture, with its class defaults; one row per class in architectures.cc.
struct HfFamily {
    enum class Window : std::uint8_t {
        kNever,        // the class has no sliding window; a field of that name is ignored, as transformers does
        kAlways,       // mistral: `sliding_window` holds for every layer
        kFromUseField  // qwen: only with `use_sliding_window`, from layer `max_window_layers` on
    };
    std::string_view class_name;  // config.json architectures[0]
    std::string_view model_type;
    std::string_view architecture;
    Window window = Window::kNever;
    std::int32_t default_head_dim = 0;  // 0: hidden_size / num_attention_heads
    std::int32_t default_context_tokens = 2048;
};
const HfFamily* find_hf_family_by_class(std::string_view class_name);
const HfFamily* find_hf_family_by_type(std::string_view model_type);
std::string supported_hf_classes();

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
    bool qkv_bias = false;
    bool attn_out_bias = false;
    std::int32_t sliding_window_tokens = 0;  // 0 = none
    float attention_scale = 0;               // 1 / sqrt(head_dim) unless the file says otherwise
    RopeConfig rope;                         // with the scaling applied to inv_freq

    // Rows of the projections.
    std::int64_t q_dim() const { return std::int64_t{heads} * head_dim; }
    std::int64_t kv_dim() const { return std::int64_t{kv_heads} * head_dim; }
};

// The file must hold tensors: vocabulary size, tied embeddings and biases are read from their names and shapes.
Result<ModelConfig> config_from_gguf(const GgufFile& file);
// `where` names config.json in error texts.
Result<ModelConfig> config_from_hf(const Json& config_json, std::string_view where);

// Limits that any decoder of these families stays far below, and below which no product of sizes overflows 64 bits.
inline constexpr std::int64_t kMaxLayers = 1024;
inline constexpr std::int64_t kMaxHeads = 4096;
inline constexpr std::int64_t kMaxHeadDim = 512;  // attention keeps one head's accumulators in registers and L1
inline constexpr std::int64_t kMaxHidden = 1 << 17;
inline constexpr std::int64_t kMaxFfn = 1 << 20;
inline constexpr std::int64_t kMaxVocab = 1 << 22;
inline constexpr std::int64_t kMaxContextTokens = 1 << 30;

// Relations between fields that were each in range: grouped heads divide, head_dim is even. `keys` are the names that
// the format gives to heads, kv_heads and head_dim.
struct HeadKeys {
    std::string heads, kv_heads, head_dim;
};
Status check_heads(const ModelConfig& config, std::string_view where, const HeadKeys& keys);

}  // namespace frontier

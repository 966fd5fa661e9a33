// Shapes of well-known models, from their published config.json files, and the quantisation mixtures of llama-quantize.
#include <algorithm>
#include <array>

#include "model/synthetic.h"

namespace frontier {
namespace {

using enum SyntheticVocabulary;

constexpr SyntheticShape llama3(std::string_view name, std::int32_t hidden, std::int32_t ffn, std::int32_t layers,
                                std::int32_t heads, std::int32_t head_dim, double factor, bool tied) {
    return {.name = name,
            .architecture = "llama",
            .vocab_size = 128256,
            .hidden_size = hidden,
            .ffn_size = ffn,
            .layers = layers,
            .heads = heads,
            .kv_heads = 8,
            .head_dim = head_dim,
            .context_tokens = 131072,
            .rope_theta = 500000,
            .llama3_factor = factor,
            .tied_embeddings = tied,
            .vocabulary = kLlama3,
            .normal_tokens = 128000};
}

constexpr SyntheticShape qwen(std::string_view name, std::string_view architecture, std::int32_t hidden,
                              std::int32_t ffn, std::int32_t layers, std::int32_t heads, std::int32_t kv_heads,
                              std::int32_t head_dim, bool tied, std::int32_t vocab = 151936) {
    return {.name = name,
            .architecture = architecture,
            .vocab_size = vocab,
            .hidden_size = hidden,
            .ffn_size = ffn,
            .layers = layers,
            .heads = heads,
            .kv_heads = kv_heads,
            .head_dim = head_dim,
            .context_tokens = architecture == "qwen3" ? 40960 : 32768,
            .rms_norm_eps = 1e-6,
            .rope_theta = 1e6,
            .tied_embeddings = tied,
            .vocabulary = kQwen2,
            .normal_tokens = 151643};
}

// Small enough for tests, with rows that every block type divides.
constexpr SyntheticShape tiny(std::string_view name, std::string_view architecture, SyntheticVocabulary vocabulary) {
    return {.name = name,
            .architecture = architecture,
            .vocab_size = 1024,
            .hidden_size = 256,
            .ffn_size = 768,
            .layers = 3,
            .heads = 4,
            .kv_heads = 2,
            .head_dim = 64,
            .context_tokens = 2048,
            .vocabulary = vocabulary,
            .normal_tokens = vocabulary == kSentencePiece ? 0 : 1000};
}

constexpr SyntheticShape tiny_llama3() {
    SyntheticShape s = tiny("tiny-llama3", "llama", kLlama3);
    s.rope_theta = 500000;
    s.llama3_factor = 8;
    s.tied_embeddings = true;
    return s;
}

constexpr SyntheticShape tiny_mistral() {
    SyntheticShape s = tiny("tiny-mistral", "llama", kSentencePiece);
    s.sliding_window_tokens = 48;  // not a multiple of the page
    return s;
}

constexpr SyntheticShape tiny_qwen2() {
    SyntheticShape s = tiny("tiny-qwen2", "qwen2", kQwen2);
    s.rms_norm_eps = 1e-6;
    s.rope_theta = 1e6;
    return s;
}

constexpr SyntheticShape tiny_qwen3() {
    SyntheticShape s = tiny("tiny-qwen3", "qwen3", kQwen2);
    s.heads = 8;  // heads * head_dim differs from hidden, as in the published sizes
    s.rms_norm_eps = 1e-6;
    s.rope_theta = 1e6;
    s.tied_embeddings = true;
    return s;
}

constexpr std::array kShapes = {
    SyntheticShape{.name = "tinyllama-1.1b",
                   .architecture = "llama",
                   .vocab_size = 32000,
                   .hidden_size = 2048,
                   .ffn_size = 5632,
                   .layers = 22,
                   .heads = 32,
                   .kv_heads = 4,
                   .head_dim = 64,
                   .context_tokens = 2048},
    llama3("llama-3.2-1b", 2048, 8192, 16, 32, 64, 32, true),
    llama3("llama-3.2-3b", 3072, 8192, 28, 24, 128, 32, true),
    llama3("llama-3.1-8b", 4096, 14336, 32, 32, 128, 8, false),
    SyntheticShape{.name = "mistral-7b",  // v0.3: no window
                   .architecture = "llama",
                   .vocab_size = 32768,
                   .hidden_size = 4096,
                   .ffn_size = 14336,
                   .layers = 32,
                   .heads = 32,
                   .kv_heads = 8,
                   .head_dim = 128,
                   .context_tokens = 32768,
                   .rope_theta = 1e6},
    qwen("qwen2.5-0.5b", "qwen2", 896, 4864, 24, 14, 2, 64, true),
    qwen("qwen2.5-1.5b", "qwen2", 1536, 8960, 28, 12, 2, 128, true),
    qwen("qwen2.5-7b", "qwen2", 3584, 18944, 28, 28, 4, 128, false, 152064),
    qwen("qwen3-0.6b", "qwen3", 1024, 3072, 28, 16, 8, 128, true),
    qwen("qwen3-4b", "qwen3", 2560, 9728, 36, 32, 8, 128, true),
    qwen("qwen3-8b", "qwen3", 4096, 12288, 36, 32, 8, 128, false),
    tiny("tiny-llama", "llama", kSentencePiece),
    tiny_llama3(),
    tiny_mistral(),
    tiny_qwen2(),
    tiny_qwen3(),
};

constexpr std::array kQuants = {
    SyntheticQuant{"F32", DType::kF32, 0},        SyntheticQuant{"F16", DType::kF16, 1},
    SyntheticQuant{"BF16", DType::kBF16, 32},     SyntheticQuant{"Q4_0", DType::kQ4_0, 2},
    SyntheticQuant{"Q4_1", DType::kQ4_1, 3},      SyntheticQuant{"Q5_0", DType::kQ5_0, 8},
    SyntheticQuant{"Q5_1", DType::kQ5_1, 9},      SyntheticQuant{"Q8_0", DType::kQ8_0, 7},
    SyntheticQuant{"Q2_K", DType::kQ2_K, 10},     SyntheticQuant{"Q3_K", DType::kQ3_K, 11},
    SyntheticQuant{"Q3_K_S", DType::kQ3_K, 11},   SyntheticQuant{"Q3_K_M", DType::kQ3_K, 12},
    SyntheticQuant{"Q3_K_L", DType::kQ3_K, 13},   SyntheticQuant{"Q4_K", DType::kQ4_K, 14},
    SyntheticQuant{"Q4_K_S", DType::kQ4_K, 14},   SyntheticQuant{"Q4_K_M", DType::kQ4_K, 15},
    SyntheticQuant{"Q5_K", DType::kQ5_K, 16},     SyntheticQuant{"Q5_K_S", DType::kQ5_K, 16},
    SyntheticQuant{"Q5_K_M", DType::kQ5_K, 17},   SyntheticQuant{"Q6_K", DType::kQ6_K, 18},
    SyntheticQuant{"IQ4_NL", DType::kIQ4_NL, 25}, SyntheticQuant{"IQ4_XS", DType::kIQ4_XS, 30},
    SyntheticQuant{"MXFP4", DType::kMXFP4, 38},
};

// The layers whose attn_v and ffn_down the _M mixtures keep in a larger type: the first and last eighth and every
// third between (llama.cpp, src/llama-quant.cpp).
bool gets_more_bits(std::int32_t layer, std::int32_t layers) {
    return layer < layers / 8 || layer >= 7 * layers / 8 || (layer - layers / 8) % 3 == 2;
}

DType attn_v_type(std::string_view quant, const ModelConfig& config, std::int32_t layer, DType base) {
    const bool grouped = config.heads / config.kv_heads >= 4;
    if (quant == "Q2_K") return grouped ? DType::kQ4_K : DType::kQ3_K;
    if (quant == "Q3_K_M") return layer < 2 ? DType::kQ5_K : DType::kQ4_K;
    if (quant == "Q3_K_L") return DType::kQ5_K;
    if (quant == "Q4_K_S" && layer < 4) return DType::kQ5_K;
    if ((quant == "Q4_K_M" || quant == "Q5_K_M") && gets_more_bits(layer, config.layers)) return DType::kQ6_K;
    if ((quant == "IQ4_NL" || quant == "IQ4_XS") && grouped) return DType::kQ5_K;
    return base;
}

DType ffn_down_type(std::string_view quant, std::int32_t layer, std::int32_t layers, DType base) {
    const bool first_eighth = layer < layers / 8;
    if (quant == "Q2_K") return DType::kQ3_K;
    if (quant == "Q3_K_M") return layer < layers / 16 ? DType::kQ5_K : DType::kQ4_K;
    if (quant == "Q3_K_L") return DType::kQ5_K;
    if (quant == "Q4_K_S" && first_eighth) return DType::kQ5_K;
    if ((quant == "Q4_K_M" || quant == "Q5_K_M") && gets_more_bits(layer, layers)) return DType::kQ6_K;
    if ((quant == "IQ4_NL" || quant == "IQ4_XS") && first_eighth) return DType::kQ5_K;
    return base;
}

DType attn_out_type(std::string_view quant, DType base) {
    if (quant == "Q2_K") return DType::kQ3_K;
    if (quant == "Q3_K_M") return DType::kQ4_K;
    if (quant == "Q3_K_L") return DType::kQ5_K;
    return base;
}

bool divides(DType type, std::int64_t cols) {
    return cols % dtype_info(type).block_elements == 0;
}

// Rows that a block of 256 does not divide take a type of about the same size with blocks of 32, at last F16.
DType fitting_type(DType type, std::int64_t cols) {
    if (divides(type, cols)) return type;
    switch (type) {
        case DType::kQ2_K:
        case DType::kQ3_K:
        case DType::kIQ4_XS:
            type = DType::kIQ4_NL;
            break;
        case DType::kQ4_K:
            type = DType::kQ5_0;
            break;
        case DType::kQ5_K:
            type = DType::kQ5_1;
            break;
        case DType::kQ6_K:
            type = DType::kQ8_0;
            break;
        default:
            break;
    }
    return divides(type, cols) ? type : DType::kF16;
}

}  // namespace

std::span<const SyntheticShape> synthetic_shapes() {
    return kShapes;
}

std::span<const SyntheticQuant> synthetic_quants() {
    return kQuants;
}

DType synthetic_tensor_type(const SyntheticQuant& quant, const ModelConfig& config, const WeightSpec& spec) {
    if (!spec.is_matrix()) return DType::kF32;
    if (!dtype_info(quant.base).quantized) return quant.base;
    const std::int64_t cols = spec.shape[1];
    DType type = quant.base;
    switch (spec.role) {
        case WeightRole::kTokenEmbedding:
            if (!config.tied_embeddings) break;
            [[fallthrough]];
        case WeightRole::kOutput:
            if (!divides(type, cols))
                type = DType::kQ8_0;
            else if (type != DType::kQ8_0)
                type = DType::kQ6_K;
            break;
        case WeightRole::kAttnV:
            type = attn_v_type(quant.name, config, spec.layer, type);
            break;
        case WeightRole::kAttnOut:
            type = attn_out_type(quant.name, type);
            break;
        case WeightRole::kFfnDown:
            type = ffn_down_type(quant.name, spec.layer, config.layers, type);
            break;
        default:
            break;
    }
    return fitting_type(type, cols);
}

}  // namespace frontier

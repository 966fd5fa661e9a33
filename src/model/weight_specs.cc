#include "model/weight_specs.h"

#include <array>
#include <charconv>

namespace frontier {
namespace {

struct RoleNames {
    WeightRole role;
    std::string_view gguf;  // of a layer: after "blk.N."
    std::string_view hf;    // of a layer: after "model.layers.N."
};

constexpr std::array kGlobal = {
    RoleNames{WeightRole::kTokenEmbedding, "token_embd.weight", "embed_tokens.weight"},
    RoleNames{WeightRole::kOutputNorm, "output_norm.weight", "norm.weight"},
    RoleNames{WeightRole::kOutput, "output.weight", "lm_head.weight"},
};

// In the order of the forward pass.
constexpr std::array kPerLayer = {
    RoleNames{WeightRole::kAttnNorm, "attn_norm.weight", "input_layernorm.weight"},
    RoleNames{WeightRole::kAttnQ, "attn_q.weight", "self_attn.q_proj.weight"},
    RoleNames{WeightRole::kAttnQBias, "attn_q.bias", "self_attn.q_proj.bias"},
    RoleNames{WeightRole::kAttnK, "attn_k.weight", "self_attn.k_proj.weight"},
    RoleNames{WeightRole::kAttnKBias, "attn_k.bias", "self_attn.k_proj.bias"},
    RoleNames{WeightRole::kAttnV, "attn_v.weight", "self_attn.v_proj.weight"},
    RoleNames{WeightRole::kAttnVBias, "attn_v.bias", "self_attn.v_proj.bias"},
    RoleNames{WeightRole::kAttnQNorm, "attn_q_norm.weight", "self_attn.q_norm.weight"},
    RoleNames{WeightRole::kAttnKNorm, "attn_k_norm.weight", "self_attn.k_norm.weight"},
    RoleNames{WeightRole::kAttnOut, "attn_output.weight", "self_attn.o_proj.weight"},
    RoleNames{WeightRole::kAttnOutBias, "attn_output.bias", "self_attn.o_proj.bias"},
    RoleNames{WeightRole::kFfnNorm, "ffn_norm.weight", "post_attention_layernorm.weight"},
    RoleNames{WeightRole::kFfnGate, "ffn_gate.weight", "mlp.gate_proj.weight"},
    RoleNames{WeightRole::kFfnUp, "ffn_up.weight", "mlp.up_proj.weight"},
    RoleNames{WeightRole::kFfnDown, "ffn_down.weight", "mlp.down_proj.weight"},
};
static_assert(kGlobal.size() + kPerLayer.size() == static_cast<std::size_t>(WeightRole::kCount));

bool has_role(const ModelConfig& config, WeightRole role) {
    switch (role) {
        case WeightRole::kOutput:
            return !config.tied_embeddings;
        case WeightRole::kAttnQBias:
        case WeightRole::kAttnKBias:
        case WeightRole::kAttnVBias:
            return config.qkv_bias;
        case WeightRole::kAttnQNorm:
        case WeightRole::kAttnKNorm:
            return config.architecture->qk_norm;
        case WeightRole::kAttnOutBias:
            return config.attn_out_bias;
        default:
            return true;
    }
}

std::vector<std::int64_t> shape_of(const ModelConfig& config, WeightRole role) {
    const std::int64_t hidden = config.hidden_size;
    switch (role) {
        case WeightRole::kTokenEmbedding:
        case WeightRole::kOutput:
            return {config.vocab_size, hidden};
        case WeightRole::kAttnQ:
            return {config.q_dim(), hidden};
        case WeightRole::kAttnK:
        case WeightRole::kAttnV:
            return {config.kv_dim(), hidden};
        case WeightRole::kAttnQBias:
            return {config.q_dim()};
        case WeightRole::kAttnKBias:
        case WeightRole::kAttnVBias:
            return {config.kv_dim()};
        case WeightRole::kAttnQNorm:
        case WeightRole::kAttnKNorm:
            return {config.head_dim};
        case WeightRole::kAttnOut:
            return {hidden, config.q_dim()};
        case WeightRole::kFfnGate:
        case WeightRole::kFfnUp:
            return {config.ffn_size, hidden};
        case WeightRole::kFfnDown:
            return {hidden, config.ffn_size};
        default:  // norms over the residual stream and the bias of the output projection
            return {hidden};
    }
}

}  // namespace

std::vector<WeightSpec> weight_specs(const ModelConfig& config) {
    std::vector<WeightSpec> specs;
    const auto add = [&](const RoleNames& row, std::int32_t layer) {
        if (!has_role(config, row.role)) return;
        std::string name = layer < 0 ? std::string(row.gguf) : fmt::format("blk.{}.{}", layer, row.gguf);
        specs.push_back({row.role, layer, std::move(name), shape_of(config, row.role)});
    };
    add(kGlobal[0], -1);
    for (std::int32_t layer = 0; layer < config.layers; ++layer)
        for (const RoleNames& row : kPerLayer) add(row, layer);
    add(kGlobal[1], -1);
    add(kGlobal[2], -1);
    return specs;
}

std::optional<std::string> canonical_from_hf(std::string_view hf_name) {
    // Files of the bare decoder class lack the prefix.
    constexpr std::string_view kPrefix = "model.";
    if (hf_name.starts_with(kPrefix)) hf_name.remove_prefix(kPrefix.size());
    for (const RoleNames& row : kGlobal)
        if (hf_name == row.hf) return std::string(row.gguf);

    constexpr std::string_view kLayers = "layers.";
    if (!hf_name.starts_with(kLayers)) return std::nullopt;
    hf_name.remove_prefix(kLayers.size());
    std::int32_t layer = 0;
    const auto [end, error] = std::from_chars(hf_name.data(), hf_name.data() + hf_name.size(), layer);
    const auto digits = static_cast<std::size_t>(end - hf_name.data());
    if (error != std::errc{} || layer < 0 || digits >= hf_name.size() || hf_name[digits] != '.') return std::nullopt;
    if (digits > 1 && hf_name[0] == '0') return std::nullopt;  // "layers.01" is not a second spelling of layer 1
    const std::string_view rest = hf_name.substr(digits + 1);
    for (const RoleNames& row : kPerLayer)
        if (rest == row.hf) return fmt::format("blk.{}.{}", layer, row.gguf);
    return std::nullopt;
}

}  // namespace frontier

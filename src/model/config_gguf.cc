// Hyper-parameters from GGUF metadata (ggml/docs/gguf.md, "LLM").
#include <cmath>
#include <cstring>

#include "formats/printable.h"
#include "model/config.h"
#include "model/rope_scaling.h"

namespace frontier {
namespace {

// Range-checked access to "{architecture}.{suffix}".
class Keys {
public:
    Keys(const GgufFile& file, std::string_view architecture) : file_(file), prefix_(std::string(architecture) + ".") {}

    std::string full(std::string_view suffix) const { return prefix_ + std::string(suffix); }
    bool has(std::string_view suffix) const { return file_.find(full(suffix)) != nullptr; }

    Result<std::int32_t> integer(std::string_view suffix, std::int64_t low, std::int64_t high) const {
        if (!has(suffix)) return bad_input("{}: {} is missing", file_.where(), full(suffix));
        return integer_or(suffix, 0, low, high);
    }

    Result<std::int32_t> integer_or(std::string_view suffix, std::int32_t fallback, std::int64_t low,
                                    std::int64_t high) const {
        FR_ASSIGN(const std::optional<std::int64_t> value, read(suffix));
        if (!value) return fallback;
        if (*value < low || *value > high)
            return bad_input("{}: {}: expected {}..{}, got {}", file_.where(), full(suffix), low, high, *value);
        return static_cast<std::int32_t>(*value);
    }

    Result<double> number_or(std::string_view suffix, double fallback, double low, double high) const {
        FR_ASSIGN(const std::optional<double> value, file_.get_number(full(suffix)));
        if (!value) return fallback;
        if (!(*value >= low && *value <= high))
            return bad_input("{}: {}: expected {}..{}, got {}", file_.where(), full(suffix), low, high, *value);
        return *value;
    }

    Result<std::string> text_or(std::string_view suffix, std::string_view fallback) const {
        FR_ASSIGN(const std::optional<std::string_view> value, file_.get_string(full(suffix)));
        return std::string(value.value_or(fallback));
    }

private:
    // Some counts may be given per layer; we run those where all layers agree.
    Result<std::optional<std::int64_t>> read(std::string_view suffix) const {
        const std::string key = full(suffix);
        const GgufValue* value = file_.find(key);
        if (value == nullptr || value->type != GgufType::kArray) return file_.get_int(key);
        FR_ASSIGN(const auto values, file_.get_ints(key));
        if (!values || values->empty())
            return bad_input("{}: {}: expected a number, got an empty array", file_.where(), key);
        for (const std::int64_t v : *values)
            if (v != values->front())
                return bad_input("{}: {}: expected the same value for every layer, got {} and {}", file_.where(), key,
                                 values->front(), v);
        return values->front();
    }

    const GgufFile& file_;
    std::string prefix_;
};

// rope_freqs.weight: divisors of the plain frequencies, [head_dim / 2].
Result<std::vector<float>> rope_factors(const GgufFile& file, std::int32_t pairs) {
    const TensorView* tensor = file.find_tensor("rope_freqs.weight");
    if (tensor == nullptr) return std::vector<float>{};
    if (tensor->info.type != DType::kF32)
        return bad_input("{}: rope_freqs.weight: expected type F32, got {}", file.where(),
                         dtype_name(tensor->info.type));
    if (tensor->info.shape != std::vector<std::int64_t>{pairs})
        return bad_input("{}: rope_freqs.weight: expected shape [{}], got {}", file.where(), pairs,
                         shape_text(tensor->info.shape));
    std::vector<float> factors(static_cast<std::size_t>(pairs));
    std::memcpy(factors.data(), tensor->data.data(), factors.size() * sizeof(float));
    for (const float factor : factors)
        if (!(factor >= 1e-6F && factor <= 1e6F))
            return bad_input("{}: rope_freqs.weight: expected divisors in 1e-6..1e6, got {}", file.where(), factor);
    return factors;
}

Result<RopeScaling> rope_scaling(const GgufFile& file, const Keys& keys, const ModelConfig& config) {
    RopeScaling scaling;
    FR_ASSIGN(const std::string type, keys.text_or("rope.scaling.type", ""));
    if (type == "none") return scaling;
    if (type.empty()) {  // older files
        FR_ASSIGN(scaling.factor, keys.number_or("rope.scale_linear", 1, 1, 1e6));
        if (scaling.factor != 1) scaling.kind = RopeScaling::Kind::kLinear;
        return scaling;
    }
    if (type != "linear" && type != "yarn")
        return bad_input("{}: {}: expected none, linear or yarn, got '{}'", file.where(),
                         keys.full("rope.scaling.type"), printable(type));
    scaling.kind = type == "linear" ? RopeScaling::Kind::kLinear : RopeScaling::Kind::kYarn;
    FR_ASSIGN(scaling.factor, keys.number_or("rope.scaling.factor", 1, 1, 1e6));
    FR_ASSIGN(const std::int32_t original,
              keys.integer_or("rope.scaling.original_context_length", config.context_tokens, 1, kMaxContextTokens));
    scaling.original_context_tokens = original;
    if (scaling.kind == RopeScaling::Kind::kYarn) {
        FR_ASSIGN(scaling.beta_fast, keys.number_or("rope.scaling.yarn_beta_fast", 32, 1e-3, 1e6));
        FR_ASSIGN(scaling.beta_slow, keys.number_or("rope.scaling.yarn_beta_slow", 1, 1e-3, 1e6));
        FR_ASSIGN(const double attention, keys.number_or("rope.scaling.attn_factor", 1, 1e-3, 1e3));
        scaling.attention_factor = attention * (0.1 * std::log(scaling.factor) + 1);
    }
    return scaling;
}

Status read_rope(const GgufFile& file, const Keys& keys, ModelConfig& config) {
    // Partial rotation belongs to architectures that are not in the table.
    FR_ASSIGN(const std::int32_t rotary, keys.integer_or("rope.dimension_count", config.head_dim, 1, kMaxHeadDim));
    if (rotary != config.head_dim)
        return bad_input("{}: {}: expected the head size {}, got {}", file.where(), keys.full("rope.dimension_count"),
                         config.head_dim, rotary);
    FR_ASSIGN(const double theta, keys.number_or("rope.freq_base", 10000, 1.001, 1e12));
    FR_ASSIGN(const std::vector<float> factors, rope_factors(file, config.head_dim / 2));
    FR_ASSIGN(const RopeScaling scaling, rope_scaling(file, keys, config));
    config.rope = make_rope(theta, config.head_dim, scaling, factors);
    config.rope.interleaved = config.architecture->gguf_rope_interleaved;
    return {};
}

Status read_heads(const GgufFile& file, const Keys& keys, ModelConfig& config) {
    FR_ASSIGN(config.heads, keys.integer("attention.head_count", 1, kMaxHeads));
    FR_ASSIGN(config.kv_heads, keys.integer_or("attention.head_count_kv", config.heads, 1, kMaxHeads));
    if (!keys.has("attention.key_length") && config.hidden_size % config.heads != 0)
        return bad_input("{}: {}: expected a divisor of {} = {}, got {}", file.where(),
                         keys.full("attention.head_count"), keys.full("embedding_length"), config.hidden_size,
                         config.heads);
    FR_ASSIGN(config.head_dim,
              keys.integer_or("attention.key_length", config.hidden_size / config.heads, 2, kMaxHeadDim));
    // The fallback may be out of range too.
    if (config.head_dim < 2 || config.head_dim > kMaxHeadDim)
        return bad_input("{}: {} / {}: expected a head size of 2..{}, got {}", file.where(),
                         keys.full("embedding_length"), keys.full("attention.head_count"), kMaxHeadDim,
                         config.head_dim);
    FR_ASSIGN(const std::int32_t value_length,
              keys.integer_or("attention.value_length", config.head_dim, 1, kMaxHeadDim));
    if (value_length != config.head_dim)
        return bad_input("{}: {}: expected {} = {}, got {}", file.where(), keys.full("attention.value_length"),
                         keys.full("attention.key_length"), config.head_dim, value_length);
    return check_heads(
        config, file.where(),
        {keys.full("attention.head_count"), keys.full("attention.head_count_kv"), keys.full("attention.key_length")});
}

// What would change the result and that we do not compute.
Status refuse_unsupported(const GgufFile& file, const Keys& keys) {
    FR_ASSIGN(const std::int32_t experts, keys.integer_or("expert_count", 0, 0, INT32_MAX));
    if (experts != 0)
        return bad_input("{}: {}: expected 0 (no mixture of experts), got {}", file.where(), keys.full("expert_count"),
                         experts);
    FR_ASSIGN(const std::optional<bool> causal, file.get_bool(keys.full("attention.causal")));
    if (causal && !*causal)
        return bad_input("{}: {}: expected true (a decoder), got false", file.where(), keys.full("attention.causal"));
    return {};
}

}  // namespace

Result<ModelConfig> config_from_gguf(const GgufFile& file) {
    ModelConfig config;
    FR_ASSIGN(const std::optional<std::string_view> name, file.get_string("general.architecture"));
    if (!name) return bad_input("{}: general.architecture is missing", file.where());
    config.architecture = find_architecture(*name);
    if (config.architecture == nullptr)
        return bad_input("{}: general.architecture: expected one of {}, got '{}'", file.where(),
                         supported_architectures(), printable(*name));
    const Keys keys(file, *name);
    FR_TRY(refuse_unsupported(file, keys));

    FR_ASSIGN(const std::optional<std::string_view> title, file.get_string("general.name"));
    config.name = title ? std::string(*title) : std::string(*name);
    FR_ASSIGN(config.layers, keys.integer("block_count", 1, kMaxLayers));
    FR_ASSIGN(config.hidden_size, keys.integer("embedding_length", 1, kMaxHidden));
    FR_ASSIGN(config.ffn_size, keys.integer("feed_forward_length", 1, kMaxFfn));
    FR_ASSIGN(config.context_tokens, keys.integer("context_length", 1, kMaxContextTokens));
    FR_TRY(read_heads(file, keys, config));
    if (!keys.has("attention.layer_norm_rms_epsilon"))
        return bad_input("{}: {} is missing", file.where(), keys.full("attention.layer_norm_rms_epsilon"));
    FR_ASSIGN(const double eps, keys.number_or("attention.layer_norm_rms_epsilon", 0, 0, 1));
    config.rms_norm_eps = static_cast<float>(eps);
    FR_ASSIGN(config.sliding_window_tokens, keys.integer_or("attention.sliding_window", 0, 0, kMaxContextTokens));
    FR_ASSIGN(const double scale, keys.number_or("attention.scale", 0, 0, 1e3));
    config.attention_scale = scale > 0 ? static_cast<float>(scale)
                                       : static_cast<float>(1.0 / std::sqrt(static_cast<double>(config.head_dim)));
    FR_TRY(read_rope(file, keys, config));

    const TensorView* embedding = file.find_tensor("token_embd.weight");
    if (embedding == nullptr) return bad_input("{}: tensor token_embd.weight is missing", file.where());
    if (embedding->info.shape.size() != 2 || embedding->info.rows() < 1 || embedding->info.rows() > kMaxVocab)
        return bad_input("{}: token_embd.weight: expected shape [1..{}, {}], got {}", file.where(), kMaxVocab,
                         config.hidden_size, shape_text(embedding->info.shape));
    config.vocab_size = static_cast<std::int32_t>(embedding->info.rows());
    config.tied_embeddings = file.find_tensor("output.weight") == nullptr;
    config.qkv_bias = config.architecture->qkv_bias || file.find_tensor("blk.0.attn_q.bias") != nullptr;
    config.attn_out_bias = file.find_tensor("blk.0.attn_output.bias") != nullptr;
    return config;
}

}  // namespace frontier

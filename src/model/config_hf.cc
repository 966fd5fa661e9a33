// Hyper-parameters from a Hugging Face config.json; field names and defaults are those of transformers.
#include <cmath>
#include <optional>

#include "formats/printable.h"
#include "model/config.h"
#include "model/rope_scaling.h"

namespace frontier {
namespace {

// Range-checked fields of one JSON object.
class Fields {
public:
    Fields(const Json& object, std::string_view where) : object_(object), where_(where) {}

    bool has(std::string_view field) const {
        const auto it = object_.find(field);
        return it != object_.end() && !it->is_null();
    }
    const Json& at(std::string_view field) const { return *object_.find(field); }
    const std::string& where() const { return where_; }

    Result<std::int32_t> integer(std::string_view field, std::int64_t low, std::int64_t high) const {
        FR_ASSIGN(const std::int64_t value, json_int(object_, field, where_));
        return in_range(field, value, low, high);
    }
    Result<std::int32_t> integer_or(std::string_view field, std::int32_t fallback, std::int64_t low,
                                    std::int64_t high) const {
        if (!has(field)) return fallback;
        return integer(field, low, high);
    }
    Result<double> number_or(std::string_view field, double fallback, double low, double high) const {
        FR_ASSIGN(const double value, json_number_or(object_, field, fallback, where_));
        if (has(field) && !(value >= low && value <= high))
            return bad_input("{}: field '{}': expected {}..{}, got {}", where_, field, low, high, value);
        return value;
    }
    Result<bool> flag_or(std::string_view field, bool fallback) const {
        return json_bool_or(object_, field, fallback, where_);
    }
    Result<std::string> text_or(std::string_view field, std::string_view fallback) const {
        return json_string_or(object_, field, fallback, where_);
    }

private:
    Result<std::int32_t> in_range(std::string_view field, std::int64_t value, std::int64_t low,
                                  std::int64_t high) const {
        if (value < low || value > high)
            return bad_input("{}: field '{}': expected {}..{}, got {}", where_, field, low, high, value);
        return static_cast<std::int32_t>(value);
    }

    const Json& object_;
    std::string where_;
};

Result<const HfFamily*> find_family(const Fields& fields) {
    if (fields.has("architectures")) {
        const Json& list = fields.at("architectures");
        if (!list.is_array() || list.empty() || !list[0].is_string())
            return bad_input("{}: field 'architectures': expected a list of names", fields.where());
        const auto name = list[0].get<std::string>();
        if (const HfFamily* family = find_hf_family_by_class(name)) return family;
        return bad_input("{}: field 'architectures': expected one of {}, got '{}'", fields.where(),
                         supported_hf_classes(), printable(name));
    }
    FR_ASSIGN(const std::string type, fields.text_or("model_type", ""));
    if (const HfFamily* family = find_hf_family_by_type(type)) return family;
    return bad_input("{}: field 'model_type': expected that of one of {}, got '{}'", fields.where(),
                     supported_hf_classes(), printable(type));
}

// What would change the result and that we do not compute.
Status refuse_unsupported(const Fields& fields) {
    if (fields.has("quantization_config"))
        return bad_input(
            "{}: field 'quantization_config': expected none (F32, F16 or BF16 weights), got a quantised "
            "model; use its GGUF form or the unquantised original",
            fields.where());
    FR_ASSIGN(const std::string activation, fields.text_or("hidden_act", "silu"));
    if (activation != "silu" && activation != "swish")
        return bad_input("{}: field 'hidden_act': expected 'silu', got '{}'", fields.where(), printable(activation));
    FR_ASSIGN(const bool mlp_bias, fields.flag_or("mlp_bias", false));
    if (mlp_bias) return bad_input("{}: field 'mlp_bias': expected false, got true", fields.where());
    FR_ASSIGN(const double rotary, fields.number_or("partial_rotary_factor", 1, 0, 1));
    if (rotary != 1) return bad_input("{}: field 'partial_rotary_factor': expected 1, got {}", fields.where(), rotary);
    return {};
}

// `layer_types` of newer files lists each layer's kind of attention.
Result<std::optional<bool>> all_layers_windowed(const Fields& fields) {
    if (!fields.has("layer_types")) return std::nullopt;
    const Json& list = fields.at("layer_types");
    if (!list.is_array() || list.empty())
        return bad_input("{}: field 'layer_types': expected a list of names", fields.where());
    std::size_t windowed = 0;
    for (const Json& item : list) {
        const std::string kind = item.is_string() ? item.get<std::string>() : dump_json(item);
        if (kind != "full_attention" && kind != "sliding_attention")
            return bad_input("{}: field 'layer_types': expected full_attention or sliding_attention, got '{}'",
                             fields.where(), printable(kind));
        windowed += kind == "sliding_attention" ? 1U : 0U;
    }
    if (windowed != 0 && windowed != list.size())
        return bad_input("{}: field 'layer_types': expected one kind for all layers, got {} of {} windowed",
                         fields.where(), windowed, list.size());
    return windowed != 0;
}

Result<std::int32_t> read_window(const Fields& fields, const HfFamily& family, std::int32_t layers) {
    if (family.window == HfFamily::Window::kNever) return 0;
    FR_ASSIGN(const std::int32_t window, fields.integer_or("sliding_window", 0, 0, kMaxContextTokens));
    if (window == 0) return 0;
    if (family.window == HfFamily::Window::kAlways) return window;
    FR_ASSIGN(const bool use, fields.flag_or("use_sliding_window", false));
    if (!use) return 0;
    FR_ASSIGN(const std::optional<bool> listed, all_layers_windowed(fields));
    if (listed) return *listed ? window : 0;
    // transformers: layers from max_window_layers on have the window (28 is its class default).
    FR_ASSIGN(const std::int32_t first, fields.integer_or("max_window_layers", 28, 0, INT32_MAX));
    if (first >= layers) return 0;
    if (first == 0) return window;
    return bad_input(
        "{}: field 'max_window_layers': expected 0 or at least the {} layers (one kind of attention for "
        "all), got {}",
        fields.where(), layers, first);
}

Result<RopeScaling> read_scaling(const Fields& scale, const std::string& type, std::int32_t context_tokens) {
    RopeScaling scaling;
    if (type == "default") return scaling;
    if (type == "linear")
        scaling.kind = RopeScaling::Kind::kLinear;
    else if (type == "llama3")
        scaling.kind = RopeScaling::Kind::kLlama3;
    else if (type == "yarn")
        scaling.kind = RopeScaling::Kind::kYarn;
    else
        return bad_input("{}: field 'rope_type': expected default, linear, llama3 or yarn, got '{}'", scale.where(),
                         printable(type));
    if (!scale.has("factor")) return bad_input("{}: field 'factor' is missing", scale.where());
    FR_ASSIGN(scaling.factor, scale.number_or("factor", 1, 1, 1e6));
    FR_ASSIGN(scaling.original_context_tokens, scale.number_or("original_max_position_embeddings", context_tokens, 1,
                                                               static_cast<double>(kMaxContextTokens)));
    FR_ASSIGN(scaling.low_freq_factor, scale.number_or("low_freq_factor", 1, 1e-3, 1e6));
    FR_ASSIGN(scaling.high_freq_factor, scale.number_or("high_freq_factor", 4, 1e-3, 1e6));
    if (scaling.high_freq_factor <= scaling.low_freq_factor)
        return bad_input("{}: field 'high_freq_factor': expected more than low_freq_factor = {}, got {}", scale.where(),
                         scaling.low_freq_factor, scaling.high_freq_factor);
    FR_ASSIGN(scaling.beta_fast, scale.number_or("beta_fast", 32, 1e-3, 1e6));
    FR_ASSIGN(scaling.beta_slow, scale.number_or("beta_slow", 1, 1e-3, 1e6));
    FR_ASSIGN(scaling.truncate, scale.flag_or("truncate", true));
    if (scale.has("mscale") || scale.has("mscale_all_dim"))
        return bad_input("{}: field 'mscale': expected none for this architecture", scale.where());
    if (scale.has("attention_factor")) {
        FR_ASSIGN(const double attention, scale.number_or("attention_factor", 1, 1e-3, 1e3));
        scaling.attention_factor = attention;
    }
    return scaling;
}

Status read_rope(const Fields& fields, ModelConfig& config) {
    FR_ASSIGN(double theta, fields.number_or("rope_theta", 10000, 1.001, 1e12));
    RopeScaling scaling;
    // transformers 5 moved theta and scaling into one object.
    for (const std::string_view field : {"rope_scaling", "rope_parameters"}) {
        if (!fields.has(field)) continue;
        const Json& object = fields.at(field);
        const std::string where = fmt::format("{}: {}", fields.where(), field);
        if (!object.is_object()) return bad_input("{}: expected an object, got {}", where, object.type_name());
        const Fields scale(object, where);
        FR_ASSIGN(theta, scale.number_or("rope_theta", theta, 1.001, 1e12));
        FR_ASSIGN(const double rotary, scale.number_or("partial_rotary_factor", 1, 0, 1));
        if (rotary != 1) return bad_input("{}: field 'partial_rotary_factor': expected 1, got {}", where, rotary);
        FR_ASSIGN(const std::string older, scale.text_or("type", "default"));
        FR_ASSIGN(const std::string type, scale.text_or("rope_type", older));
        FR_ASSIGN(scaling, read_scaling(scale, type, config.context_tokens));
    }
    config.rope = make_rope(theta, config.head_dim, scaling);
    config.rope.interleaved = false;
    config.rope.regroup = config.architecture->gguf_rope_interleaved;
    return {};
}

Status read_heads(const Fields& fields, const HfFamily& family, ModelConfig& config) {
    FR_ASSIGN(config.heads, fields.integer("num_attention_heads", 1, kMaxHeads));
    FR_ASSIGN(config.kv_heads, fields.integer_or("num_key_value_heads", config.heads, 1, kMaxHeads));
    const bool derived = !fields.has("head_dim") && family.default_head_dim == 0;
    if (derived && config.hidden_size % config.heads != 0)
        return bad_input("{}: field 'num_attention_heads': expected a divisor of hidden_size = {}, got {}",
                         fields.where(), config.hidden_size, config.heads);
    const std::int32_t fallback = derived ? config.hidden_size / config.heads : family.default_head_dim;
    FR_ASSIGN(config.head_dim, fields.integer_or("head_dim", fallback, 2, kMaxHeadDim));
    if (config.head_dim < 2 || config.head_dim > kMaxHeadDim)
        return bad_input("{}: hidden_size / num_attention_heads: expected a head size of 2..{}, got {}", fields.where(),
                         kMaxHeadDim, config.head_dim);
    return check_heads(config, fields.where(), {"num_attention_heads", "num_key_value_heads", "head_dim"});
}

}  // namespace

Result<ModelConfig> config_from_hf(const Json& config_json, std::string_view where) {
    if (!config_json.is_object())
        return bad_input("{}: expected a JSON object, got {}", where, config_json.type_name());
    const Fields fields(config_json, where);
    FR_ASSIGN(const HfFamily* family, find_family(fields));
    FR_TRY(refuse_unsupported(fields));

    ModelConfig config;
    config.architecture = find_architecture(family->architecture);
    FR_ASSIGN(config.vocab_size, fields.integer("vocab_size", 1, kMaxVocab));
    FR_ASSIGN(config.hidden_size, fields.integer("hidden_size", 1, kMaxHidden));
    FR_ASSIGN(config.ffn_size, fields.integer("intermediate_size", 1, kMaxFfn));
    FR_ASSIGN(config.layers, fields.integer("num_hidden_layers", 1, kMaxLayers));
    FR_ASSIGN(config.context_tokens,
              fields.integer_or("max_position_embeddings", family->default_context_tokens, 1, kMaxContextTokens));
    FR_TRY(read_heads(fields, *family, config));
    FR_ASSIGN(const double eps, fields.number_or("rms_norm_eps", 1e-6, 0, 1));
    config.rms_norm_eps = static_cast<float>(eps);
    config.attention_scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(config.head_dim)));
    FR_ASSIGN(config.tied_embeddings, fields.flag_or("tie_word_embeddings", false));
    FR_ASSIGN(const bool attention_bias, fields.flag_or("attention_bias", false));
    // qwen2 has q, k and v biases whatever the field says, and never one at the output.
    config.qkv_bias = attention_bias || config.architecture->qkv_bias;
    config.attn_out_bias = attention_bias && !config.architecture->qkv_bias;
    FR_ASSIGN(config.sliding_window_tokens, read_window(fields, *family, config.layers));
    FR_TRY(read_rope(fields, config));
    return config;
}

}  // namespace frontier

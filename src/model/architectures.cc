// The architectures we run: one row each, and one row per Hugging Face class that maps onto them.
#include <array>

#include "model/config.h"

namespace frontier {
namespace {

constexpr std::array kArchitectures = {
    ArchitectureTraits{.name = "llama", .gguf_rope_interleaved = true},
    ArchitectureTraits{.name = "qwen2", .qkv_bias = true},
    ArchitectureTraits{.name = "qwen3", .qk_norm = true},
};

// Defaults are those of the transformers configuration classes.
constexpr std::array kHfFamilies = {
    HfFamily{.class_name = "LlamaForCausalLM", .model_type = "llama", .architecture = "llama"},
    HfFamily{.class_name = "MistralForCausalLM",
             .model_type = "mistral",
             .architecture = "llama",
             .window = HfFamily::Window::kAlways,
             .default_context_tokens = 131072},
    HfFamily{.class_name = "Qwen2ForCausalLM",
             .model_type = "qwen2",
             .architecture = "qwen2",
             .window = HfFamily::Window::kFromUseField,
             .default_context_tokens = 32768},
    HfFamily{.class_name = "Qwen3ForCausalLM",
             .model_type = "qwen3",
             .architecture = "qwen3",
             .window = HfFamily::Window::kFromUseField,
             .default_head_dim = 128,
             .default_context_tokens = 32768},
};

void append(std::string& names, std::string_view name) {
    if (!names.empty()) names += ", ";
    names += name;
}

}  // namespace

const ArchitectureTraits* find_architecture(std::string_view gguf_name) {
    for (const ArchitectureTraits& row : kArchitectures)
        if (row.name == gguf_name) return &row;
    return nullptr;
}

std::string supported_architectures() {
    std::string names;
    for (const ArchitectureTraits& row : kArchitectures) append(names, row.name);
    return names;
}

const HfFamily* find_hf_family_by_class(std::string_view class_name) {
    for (const HfFamily& row : kHfFamilies)
        if (row.class_name == class_name) return &row;
    return nullptr;
}

const HfFamily* find_hf_family_by_type(std::string_view model_type) {
    for (const HfFamily& row : kHfFamilies)
        if (row.model_type == model_type) return &row;
    return nullptr;
}

std::string supported_hf_classes() {
    std::string names;
    for (const HfFamily& row : kHfFamilies) append(names, row.class_name);
    return names;
}

Status check_heads(const ModelConfig& config, std::string_view where, const HeadKeys& keys) {
    if (config.heads % config.kv_heads != 0)
        return bad_input("{}: {}: expected a divisor of {} = {}, got {}", where, keys.kv_heads, keys.heads,
                         config.heads, config.kv_heads);
    if (config.head_dim % 2 != 0)
        return bad_input("{}: {}: expected an even number (rotary pairs), got {}", where, keys.head_dim,
                         config.head_dim);
    return {};
}

}  // namespace frontier

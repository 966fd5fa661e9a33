// frontier inspect: what a model file holds, for people and as JSON.
#include "cli/command.h"
#include "cli/console.h"
#include "cli/flags.h"
#include "model/inspect.h"

namespace frontier {
namespace {

struct InspectFlags {
    ModelFlags common;
    bool tensors = false;
};

Json token_json(const std::optional<ModelInspection::SpecialToken>& token) {
    if (!token.has_value()) return nullptr;
    return {{"id", token->id}, {"piece", token->piece}};
}

Json config_json(const ModelConfig& config) {
    Json json;
    json["name"] = config.name;
    json["vocab_size"] = config.vocab_size;
    json["hidden_size"] = config.hidden_size;
    json["layers"] = config.layers;
    json["heads"] = config.heads;
    json["kv_heads"] = config.kv_heads;
    json["head_dim"] = config.head_dim;
    json["ffn_size"] = config.ffn_size;
    json["context_tokens"] = config.context_tokens;
    json["rms_norm_eps"] = config.rms_norm_eps;
    json["tied_embeddings"] = config.tied_embeddings;
    json["sliding_window_tokens"] = config.sliding_window_tokens;
    return json;
}

Json tokenizer_json(const ModelInspection::TokenizerFacts& facts) {
    Json json{{"kind", facts.kind},
              {"pre_tokenizer", facts.pre_tokenizer},
              {"tokens", facts.tokens},
              {"merges", facts.merges},
              {"control_tokens", facts.control_tokens}};
    json["bos"] = token_json(facts.bos);
    json["eos"] = token_json(facts.eos);
    json["unk"] = token_json(facts.unk);
    json["pad"] = token_json(facts.pad);
    json["end_of_generation"] = Json::array();
    for (const auto& token : facts.end_of_generation) json["end_of_generation"].push_back(token_json(token));
    json["add_bos"] = facts.add_bos;
    json["add_eos"] = facts.add_eos;
    return json;
}

Json defaults_json(const GenerationDefaults& defaults) {
    Json json = Json::object();
    if (defaults.temperature) json["temperature"] = *defaults.temperature;
    if (defaults.top_k) json["top_k"] = *defaults.top_k;
    if (defaults.top_p) json["top_p"] = *defaults.top_p;
    if (defaults.min_p) json["min_p"] = *defaults.min_p;
    if (defaults.repeat_penalty) json["repeat_penalty"] = *defaults.repeat_penalty;
    return json;
}

Json inspection_json(const ModelInspection& model) {
    Json json{{"path", model.where},
              {"format", model.format},
              {"architecture", model.architecture},
              {"weight_type", model.weight_type},
              {"parameters", model.parameters},
              {"tensor_bytes", model.tensor_bytes},
              {"file_bytes", model.file_bytes},
              {"bits_per_weight", model.bits_per_weight}};
    json["config"] = model.config.has_value() ? config_json(*model.config) : Json(nullptr);
    json["types"] = Json::array();
    for (const auto& share : model.types)
        json["types"].push_back({{"type", dtype_name(share.type)},
                                 {"tensors", share.tensors},
                                 {"parameters", share.parameters},
                                 {"bytes", share.bytes}});
    json["tensors"] = Json::array();
    for (const TensorInfo& tensor : model.tensors)
        json["tensors"].push_back({{"name", tensor.name},
                                   {"type", dtype_name(tensor.type)},
                                   {"shape", tensor.shape},
                                   {"bytes", tensor.bytes()}});
    json["tokenizer"] = model.tokenizer.has_value() ? tokenizer_json(*model.tokenizer) : Json(nullptr);
    if (!model.tokenizer_error.empty()) json["tokenizer_error"] = model.tokenizer_error;
    json["chat_template"] = model.chat_template.empty() ? Json(nullptr) : Json(model.chat_template);
    json["generation_defaults"] = defaults_json(model.generation_defaults);
    return json;
}

std::string token_text(const char* name, const std::optional<ModelInspection::SpecialToken>& token) {
    return token.has_value() ? fmt::format(" {} {} '{}'", name, token->id, visible(token->piece)) : std::string();
}

std::string inspection_text(const ModelInspection& model, bool with_tensors) {
    std::string out = fmt::format("{}\n  format        {}\n", visible(model.where), model.format);
    if (model.config.has_value()) {
        const ModelConfig& c = *model.config;
        out += fmt::format("  architecture  {}{}\n", visible(model.architecture),
                           c.name.empty() ? "" : fmt::format(" ({})", visible(c.name)));
        out += fmt::format("  parameters    {} ({:.3f} bits per weight)\n", model.parameters, model.bits_per_weight);
        out +=
            fmt::format("  size          {:.1f} MB of weights, {:.1f} MB on disk\n",
                        static_cast<double>(model.tensor_bytes) * 1e-6, static_cast<double>(model.file_bytes) * 1e-6);
        out += fmt::format("  shape         {} layers, hidden {}, ffn {}, {} heads of {}, {} KV heads, vocabulary {}\n",
                           c.layers, c.hidden_size, c.ffn_size, c.heads, c.head_dim, c.kv_heads, c.vocab_size);
        out += fmt::format("  context       {} tokens{}{}\n", c.context_tokens,
                           c.sliding_window_tokens > 0 ? fmt::format(", window {}", c.sliding_window_tokens) : "",
                           c.tied_embeddings ? "; embeddings and head are one matrix" : "");
    }
    for (const auto& share : model.types)
        out += fmt::format("  {:<13} {} tensors, {} parameters, {:.1f} MB\n", dtype_name(share.type), share.tensors,
                           share.parameters, static_cast<double>(share.bytes) * 1e-6);
    if (model.tokenizer.has_value()) {
        const auto& t = *model.tokenizer;
        out += fmt::format("  tokenizer     {}{}, {} tokens, {} merges\n", t.kind,
                           t.pre_tokenizer.empty() ? "" : fmt::format(" ({})", visible(t.pre_tokenizer)), t.tokens,
                           t.merges);
        out += fmt::format("               {}{}{}{}\n", token_text("bos", t.bos), token_text("eos", t.eos),
                           token_text("unk", t.unk), t.add_bos ? "; a BOS is put first" : "");
    } else if (!model.tokenizer_error.empty()) {
        out += fmt::format("  tokenizer     cannot be used: {}\n", visible(model.tokenizer_error));
    }
    out += fmt::format("  chat template {}\n",
                       model.chat_template.empty() ? "none" : fmt::format("{} characters", model.chat_template.size()));
    if (with_tensors)
        for (const TensorInfo& tensor : model.tensors)
            out += fmt::format("  {:<7} {:<20} {}\n", dtype_name(tensor.type), shape_text(tensor.shape),
                               visible(tensor.name));
    return out;
}

Status inspect(const InspectFlags& flags) {
    FR_TRY(apply_log_level(flags.common));
    FR_ASSIGN(const auto source, open_model(flags.common.model));
    const ModelInspection model = inspect_model(*source);
    if (flags.common.json)
        print_json(inspection_json(model));
    else
        print_text(inspection_text(model, flags.tensors));
    return {};
}

}  // namespace

void add_inspect_command(CLI::App& app, Action& chosen) {
    auto flags = std::make_shared<InspectFlags>();
    CLI::App* command = app.add_subcommand("inspect", "What a model file holds");
    add_file_flags(*command, flags->common);
    command->add_flag("--tensors", flags->tensors, "list every tensor (always in JSON)");
    command->callback([&chosen, flags] { chosen = [flags] { return inspect(*flags); }; });
}

}  // namespace frontier

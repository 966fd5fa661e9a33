// frontier eval: quality of a model on a text.
#include "cli/command.h"
#include "cli/console.h"
#include "cli/flags.h"
#include "platform/clock.h"
#include "quality/perplexity.h"

namespace frontier {
namespace {

struct PerplexityFlags {
    ModelFlags model;
    std::string text;
    std::string method = "bos_window_512";
};

Status perplexity(const PerplexityFlags& flags) {
    FR_ASSIGN(const PerplexityMethod method, perplexity_method_from_name(flags.method));
    FR_ASSIGN(const std::string text, read_input(flags.text));
    ModelFlags model_flags = flags.model;
    if (model_flags.ctx == -1) model_flags.ctx = method.window_tokens;
    LoadOptions options;
    options.max_logits_rows = 0;
    FR_ASSIGN(LoadedModel loaded, load_with_progress(model_flags, options));
    if (const std::int64_t trained = loaded.source->config().context_tokens;
        trained > 0 && method.window_tokens > trained)
        print_warning(
            fmt::format("windows of {} tokens exceed the {} that the model was trained for: expect a higher "
                        "perplexity than with shorter ones",
                        method.window_tokens, trained));
    PerplexityOptions perplexity_options;
    perplexity_options.method = method;
    perplexity_options.text_name = flags.text == "-" ? "standard input" : std::string_view(flags.text);
    perplexity_options.interrupted = &interrupt_flag();
    PerplexityResult result;
    const std::int64_t start_ns = now_ns();
    {
        ProgressLine line;
        perplexity_options.progress = [&line](std::int64_t done, std::int64_t total, double value) {
            line.show(fmt::format("{} of {} tokens, perplexity {:.3f}", done, total, value));
        };
        FR_ASSIGN(result, measure_perplexity(*loaded.runner, *loaded.tokenizer, text, perplexity_options));
    }
    const double seconds = ns_to_s(now_ns() - start_ns);
    if (flags.model.json) {
        Json report{{"perplexity", result.perplexity},
                    {"nll", result.nll},
                    {"nll_standard_error", result.standard_error},
                    {"tokens_scored", result.tokens_scored},
                    {"method", flags.method},
                    {"text", flags.text},
                    {"seconds", seconds}};
        report.update(run_facts(loaded));
        report["memory"] = memory_facts(loaded);
        print_json(report);
    } else {
        print_text(fmt::format(
            "perplexity {:.4f} (nll {:.6f} +- {:.6f}) over {} tokens, {} in {:.1f} s\n"
            "weights {} | compute {} | KV {} | isa {} | threads {}\n",
            result.perplexity, result.nll, result.standard_error, result.tokens_scored, flags.method, seconds,
            loaded.weight_type(), loaded.compute_type(), loaded.kv_type(), isa_name(loaded.isa), loaded.threads));
    }
    return {};
}

}  // namespace

void add_eval_commands(CLI::App& app, Action& chosen) {
    CLI::App* eval = app.add_subcommand("eval", "Measure a model's quality");
    eval->require_subcommand(1);
    auto flags = std::make_shared<PerplexityFlags>();
    CLI::App* command = eval->add_subcommand("perplexity", "Perplexity of a text");
    add_model_flags(*command, flags->model);
    command->add_option("--text", flags->text, "the text file; - is standard input")->required();
    command->add_option("--method", flags->method, "bos_window_512, bos_window_1024 or llama_perplexity_c512")
        ->capture_default_str();
    command->callback([&chosen, flags] { chosen = [flags] { return perplexity(*flags); }; });
}

}  // namespace frontier

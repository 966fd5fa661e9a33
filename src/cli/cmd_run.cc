// frontier run: one generation from a text, a file or standard input; a chat on a terminal.
#include "cli/chat.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/generation.h"
#include "cli/live_status.h"
#include "cli/sampling_flags.h"
#include "measure/rates.h"
#include "platform/clock.h"

namespace frontier {
namespace {

struct RunFlags {
    ModelFlags model;
    SamplingFlags sampling;
    std::optional<std::string> prompt;
    std::optional<std::string> file;
    std::string system;
    bool chat = false;
    bool no_chat = false;
    bool parse_special = false;
    bool stats = false;
    bool live = false;
    bool deterministic = false;
};

Result<std::string> prompt_text(const RunFlags& flags) {
    if (flags.prompt.has_value()) return *flags.prompt;
    return read_input(flags.file.value_or("-"));
}

Result<std::vector<TokenId>> prompt_ids(const RunFlags& flags, const LoadedModel& loaded, const std::string& text) {
    if (!flags.chat && flags.system.empty())
        return loaded.tokenizer->encode(text, {.add_special = true, .parse_special = flags.parse_special});
    FR_ASSIGN(const ChatTemplate chat_template, chat_template_of(loaded));
    std::vector<ChatMessage> messages;
    if (!flags.system.empty()) messages.push_back({"system", flags.system});
    messages.push_back({"user", text});
    return chat_prompt(loaded, chat_template, messages);
}

Json logprobs_json(const Generation& generation, const Tokenizer& tokenizer) {
    Json rows = Json::array();
    for (const SampledToken& token : generation.tokens) {
        Json row{{"id", token.id}, {"token", tokenizer.token_bytes(token.id, true)}, {"logprob", token.logprob}};
        row["top"] = Json::array();
        for (const TokenLogprob& other : token.alternatives)
            row["top"].push_back(
                {{"id", other.id}, {"token", tokenizer.token_bytes(other.id, true)}, {"logprob", other.logprob}});
        rows.push_back(std::move(row));
    }
    return rows;
}

template <typename T>
Json json_or_null(const std::optional<T>& value) {
    return value.has_value() ? Json(*value) : Json(nullptr);
}

Json report_json(const Generation& generation, const LoadedModel& loaded, const Request& request) {
    const Figures figures = figures_of(generation, loaded);
    Json report;
    report["text"] = generation.text;
    report["token_ids"] = Json::array();
    for (const SampledToken& token : generation.tokens) report["token_ids"].push_back(token.id);
    report["prompt_tokens"] = generation.times.prompt_tokens;
    report["completion_tokens"] = generation.times.completion_tokens;
    report["finish_reason"] = finish_reason_name(generation.finish);
    report["ttft_ms"] = json_or_null(figures.ttft_ms);
    report["prefill_tokens_per_s"] = json_or_null(figures.prefill_tokens_per_s);
    report["prefill_gflops"] = json_or_null(figures.prefill_gflops);
    report["prefill_roofline_share"] = json_or_null(figures.prefill_roofline_share);
    report["decode_tokens_per_s"] = json_or_null(figures.decode_tokens_per_s);
    report["weight_gb_per_s"] = json_or_null(figures.weight_gb_per_s);
    report["roofline_share"] = json_or_null(figures.roofline_share);
    report["logits_hash"] = generation.logits_hash;
    report["temperature"] = request.sampling.temperature;
    report["seed"] = request.sampling.seed;
    if (request.sampling.top_logprobs >= 0) report["logprobs"] = logprobs_json(generation, *loaded.tokenizer);
    report.update(run_facts(loaded));
    report["memory"] = memory_facts(loaded);
    return report;
}

// "42 tokens | 58.3 tokens/s | weights 12.34 GB/s, 64% of this machine's 19.2".
std::string live_text(std::int64_t tokens, std::int64_t decode_ns, double step_gb, std::optional<double> limit) {
    std::string text = fmt::format(" {} token{}", tokens, tokens == 1 ? "" : "s");
    const double seconds = ns_to_s(decode_ns);
    if (tokens < 2 || seconds <= 0) return text;
    const double rate = static_cast<double>(tokens - 1) / seconds;
    text += fmt::format(" | {:.1f} tokens/s | weights {:.2f} GB/s", rate, rate * step_gb);
    if (limit.has_value())
        text += fmt::format(", {:.0f}% of this machine's {:.1f}", 100 * rate * step_gb / *limit, *limit);
    return text;
}

Status run_once(const RunFlags& flags, LoadedModel& loaded, Request request) {
    Engine engine(*loaded.runner, loaded.tokenizer, {.context_tokens = loaded.context_tokens});
    const bool json = flags.model.json;
    FR_ASSIGN(const std::string text, prompt_text(flags));
    GenerateOptions options;
    options.received_ns = now_ns();
    FR_ASSIGN(request.prompt, prompt_ids(flags, loaded, text));
    interrupt_flag();
    LiveStatus live;
    if (flags.live && !json) live.begin();
    if (live.active()) {
        live.show(fmt::format(" reading {} prompt tokens", request.prompt.size()));
        options.on_token = [&live, step_gb = decode_cost(loaded.runner->model()).bytes * 1e-9,
                            limit = figures_of({}, loaded).gb_per_s_limit](std::int64_t tokens,
                                                                           std::int64_t decode_ns) {
            if (live.due()) live.show(live_text(tokens, decode_ns, step_gb, limit));
        };
    }
    FR_ASSIGN(const Generation generation, generate(
                                               engine, request,
                                               [json](std::string_view piece) {
                                                   if (!json) print_text(piece);
                                               },
                                               options));
    live.end();
    if (json) {
        print_json(report_json(generation, loaded, request));
    } else {
        print_text("\n");
        const std::string figures = figures_text(generation, figures_of(generation, loaded), loaded);
        if (flags.stats) {
            print_text("\n" + figures + "\n");
        } else {
            print_note("\n" + figures);
        }
        if (generation.finish == FinishReason::kContext)
            print_warning(fmt::format("the context of {} tokens is full: the text ends here (raise --ctx)",
                                      loaded.context_tokens));
    }
    if (generation.finish == FinishReason::kCancelled) return fail(ErrorCode::kInterrupted, "interrupted");
    return {};
}

Status run(const RunFlags& flags) {
    if (flags.prompt.has_value() && flags.file.has_value())
        return fail(ErrorCode::kUsage, "-p and -f: expected one of them, got both");
    const bool templated = flags.chat || !flags.system.empty();
    const bool interactive = !flags.prompt.has_value() && !flags.file.has_value() && stdin_is_terminal();
    if (interactive && flags.model.json)
        return fail(ErrorCode::kUsage, "--json: needs a prompt (-p TEXT, -f FILE or standard input), not a terminal");
    if (flags.parse_special && (interactive ? !flags.no_chat : templated))
        return fail(ErrorCode::kUsage,
                    "--parse-special: expected plain text, got a chat (--chat, --system or a terminal without "
                    "--no-chat), where the user's text never holds control tokens");
    LoadOptions options;
    options.max_logits_rows = 1;
    options.deterministic = flags.deterministic;
    FR_ASSIGN(LoadedModel loaded, load_with_progress(flags.model, options));
    FR_ASSIGN(Request request, request_from_flags(flags.sampling, *loaded.source));
    if (!interactive) return run_once(flags, loaded, std::move(request));
    return run_chat(loaded, request,
                    {.system = flags.system, .plain = flags.no_chat, .parse_special = flags.parse_special});
}

}  // namespace

void add_run_command(CLI::App& app, Action& chosen) {
    auto flags = std::make_shared<RunFlags>();
    CLI::App* command = app.add_subcommand("run", "Generate text; without a prompt on a terminal, chat");
    add_model_flags(*command, flags->model);
    add_sampling_flags(*command, flags->sampling);
    command->add_option("-p,--prompt", flags->prompt, "the text to continue");
    command->add_option("-f,--file", flags->file, "read the text from a file, byte for byte; - is standard input");
    command->add_option("--system", flags->system, "a system message; applies the chat template to -p or -f too");
    command->add_flag("--chat", flags->chat, "apply the chat template to -p or -f: one turn, answered");
    command->add_flag("--no-chat", flags->no_chat,
                      "on a terminal: continue each line as plain text, without a template");
    command->add_flag("--parse-special", flags->parse_special,
                      "control tokens written out in the prompt count as such (not in a chat)");
    // No sum depends on how work is cut; only amx has a second numeric path, for many rows, and the flag turns it off.
    command->add_flag("--deterministic", flags->deterministic,
                      "output bits must not depend on threads, batch or chunks (on amx: runs as avx512)");
    command->add_flag("--stats", flags->stats,
                      "print the figures on stdout after the text (default: stderr of a terminal)");
    command->add_flag("--live", flags->live,
                      "with -p or -f, on a terminal: show the speed in the last row while the text appears");
    command->callback([&chosen, flags] { chosen = [flags] { return run(*flags); }; });
}

}  // namespace frontier

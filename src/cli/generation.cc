#include "cli/generation.h"

#include "cli/console.h"
#include "measure/rates.h"
#include "platform/clock.h"
#include "platform/topology.h"

namespace frontier {

Result<Generation> generate(Engine& engine, Request request, const std::function<void(std::string_view)>& on_text,
                            const GenerateOptions& options) {
    Generation generation;
    generation.received_ns = options.received_ns > 0 ? options.received_ns : now_ns();
    std::int64_t first_token_ns = 0;
    FR_ASSIGN(const RequestId id, engine.submit(std::move(request)));
    bool running = true;
    while (running) {
        if (interrupt_flag().load()) engine.cancel(id);
        FR_ASSIGN(std::vector<RequestEvent> events, engine.step());
        for (RequestEvent& event : events) {
            if (event.error.has_value()) return std::unexpected(std::move(*event.error));
            if (!event.text.empty()) on_text(event.text);
            generation.text += event.text;
            if (event.token.has_value()) {
                generation.tokens.push_back(std::move(*event.token));
                if (options.on_token) {
                    const std::int64_t now = now_ns();
                    if (first_token_ns == 0) first_token_ns = now;
                    options.on_token(std::ssize(generation.tokens), now - first_token_ns);
                }
            }
            if (event.finish.has_value()) {
                generation.finish = *event.finish;
                generation.times = *event.times;
                running = false;
            }
        }
    }
    generation.logits_hash = fmt::format("{:016x}", engine.logits_hash());
    return generation;
}

Figures figures_of(const Generation& generation, const LoadedModel& loaded) {
    const RequestTimes& times = generation.times;
    const Model& model = loaded.runner->model();
    const std::string compute_type = loaded.compute_type();
    Figures figures;
    const std::optional<Roofline> roofline = load_cached_roofline();
    if (roofline.has_value()) {
        const auto known = [](double limit) { return limit > 0 ? std::optional(limit) : std::nullopt; };
        figures.gb_per_s_limit = known(roofline->read_gb_per_s(loaded.threads));
        figures.gflops_limit = known(
            arithmetic_limit_flops(*roofline, loaded.isa, compute_type, loaded.threads, times.prefill_tokens) * 1e-9);
    }
    const auto share = [&](const char* test, double tokens_per_s, const StepCost& cost) {
        return roofline.has_value()
                   ? roofline_share_of(*roofline, test, 1, tokens_per_s, cost, loaded.isa, compute_type, loaded.threads)
                   : std::nullopt;
    };
    if (times.first_token_ns == 0) return figures;
    figures.ttft_ms = ns_to_ms(times.first_token_ns - generation.received_ns);
    const double prefill_s = ns_to_s(times.first_token_ns - times.prefill_start_ns);
    if (prefill_s > 0 && times.prefill_tokens > 0) {
        const StepCost cost = prefill_cost(model, times.prefill_tokens);
        const double rate = static_cast<double>(times.prefill_tokens) / prefill_s;
        figures.prefill_tokens_per_s = rate;
        figures.prefill_gflops = cost.flops * rate * 1e-9;
        figures.prefill_roofline_share = share("prefill", rate, cost);
    }
    const double decode_s = ns_to_s(times.last_token_ns - times.first_token_ns);
    if (times.decode_steps >= 1 && decode_s > 0) {
        const StepCost cost = decode_cost(model);
        const double rate = static_cast<double>(times.decode_steps) / decode_s;
        figures.decode_tokens_per_s = rate;
        figures.weight_gb_per_s = cost.bytes * rate * 1e-9;
        figures.roofline_share = share("decode", rate, cost);
    }
    return figures;
}

std::string figures_text(const Generation& generation, const Figures& figures, const LoadedModel& loaded) {
    const RequestTimes& times = generation.times;
    std::string text = fmt::format("load {:.0f} ms", ns_to_ms(loaded.load_ns));
    if (figures.ttft_ms.has_value()) text += fmt::format(" | TTFT {:.1f} ms", *figures.ttft_ms);
    if (figures.prefill_tokens_per_s.has_value()) {
        text += fmt::format(" | prefill {} tokens at {:.1f} tokens/s, {:.1f} GFLOP/s", times.prefill_tokens,
                            *figures.prefill_tokens_per_s, *figures.prefill_gflops);
        if (figures.prefill_roofline_share.has_value())
            text += fmt::format(" ({:.0f}% of this machine's {:.1f})", 100 * *figures.prefill_roofline_share,
                                *figures.gflops_limit);
    }
    if (figures.decode_tokens_per_s.has_value()) {
        text += fmt::format(" | decode {} tokens at {:.1f} tokens/s, weights {:.2f} GB/s", times.completion_tokens,
                            *figures.decode_tokens_per_s, *figures.weight_gb_per_s);
        if (figures.roofline_share.has_value())
            text += fmt::format(" ({:.0f}% of this machine's {:.1f})", 100 * *figures.roofline_share,
                                *figures.gb_per_s_limit);
    }
    if (!figures.gb_per_s_limit.has_value() && figures.prefill_tokens_per_s.has_value())
        text += fmt::format(" (shares of the limits with {} thread{}: unknown until `frontier bench roofline` has run)",
                            loaded.threads, loaded.threads == 1 ? "" : "s");
    const BackendMemory memory = loaded.runner->backend().memory();
    text += fmt::format(
        "\nweights {} | compute {} | KV {} | isa {} | threads {} | memory: weights {:.1f} MB, KV {:.1f} MB, peak "
        "{:.1f} MB (limit {:.1f} MB)",
        loaded.weight_type(), loaded.compute_type(), loaded.kv_type(), isa_name(loaded.isa), loaded.threads,
        static_cast<double>(memory.weight_bytes) * 1e-6, static_cast<double>(memory.kv_bytes) * 1e-6,
        static_cast<double>(memory_state().peak_resident_bytes) * 1e-6,
        static_cast<double>(memory_limit_bytes(memory)) * 1e-6);
    // Before the first token there are no logits.
    if (times.first_token_ns != 0) text += fmt::format(" | logits {}", generation.logits_hash);
    return text;
}

Result<ChatTemplate> chat_template_of(const LoadedModel& loaded) {
    const std::string source = loaded.source->chat_template_source();
    if (source.empty()) return ChatTemplate::fallback();
    return ChatTemplate::parse(source, loaded.source->where());
}

Result<std::vector<TokenId>> chat_prompt(const LoadedModel& loaded, const ChatTemplate& chat_template,
                                         const std::vector<ChatMessage>& messages) {
    const TokenizerSpec& spec = loaded.tokenizer->spec();
    const auto piece = [&](const std::optional<TokenId>& id) {
        return id.has_value() ? loaded.tokenizer->token_bytes(*id, true) : std::string();
    };
    ChatOptions options;
    options.bos_token = piece(spec.bos);
    options.eos_token = piece(spec.eos);
    FR_ASSIGN(const RenderedText rendered, chat_template.render(messages, options));
    std::vector<TextSpan> spans;
    const std::string_view text = rendered.text;
    std::size_t at = 0;
    for (const RenderedText::Range& range : rendered.untrusted) {
        if (range.begin > at) spans.push_back({text.substr(at, range.begin - at), true});
        spans.push_back({text.substr(range.begin, range.end - range.begin), false});
        at = range.end;
    }
    if (at < text.size()) spans.push_back({text.substr(at), true});
    FR_ASSIGN(std::vector<TokenId> ids, loaded.tokenizer->encode_spans(spans));
    if (ids.empty())
        return bad_input("{}: chat template: expected a prompt, it rendered nothing for {} message{}",
                         loaded.source->where(), messages.size(), messages.size() == 1 ? "" : "s");
    // Templates of Hugging Face write the BOS themselves; the fallback has none to write.
    if (loaded.source->chat_template_source().empty() && spec.add_bos && spec.bos.has_value())
        ids.insert(ids.begin(), *spec.bos);
    return ids;
}

}  // namespace frontier

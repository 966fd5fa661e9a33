#include "cli/generation.h"

#include "cli/console.h"
#include "measure/roofline.h"
#include "platform/clock.h"
#include "platform/topology.h"

namespace frontier {

Result<Generation> generate(Engine& engine, Request request, const std::function<void(std::string_view)>& on_text) {
    Generation generation;
    FR_ASSIGN(const RequestId id, engine.submit(std::move(request)));
    bool running = true;
    while (running) {
        if (interrupt_flag().load()) engine.cancel(id);
        FR_ASSIGN(std::vector<RequestEvent> events, engine.step());
        for (RequestEvent& event : events) {
            if (event.error.has_value()) return std::unexpected(std::move(*event.error));
            if (!event.text.empty()) on_text(event.text);
            generation.text += event.text;
            if (event.token.has_value()) generation.tokens.push_back(std::move(*event.token));
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
    Figures figures;
    if (times.first_token_ns == 0) return figures;
    figures.ttft_ms = ns_to_ms(times.first_token_ns - times.submitted_ns);
    const double prefill_s = ns_to_s(times.first_token_ns - times.prefill_start_ns);
    if (prefill_s > 0) figures.prefill_tokens_per_s = static_cast<double>(times.prefill_tokens) / prefill_s;
    const double decode_s = ns_to_s(times.last_token_ns - times.first_token_ns);
    if (times.decode_steps < 1 || decode_s <= 0) return figures;
    const auto steps = static_cast<double>(times.decode_steps);
    figures.decode_tokens_per_s = steps / decode_s;
    figures.weight_gb_per_s = static_cast<double>(loaded.runner->model().decode_bytes()) * steps / decode_s * 1e-9;
    if (const auto roofline = load_cached_roofline()) {
        const double limit = roofline->read_gb_per_s(loaded.threads);
        if (limit > 0) figures.roofline_share = *figures.weight_gb_per_s / limit;
    }
    return figures;
}

std::string figures_text(const Generation& generation, const Figures& figures, const LoadedModel& loaded) {
    const RequestTimes& times = generation.times;
    const auto rate = [](const std::optional<double>& value) {
        return value.has_value() ? fmt::format("{:.1f} tokens/s", *value) : std::string("-");
    };
    std::string text =
        fmt::format("load {:.0f} ms | TTFT {:.1f} ms | prefill {} tokens at {} | decode {} tokens at {}",
                    ns_to_ms(loaded.load_ns), figures.ttft_ms, times.prompt_tokens, rate(figures.prefill_tokens_per_s),
                    times.completion_tokens, rate(figures.decode_tokens_per_s));
    if (figures.weight_gb_per_s.has_value()) text += fmt::format(" | weights {:.2f} GB/s", *figures.weight_gb_per_s);
    text += figures.roofline_share.has_value()
                ? fmt::format(" ({:.0f}% of the measured read bandwidth)", 100 * *figures.roofline_share)
                : " (share of the limit: unknown until `frontier bench roofline` has run)";
    const BackendMemory memory = loaded.runner->backend().memory();
    text += fmt::format(
        "\nweights {} | compute {} | KV {} | isa {} | threads {} | memory: weights {:.1f} MB, KV {:.1f} MB, peak "
        "{:.1f} MB"
        " | logits {}",
        loaded.weight_type(), loaded.compute_type(), loaded.kv_type(), isa_name(loaded.isa), loaded.threads,
        static_cast<double>(memory.weight_bytes) * 1e-6, static_cast<double>(memory.kv_bytes) * 1e-6,
        static_cast<double>(memory_state().peak_resident_bytes) * 1e-6, generation.logits_hash);
    return text;
}

Result<ChatTemplate> chat_template_of(const LoadedModel& loaded) {
    const std::string source = loaded.source->chat_template_source();
    if (source.empty()) return ChatTemplate::fallback();
    return ChatTemplate::parse(source, fmt::format("{}: chat template", loaded.source->where()));
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
    // Templates of Hugging Face write the BOS themselves; the fallback has none to write.
    if (loaded.source->chat_template_source().empty() && spec.add_bos && spec.bos.has_value())
        ids.insert(ids.begin(), *spec.bos);
    return ids;
}

}  // namespace frontier

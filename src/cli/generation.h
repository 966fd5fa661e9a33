// One generation from prompt ids to figures: what `run` does once and the chat does for every turn.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/flags.h"
#include "engine/engine.h"
#include "text/chat_template.h"

namespace frontier {

struct Generation {
    std::string text;
    std::vector<SampledToken> tokens;
    FinishReason finish = FinishReason::kStop;
    RequestTimes times;
    std::int64_t received_ns = 0;
    std::string logits_hash;  // 16 hex digits, over the logits of the last sampled token
};

struct GenerateOptions {
    // When the prompt's text was handed over, before it was turned into tokens: TTFT counts from here (0: from the
    // call).
    std::int64_t received_ns = 0;
    // After every forward pass that gave a token: how many there are, and the time since the first of them.
    std::function<void(std::int64_t tokens, std::int64_t decode_ns)> on_token;
};

// Runs one request to its end; `on_text` gets each stretch as it becomes certain. An interrupt (see interrupt_flag)
// cancels the request: finish = kCancelled. A request that ends in an error is that Error.
Result<Generation> generate(Engine& engine, Request request, const std::function<void(std::string_view)>& on_text,
                            const GenerateOptions& options = {});

// Rates of one generation, and what this machine could do at most. Absent where nothing was measured (cancelled before
// the first token, no decode step, no cached roofline for this thread count).
struct Figures {
    std::optional<double> ttft_ms;
    std::optional<double> prefill_tokens_per_s;
    std::optional<double> prefill_gflops;
    std::optional<double> prefill_roofline_share;  // of the arithmetic peak
    std::optional<double> gflops_limit;            // that peak
    std::optional<double> decode_tokens_per_s;
    std::optional<double> weight_gb_per_s;  // file bytes of the weights a decode step reads, per second
    std::optional<double> roofline_share;   // of the measured read bandwidth at this thread count
    std::optional<double> gb_per_s_limit;   // that bandwidth
};
Figures figures_of(const Generation& generation, const LoadedModel& loaded);

// "prefill 14 tokens in 12.3 ms ..." : two lines for people.
std::string figures_text(const Generation& generation, const Figures& figures, const LoadedModel& loaded);

// The conversation as prompt ids; control tokens count only where the template wrote them.
Result<std::vector<TokenId>> chat_prompt(const LoadedModel& loaded, const ChatTemplate& chat_template,
                                         const std::vector<ChatMessage>& messages);
// The model's template, or the plain fallback when it has none.
Result<ChatTemplate> chat_template_of(const LoadedModel& loaded);

}  // namespace frontier

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
    std::string logits_hash;  // 16 hex digits, over the logits of the last sampled token
};

// Runs one request to its end; `on_text` gets each stretch as it becomes certain. An interrupt (see interrupt_flag)
// cancels the request: finish = kCancelled. A request that ends in an error is that Error.
Result<Generation> generate(Engine& engine, Request request, const std::function<void(std::string_view)>& on_text);

// Rates of one generation. Absent where nothing was measured (no decode step, no cached roofline).
struct Figures {
    double ttft_ms = 0;
    std::optional<double> prefill_tokens_per_s;
    std::optional<double> decode_tokens_per_s;
    std::optional<double> weight_gb_per_s;  // file bytes of the weights a decode step reads, per second
    std::optional<double> roofline_share;   // of the measured read bandwidth at this thread count
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

// Perplexity of a text under a model, through the engine's ordinary batched path.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string_view>

#include "base/result.h"
#include "engine/runner.h"
#include "text/tokenizer.h"

namespace frontier {

// kBosWindow: consecutive chunks of window - 1 tokens, each after a BOS; every token of the text is scored once.
// kLlamaPerplexity: as llama-perplexity -c WINDOW: BOS + tokens in chunks of WINDOW, the incomplete last one dropped,
// each chunk's first token replaced by BOS, only predictions made at positions WINDOW/2 .. WINDOW-2 scored.
// A model without BOS (qwen2) takes the windows as they are; then a window's first token is not scored.
struct PerplexityMethod {
    std::string_view name;
    std::int64_t window_tokens = 0;
    bool llama_perplexity = false;
};

// bos_window_512, bos_window_1024, llama_perplexity_c512; others are kUsage errors.
Result<PerplexityMethod> perplexity_method_from_name(std::string_view name);

struct PerplexityResult {
    double perplexity = 0;      // exp(nll)
    double nll = 0;             // mean negative log-likelihood per scored token, nats
    double standard_error = 0;  // of nll, tokens taken as independent
    std::int64_t tokens_scored = 0;
};

struct PerplexityOptions {
    PerplexityMethod method;
    std::string_view text_name = "the text";  // for errors
    std::function<void(std::int64_t done_tokens, std::int64_t total_tokens, double perplexity)> progress;
    const std::atomic<bool>* interrupted = nullptr;
};

// The runner's cache must hold one window (kDoesNotFit otherwise); a text too short for one scored token (naming it,
// the tokens needed and found) and non-finite logits are kBadInput.
Result<PerplexityResult> measure_perplexity(Runner& runner, const Tokenizer& tokenizer, std::string_view text,
                                            const PerplexityOptions& options);

// -log softmax(logits)[target], f64 sum.
double negative_log_likelihood(std::span<const float> logits, TokenId target);

}  // namespace frontier

#include "quality/perplexity.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace frontier {
namespace {

constexpr PerplexityMethod kMethods[] = {
    {"bos_window_512", 512, false}, {"bos_window_1024", 1024, false}, {"llama_perplexity_c512", 512, true}};

// One window: the tokens to run, and the first row whose prediction is scored (up to the last but one).
struct Window {
    std::vector<TokenId> tokens;
    std::int64_t first_scored_row = 0;
};

std::vector<Window> cut_windows(std::vector<TokenId> ids, const PerplexityMethod& method, std::optional<TokenId> bos) {
    std::vector<Window> windows;
    const std::int64_t size = method.window_tokens;
    if (method.llama_perplexity) {
        if (bos) ids.insert(ids.begin(), *bos);
        for (std::int64_t at = 0; at + size <= std::ssize(ids); at += size) {
            Window window{{ids.begin() + at, ids.begin() + at + size}, size / 2};
            if (bos) window.tokens.front() = *bos;
            windows.push_back(std::move(window));
        }
        return windows;
    }
    const std::int64_t step = bos ? size - 1 : size;
    for (std::int64_t at = 0; at < std::ssize(ids); at += step) {
        Window window;
        if (bos) window.tokens.push_back(*bos);
        window.tokens.insert(window.tokens.end(), ids.begin() + at,
                             ids.begin() + std::min<std::int64_t>(at + step, std::ssize(ids)));
        windows.push_back(std::move(window));
    }
    return windows;
}

// How many tokens a text must have for one to be scored.
std::int64_t least_tokens(const PerplexityMethod& method, bool has_bos) {
    if (method.llama_perplexity) return method.window_tokens - (has_bos ? 1 : 0);
    return has_bos ? 1 : 2;
}

class Measurement {
public:
    Measurement(Runner& runner, const PerplexityOptions& options) : runner_(runner), options_(options) {}

    Status run(const std::vector<Window>& windows) {
        std::int64_t total = 0;
        std::int64_t done = 0;
        for (const Window& window : windows) total += std::ssize(window.tokens);
        for (const Window& window : windows) {
            Sequence sequence;
            const Status status = run_window(window, sequence);
            runner_.release(sequence);
            FR_TRY(status);
            done += std::ssize(window.tokens);
            if (options_.progress && scored_ > 0)
                options_.progress(done, total, std::exp(sum_ / static_cast<double>(scored_)));
        }
        return {};
    }

    PerplexityResult result() const {
        const auto n = static_cast<double>(scored_);
        const double mean = sum_ / n;
        const double variance = std::max(0.0, squares_ / n - mean * mean);
        return PerplexityResult{.perplexity = std::exp(mean),
                                .nll = mean,
                                .standard_error = std::sqrt(variance / n),
                                .tokens_scored = scored_};
    }

private:
    // Pieces as large as the runner's buffers; no logits for rows that are not scored.
    Status run_window(const Window& window, Sequence& sequence) {
        const std::int64_t last_row = std::ssize(window.tokens) - 1;  // predicts beyond the window
        std::int64_t at = 0;
        while (at < last_row) {
            if (options_.interrupted != nullptr && options_.interrupted->load())
                return fail(ErrorCode::kInterrupted, "interrupted");
            const bool scored = at >= window.first_scored_row;
            const std::int64_t border = scored ? last_row : std::min(window.first_scored_row, last_row);
            const std::int64_t most =
                scored ? std::min(runner_.options().max_logits_rows, runner_.options().max_batch_tokens)
                       : runner_.options().max_batch_tokens;
            const std::int64_t rows = std::min(border - at, most);
            const BatchEntry entry{
                .sequence = &sequence,
                .tokens =
                    std::span(window.tokens).subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(rows)),
                .logits = scored ? LogitsWanted::kAll : LogitsWanted::kNone};
            FR_ASSIGN(const std::span<const float> logits, runner_.forward({&entry, 1}));
            if (scored) FR_TRY(score(window, at, rows, logits));
            at += rows;
        }
        return {};
    }

    Status score(const Window& window, std::int64_t first_row, std::int64_t rows, std::span<const float> logits) {
        const std::size_t vocab_size = logits.size() / static_cast<std::size_t>(rows);
        for (std::int64_t row = 0; row < rows; ++row) {
            const double nll =
                negative_log_likelihood(logits.subspan(static_cast<std::size_t>(row) * vocab_size, vocab_size),
                                        window.tokens[static_cast<std::size_t>(first_row + row + 1)]);
            if (!std::isfinite(nll))
                return bad_input("logits: expected finite numbers, got NaN or infinity at position {} of a window",
                                 first_row + row);
            sum_ += nll;
            squares_ += nll * nll;
            ++scored_;
        }
        return {};
    }

    Runner& runner_;
    const PerplexityOptions& options_;
    double sum_ = 0;
    double squares_ = 0;
    std::int64_t scored_ = 0;
};

}  // namespace

Result<PerplexityMethod> perplexity_method_from_name(std::string_view name) {
    std::string known;
    for (const PerplexityMethod& method : kMethods) {
        if (method.name == name) return method;
        known += fmt::format("{}{}", known.empty() ? "" : ", ", method.name);
    }
    return fail(ErrorCode::kUsage, "--method: expected one of {}, got '{}'", known, name);
}

double negative_log_likelihood(std::span<const float> logits, TokenId target) {
    const float top = *std::ranges::max_element(logits);
    double sum = 0;
    for (const float logit : logits) sum += static_cast<double>(std::exp(logit - top));
    return std::log(sum) - static_cast<double>(logits[static_cast<std::size_t>(target)] - top);
}

Result<PerplexityResult> measure_perplexity(Runner& runner, const Tokenizer& tokenizer, std::string_view text,
                                            const PerplexityOptions& options) {
    if (runner.options().kv_tokens < options.method.window_tokens)
        return fail(ErrorCode::kDoesNotFit, "method {} needs a context of {} tokens, the cache holds {}",
                    options.method.name, options.method.window_tokens, runner.options().kv_tokens);
    FR_ASSIGN(const auto ids, tokenizer.encode(text, {.add_special = false, .parse_special = false}));
    const TokenizerSpec& spec = tokenizer.spec();
    const auto bos = spec.add_bos ? spec.bos : std::nullopt;
    if (const std::int64_t needed = least_tokens(options.method, bos.has_value()); std::ssize(ids) < needed)
        return bad_input("{}: too short for method {}: expected at least {} token{}, got {}", options.text_name,
                         options.method.name, needed, needed == 1 ? "" : "s", ids.size());
    Measurement measurement(runner, options);
    FR_TRY(measurement.run(cut_windows(ids, options.method, bos)));
    return measurement.result();
}

}  // namespace frontier

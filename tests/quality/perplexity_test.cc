#include "quality/perplexity.h"

#include <gtest/gtest.h>

#include <cmath>

#include "engine/loader.h"

namespace frontier {
namespace {

LoadedModel load(std::int32_t max_logits_rows, std::int32_t max_batch_tokens) {
    LoadOptions options;
    options.model = FRONTIER_SOURCE_DIR "/models/tale-1m-f16.gguf";
    options.threads = 1;
    options.context_tokens = 512;
    options.max_logits_rows = max_logits_rows;
    options.max_batch_tokens = max_batch_tokens;
    auto loaded = load_model(options);
    EXPECT_TRUE(loaded.has_value()) << loaded.error().text;
    return std::move(loaded).value();
}

std::string sample_text() {
    std::string text;
    while (text.size() < 5000)
        text += "And the king said to the fox, Thou art wise; go now and see what lies beyond the hill. ";
    return text;
}

// Token by token with the plain definition of the logarithm of the softmax, in f64.
double plain_nll(LoadedModel& loaded, const std::vector<TokenId>& window, std::size_t first_scored_row, int& scored) {
    Sequence sequence;
    double sum = 0;
    for (std::size_t row = 0; row + 1 < window.size(); ++row) {
        const BatchEntry entry{.sequence = &sequence, .tokens = std::span(window).subspan(row, 1)};
        const auto logits = *loaded.runner->forward({&entry, 1});
        if (row < first_scored_row) continue;
        double total = 0;
        for (const float logit : logits) total += std::exp(static_cast<double>(logit));
        sum += std::log(total) - static_cast<double>(logits[static_cast<std::size_t>(window[row + 1])]);
        ++scored;
    }
    loaded.runner->release(sequence);
    return sum;
}

class Perplexity : public testing::TestWithParam<const char*> {};

TEST_P(Perplexity, EqualsTheDefinitionWhateverThePieces) {
    LoadedModel loaded = load(37, 50);  // pieces that divide nothing
    const std::string text = sample_text();
    const PerplexityMethod method = *perplexity_method_from_name(GetParam());
    const auto ids = *loaded.tokenizer->encode(text, {.add_special = false});
    ASSERT_GT(ids.size(), 1100U);
    int scored = 0;
    double sum = 0;
    if (method.llama_perplexity) {
        std::vector<TokenId> all = {0};
        all.insert(all.end(), ids.begin(), ids.end());
        for (std::size_t at = 0; at + 512 <= all.size(); at += 512) {
            std::vector<TokenId> window(all.begin() + static_cast<long>(at), all.begin() + static_cast<long>(at) + 512);
            window[0] = 0;
            sum += plain_nll(loaded, window, 256, scored);
        }
    } else {
        for (std::size_t at = 0; at < ids.size(); at += 511) {
            std::vector<TokenId> window = {0};
            window.insert(window.end(), ids.begin() + static_cast<long>(at),
                          ids.begin() + static_cast<long>(std::min(at + 511, ids.size())));
            sum += plain_nll(loaded, window, 0, scored);
        }
    }
    PerplexityOptions options;
    options.method = method;
    const auto result = measure_perplexity(*loaded.runner, *loaded.tokenizer, text, options);
    ASSERT_TRUE(result.has_value()) << result.error().text;
    EXPECT_EQ(result->tokens_scored, scored);
    // Batched and single rows round differently (f32 products of length <= 384, f16 keys): well under 1e-4 in the mean.
    EXPECT_NEAR(result->nll, sum / scored, 1e-4);
    EXPECT_NEAR(result->perplexity, std::exp(result->nll), 1e-9);
    EXPECT_EQ(loaded.runner->pages().free_pages(), loaded.runner->pages().total_pages());
}

INSTANTIATE_TEST_SUITE_P(Methods, Perplexity, testing::Values("bos_window_512", "llama_perplexity_c512"));

TEST(PerplexityErrors, AreNamed) {
    EXPECT_EQ(perplexity_method_from_name("other").error().code, ErrorCode::kUsage);
    LoadedModel loaded = load(16, 64);
    PerplexityOptions options;
    options.method = *perplexity_method_from_name("bos_window_1024");
    EXPECT_EQ(measure_perplexity(*loaded.runner, *loaded.tokenizer, "a b c", options).error().code,
              ErrorCode::kDoesNotFit);
    options.method = *perplexity_method_from_name("llama_perplexity_c512");
    EXPECT_EQ(measure_perplexity(*loaded.runner, *loaded.tokenizer, "a b c", options).error().code,
              ErrorCode::kBadInput);
    options.text_name = "novel.txt";
    const auto found = loaded.tokenizer->encode("a b c", {.add_special = false});
    const auto too_short = measure_perplexity(*loaded.runner, *loaded.tokenizer, "a b c", options);
    EXPECT_EQ(too_short.error().text,
              fmt::format("novel.txt: too short for method llama_perplexity_c512: expected at least 511 tokens, got {}",
                          found->size()));
    options.method = *perplexity_method_from_name("bos_window_512");
    EXPECT_EQ(measure_perplexity(*loaded.runner, *loaded.tokenizer, "", options).error().code, ErrorCode::kBadInput);
    std::atomic<bool> interrupted{true};
    options.interrupted = &interrupted;
    EXPECT_EQ(measure_perplexity(*loaded.runner, *loaded.tokenizer, "a b c", options).error().code,
              ErrorCode::kInterrupted);
}

TEST(NegativeLogLikelihood, IsThatOfTheSoftmax) {
    const std::vector<float> logits = {1000.0F, 1001.0F, 999.0F};
    const double total = 1 + std::exp(-1.0) + std::exp(-2.0);
    EXPECT_NEAR(negative_log_likelihood(logits, 1), std::log(total), 1e-6);
    EXPECT_NEAR(negative_log_likelihood(logits, 2), std::log(total) + 2, 1e-6);
}

}  // namespace
}  // namespace frontier

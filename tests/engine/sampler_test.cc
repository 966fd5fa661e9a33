#include "engine/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

namespace frontier {
namespace {

SamplingParams all_off(double temperature) {
    return {.temperature = temperature, .top_k = 0, .top_p = 1, .min_p = 0};
}

// Which ids are drawn at all over many draws, and how often.
std::map<TokenId, int> histogram(const SamplingParams& params, const std::vector<float>& logits, int draws = 20'000) {
    Sampler sampler(params, {});
    std::map<TokenId, int> counts;
    for (int i = 0; i < draws; ++i) ++counts[sampler.sample(logits)->id];
    return counts;
}

std::vector<float> logs(std::initializer_list<double> probabilities) {
    std::vector<float> logits;
    for (const double p : probabilities) logits.push_back(static_cast<float>(std::log(p)));
    return logits;
}

TEST(Sampler, TemperatureZeroIsTheLowestIdAmongTheLargest) {
    SamplingParams params;
    params.temperature = 0;
    Sampler sampler(params, {});
    EXPECT_EQ(sampler.sample(std::vector<float>{1, 3, 2, 3})->id, 1);
    EXPECT_EQ(sampler.sample(std::vector<float>{-5, -7})->id, 0);
}

TEST(Sampler, DrawsFollowTheDistribution) {
    auto params = all_off(1.0);
    params.seed = 5;
    const std::vector<double> p = {0.5, 0.3, 0.15, 0.05};
    const auto counts = histogram(params, logs({0.5, 0.3, 0.15, 0.05}));
    // Five standard deviations of a binomial with 20,000 draws.
    for (TokenId id = 0; id < 4; ++id) {
        const double share = p[static_cast<std::size_t>(id)];
        EXPECT_NEAR(counts.at(id), 20'000 * share, 5 * std::sqrt(20'000 * share * (1 - share)));
    }
}

TEST(Sampler, TemperatureSharpens) {
    auto params = all_off(0.5);
    params.seed = 6;
    const auto counts = histogram(params, logs({0.8, 0.2}));
    const double share = 0.64 / (0.64 + 0.04);  // squares of the probabilities
    EXPECT_NEAR(counts.at(0), 20'000 * share, 5 * std::sqrt(20'000 * share * (1 - share)));
}

TEST(Sampler, TopKKeepsExactlyK) {
    auto params = all_off(1.0);
    params.top_k = 2;
    const auto counts = histogram(params, logs({0.1, 0.4, 0.1, 0.4}));
    EXPECT_EQ(counts.size(), 2U);
    EXPECT_TRUE(counts.contains(1) && counts.contains(3));
}

TEST(Sampler, TopPCountsTheMassAfterTopK) {
    auto params = all_off(1.0);
    params.top_k = 3;    // 0.4 0.3 0.2 of mass 0.9
    params.top_p = 0.7;  // 0.4 / 0.9 = 0.44, + 0.3 / 0.9 = 0.78
    EXPECT_EQ(histogram(params, logs({0.4, 0.3, 0.2, 0.1})).size(), 2U);
    params.top_k = 0;  // now 0.4 + 0.3 = 0.7 of 1.0; f32 logs may round below it, so ask for a little less
    params.top_p = 0.69;
    EXPECT_EQ(histogram(params, logs({0.4, 0.3, 0.2, 0.1})).size(), 2U);
}

TEST(Sampler, MinPIsRelativeToTheLikeliest) {
    auto params = all_off(1.0);
    params.min_p = 0.45;
    EXPECT_EQ(histogram(params, logs({0.5, 0.24, 0.2, 0.06})).size(), 2U);
}

// With temperature after the filters the set would be that of temperature 1.
TEST(Sampler, TemperatureComesBeforeTheFilters) {
    auto params = all_off(10.0);
    params.min_p = 0.5;
    EXPECT_EQ(histogram(params, logs({0.9, 0.1})).size(), 2U);  // (1/9)^(1/10) = 0.80
}

TEST(Sampler, PenaltiesAndBiasMoveTheArgmax) {
    auto params = all_off(0);
    params.presence_penalty = 1.5;
    Sampler presence(params, {});
    const std::vector<float> logits = {3, 2, 1};
    EXPECT_EQ(presence.sample(logits)->id, 0);
    presence.accept(0);
    EXPECT_EQ(presence.sample(logits)->id, 1);

    params = all_off(0);
    params.frequency_penalty = 0.6;
    Sampler frequency(params, {});
    frequency.accept(0);
    EXPECT_EQ(frequency.sample(logits)->id, 0);
    frequency.accept(0);
    EXPECT_EQ(frequency.sample(logits)->id, 1);

    params = all_off(0);
    params.repeat_penalty = 2;
    const std::vector<TokenId> prompt = {0};
    Sampler repeat(params, prompt);  // the prompt counts too; 3 / 2 < 2
    EXPECT_EQ(repeat.sample(logits)->id, 1);
    EXPECT_EQ(repeat.sample(std::vector<float>{-1, -1.5, -3})->id, 1);  // -1 * 2 < -1.5

    params = all_off(0);
    params.logit_bias = {{2, 5.0F}, {0, -std::numeric_limits<float>::infinity()}};
    Sampler bias(params, {});
    EXPECT_EQ(bias.sample(logits)->id, 2);
}

TEST(Sampler, PresenceAndFrequencyIgnoreThePrompt) {
    auto params = all_off(0);
    params.presence_penalty = 50;
    const std::vector<TokenId> prompt = {0, 0};
    EXPECT_EQ(Sampler(params, prompt).sample(std::vector<float>{3, 2})->id, 0);
}

TEST(Sampler, MaskAllowsOnlyItsTokens) {
    auto params = all_off(0);
    Sampler sampler(params, {});
    const std::vector<std::uint64_t> allowed = {0b100};
    EXPECT_EQ(sampler.sample(std::vector<float>{3, 2, 1}, allowed)->id, 2);
    const std::vector<std::uint64_t> none = {0};
    const auto result = sampler.sample(std::vector<float>{3, 2, 1}, none);
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().code, ErrorCode::kFailed);
}

TEST(Sampler, NonFiniteLogitsAreAnErrorThatNamesTheToken) {
    Sampler sampler(all_off(0), {});
    for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
        const auto result = sampler.sample(std::vector<float>{1, bad, 2});
        ASSERT_FALSE(result.has_value());
        EXPECT_EQ(result.error().code, ErrorCode::kBadInput);
        EXPECT_NE(result.error().text.find("token 1"), std::string::npos) << result.error().text;
    }
}

TEST(Sampler, LogprobsAreThoseOfTheUnmodifiedDistribution) {
    auto params = all_off(0);
    params.top_logprobs = 2;
    params.logit_bias = {{3, 100.0F}};
    Sampler sampler(params, {});
    const auto token = sampler.sample(logs({0.5, 0.3, 0.15, 0.05}));
    EXPECT_EQ(token->id, 3);
    EXPECT_NEAR(token->logprob, std::log(0.05), 1e-6);
    ASSERT_EQ(token->alternatives.size(), 2U);
    EXPECT_EQ(token->alternatives[0].id, 0);
    EXPECT_NEAR(token->alternatives[1].logprob, std::log(0.3), 1e-6);
}

TEST(Sampler, SameSeedSameDraws) {
    auto params = all_off(1.0);
    params.seed = 42;
    const auto logits = logs({0.25, 0.25, 0.25, 0.25});
    Sampler a(params, {});
    Sampler b(params, {});
    params.seed = 43;
    Sampler other(params, {});
    int different = 0;
    for (int i = 0; i < 200; ++i) {
        const TokenId drawn = a.sample(logits)->id;
        ASSERT_EQ(drawn, b.sample(logits)->id);
        different += drawn != other.sample(logits)->id;
    }
    EXPECT_GT(different, 100);
}

TEST(Sampler, ParametersAreChecked) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    EXPECT_TRUE(check_sampling_params({}, 10).has_value());
    for (const SamplingParams& bad :
         {SamplingParams{.temperature = -1}, SamplingParams{.temperature = nan}, SamplingParams{.top_k = -2},
          SamplingParams{.top_p = 0}, SamplingParams{.top_p = 1.5}, SamplingParams{.top_p = nan},
          SamplingParams{.min_p = -0.1}, SamplingParams{.repeat_penalty = 0}, SamplingParams{.presence_penalty = nan},
          SamplingParams{.frequency_penalty = 1e9}, SamplingParams{.logit_bias = {{10, 1.0F}}},
          SamplingParams{.logit_bias = {{0, 1.1e6F}}}, SamplingParams{.logit_bias = {{0, std::nanf("")}}},
          SamplingParams{.top_logprobs = 21}}) {
        const auto status = check_sampling_params(bad, 10);
        ASSERT_FALSE(status.has_value());
        EXPECT_EQ(status.error().code, ErrorCode::kUsage);
    }
}

}  // namespace
}  // namespace frontier

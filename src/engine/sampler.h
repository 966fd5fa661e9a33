// From logits to a token: logit bias, penalties, temperature, top-k, top-p, min-p, in that order.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/types.h"

namespace frontier {

inline constexpr std::int32_t kMostLogprobs = 20;
// Far beyond any logit, yet no number of them can add up to an infinity.
inline constexpr float kLargestLogitBias = 1e6F;

struct SamplingParams {
    double temperature = 0.8;        // 0 = the largest logit, the lowest id among equals
    std::int32_t top_k = 40;         // 0 = off
    double top_p = 0.95;             // 1 = off
    double min_p = 0.05;             // 0 = off; relative to the most likely token
    double repeat_penalty = 1.0;     // > 1 discourages tokens of prompt and output (Keskar et al. 2019, CTRL)
    double presence_penalty = 0.0;   // subtracted once from tokens of the output
    double frequency_penalty = 0.0;  // subtracted per occurrence in the output
    std::vector<std::pair<TokenId, float>> logit_bias;
    std::uint64_t seed = 0;
    std::int32_t top_logprobs = -1;  // -1 = no logprobs; 0..kMostLogprobs = that many alternatives
};

// Every bound that the values must keep; the error is kUsage and names the flag-like field.
Status check_sampling_params(const SamplingParams& params, std::int32_t vocab_size);

struct TokenLogprob {
    TokenId id = 0;
    double logprob = 0;  // of the unmodified distribution (temperature 1, no bias, no penalties)
};

struct SampledToken {
    TokenId id = 0;
    double logprob = 0;                      // when asked for
    std::vector<TokenLogprob> alternatives;  // most likely first
};

// The sampling state of one request. Deterministic in (params, pushed tokens, logits).
class Sampler {
public:
    Sampler(SamplingParams params, std::span<const TokenId> prompt);

    // `allowed` (empty = all) is a bit mask over the vocabulary, [vocab / 64 + 1]: the place for grammars.
    // Non-finite logits are kBadInput naming the first such token id.
    Result<SampledToken> sample(std::span<const float> logits, std::span<const std::uint64_t> allowed = {});
    // Records a token of the output for the penalties; sample() does not do it by itself.
    void accept(TokenId id);

private:
    void apply_bias_and_penalties();
    TokenId pick();
    void add_logprobs(std::span<const float> logits, SampledToken& token) const;

    struct Counts {
        std::int32_t in_prompt = 0;
        std::int32_t in_output = 0;
    };
    SamplingParams params_;
    std::unordered_map<TokenId, Counts> counts_;
    std::uint64_t step_ = 0;
    std::vector<float> scratch_;                     // [vocab] modified logits
    std::vector<std::pair<float, TokenId>> sorted_;  // candidates
};

}  // namespace frontier

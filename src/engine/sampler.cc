#include "engine/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "base/rng.h"

namespace frontier {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

// Below this the distribution is a single token to within f32, while 1 / temperature nears the end of the range.
constexpr double kArgmaxTemperature = 1e-5;

// Larger logits first, the lower id among equals: the order in which candidates are considered.
bool more_likely(const std::pair<float, TokenId>& a, const std::pair<float, TokenId>& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
}

std::unexpected<Error> out_of_range(const char* name, double value, const char* expected) {
    return fail(ErrorCode::kUsage, "{}: expected {}, got {}", name, expected, value);
}

// The token after an argmax over (possibly masked) logits.
TokenId argmax(std::span<const float> logits) {
    return static_cast<TokenId>(std::ranges::max_element(logits) - logits.begin());
}

}  // namespace

Status check_sampling_params(const SamplingParams& params, std::int32_t vocab_size) {
    // Comparisons are written so that NaN fails them.
    if (!(params.temperature >= 0 && params.temperature <= 100))
        return out_of_range("temperature", params.temperature, "0 to 100");
    if (params.top_k < 0) return out_of_range("top_k", params.top_k, "0 (off) or more");
    if (!(params.top_p > 0 && params.top_p <= 1)) return out_of_range("top_p", params.top_p, "above 0, up to 1");
    if (!(params.min_p >= 0 && params.min_p <= 1)) return out_of_range("min_p", params.min_p, "0 to 1");
    if (!(params.repeat_penalty > 0 && params.repeat_penalty <= 100))
        return out_of_range("repeat_penalty", params.repeat_penalty, "above 0, up to 100 (1 = off)");
    if (!(std::abs(params.presence_penalty) <= 100))
        return out_of_range("presence_penalty", params.presence_penalty, "-100 to 100");
    if (!(std::abs(params.frequency_penalty) <= 100))
        return out_of_range("frequency_penalty", params.frequency_penalty, "-100 to 100");
    if (params.top_logprobs < -1 || params.top_logprobs > kMostLogprobs)
        return out_of_range("top_logprobs", params.top_logprobs, "0 to 20");
    for (const auto& [id, bias] : params.logit_bias) {
        if (id < 0 || id >= vocab_size)
            return fail(ErrorCode::kUsage, "logit_bias: token id {} is outside the vocabulary of {} entries", id,
                        vocab_size);
        if (!(std::abs(bias) <= kLargestLogitBias) && bias != kMinusInfinity)
            return out_of_range("logit_bias", bias, "-1e6 to 1e6 (or -inf to forbid)");
    }
    return {};
}

Sampler::Sampler(SamplingParams params, std::span<const TokenId> prompt) : params_(std::move(params)) {
    if (params_.repeat_penalty != 1.0)
        for (const TokenId id : prompt) ++counts_[id].in_prompt;
}

void Sampler::accept(TokenId id) {
    ++counts_[id].in_output;
}

void Sampler::apply_bias_and_penalties() {
    for (const auto& [id, bias] : params_.logit_bias) scratch_[static_cast<std::size_t>(id)] += bias;
    if (params_.repeat_penalty == 1.0 && params_.presence_penalty == 0 && params_.frequency_penalty == 0) return;
    const auto penalty = static_cast<float>(params_.repeat_penalty);
    for (const auto& [id, counts] : counts_) {
        float& logit = scratch_[static_cast<std::size_t>(id)];
        logit = logit > 0 ? logit / penalty : logit * penalty;
        if (counts.in_output > 0)
            logit -= static_cast<float>(params_.presence_penalty + params_.frequency_penalty * counts.in_output);
    }
}

// Each filter keeps a prefix of the candidates sorted by likelihood, so the shortest prefix decides.
TokenId Sampler::pick() {
    const float top = *std::ranges::max_element(scratch_);
    const double inverse_temperature = 1.0 / params_.temperature;
    const auto weight = [&](float logit) {
        return std::exp((static_cast<double>(logit) - static_cast<double>(top)) * inverse_temperature);
    };
    sorted_.clear();
    for (std::size_t i = 0; i < scratch_.size(); ++i)
        if (scratch_[i] != kMinusInfinity) sorted_.emplace_back(scratch_[i], static_cast<TokenId>(i));
    std::size_t keep = sorted_.size();
    if (params_.top_k > 0) keep = std::min(keep, static_cast<std::size_t>(params_.top_k));
    if (keep < sorted_.size()) {
        std::ranges::nth_element(sorted_, sorted_.begin() + static_cast<std::ptrdiff_t>(keep), more_likely);
        sorted_.resize(keep);
    }
    double total = 0;
    for (const auto& [logit, id] : sorted_) total += weight(logit);
    if (params_.min_p > 0)  // drops candidates before the sort; `total` still counts them for top-p
        std::erase_if(sorted_, [&](const auto& c) { return weight(c.first) < params_.min_p; });
    std::ranges::sort(sorted_, more_likely);
    double mass = 0;
    keep = 0;
    while (keep < sorted_.size()) {
        mass += weight(sorted_[keep++].first);
        if (mass >= params_.top_p * total) break;
    }
    const double uniform = static_cast<double>(RandomStream(params_.seed).at(step_) >> 11) * 0x1.0p-53;  // [0, 1)
    const double draw = uniform * mass;
    double cumulative = 0;
    for (std::size_t i = 0; i < keep; ++i) {
        cumulative += weight(sorted_[i].first);
        if (draw < cumulative) return sorted_[i].second;
    }
    return sorted_[keep - 1].second;  // rounding at the end of the sum
}

void Sampler::add_logprobs(std::span<const float> logits, SampledToken& token) const {
    const double top = *std::ranges::max_element(logits);
    double sum = 0;
    for (const float logit : logits) sum += std::exp(logit - top);
    const double log_sum = top + std::log(sum);
    token.logprob = logits[static_cast<std::size_t>(token.id)] - log_sum;
    std::vector<std::pair<float, TokenId>> all;
    all.reserve(logits.size());
    for (std::size_t i = 0; i < logits.size(); ++i) all.emplace_back(logits[i], static_cast<TokenId>(i));
    const auto count = std::min(all.size(), static_cast<std::size_t>(params_.top_logprobs));
    std::ranges::partial_sort(all, all.begin() + static_cast<std::ptrdiff_t>(count), more_likely);
    for (std::size_t i = 0; i < count; ++i) token.alternatives.push_back({all[i].second, all[i].first - log_sum});
}

Result<SampledToken> Sampler::sample(std::span<const float> logits, std::span<const std::uint64_t> allowed) {
    FR_CHECK(!logits.empty());
    for (std::size_t i = 0; i < logits.size(); ++i)
        if (!std::isfinite(logits[i]))
            return bad_input("logits: expected finite numbers, got {} for token {} (damaged weights?)", logits[i], i);
    scratch_.assign(logits.begin(), logits.end());
    apply_bias_and_penalties();
    if (!allowed.empty()) {
        FR_CHECK(allowed.size() * 64 >= logits.size());
        for (std::size_t i = 0; i < scratch_.size(); ++i)
            if ((allowed[i / 64] >> (i % 64) & 1U) == 0) scratch_[i] = kMinusInfinity;
    }
    if (*std::ranges::max_element(scratch_) == kMinusInfinity)
        return fail(ErrorCode::kFailed, "sampling: logit bias or the grammar forbids every token");
    SampledToken token;
    token.id = params_.temperature < kArgmaxTemperature ? argmax(scratch_) : pick();
    ++step_;
    if (params_.top_logprobs >= 0) add_logprobs(logits, token);
    return token;
}

}  // namespace frontier

#include "cli/sampling_flags.h"

#include <charconv>
#include <cmath>
#include <random>

#include "cli/flags.h"

namespace frontier {
namespace {

Status check_token_id(const char* flag, TokenId id, std::int32_t vocab_size) {
    if (id >= 0 && id < vocab_size) return {};
    return fail(ErrorCode::kUsage, "{}: expected a token id from 0 to {} (the model's vocabulary), got {}", flag,
                vocab_size - 1, id);
}

// "ID=BIAS", e.g. 15=-5 or 15=-inf.
Result<std::pair<TokenId, float>> parse_logit_bias(const std::string& text, std::int32_t vocab_size) {
    const auto split = text.find('=');
    TokenId id = 0;
    float bias = 0;
    const auto parsed = [](std::string_view part, auto& value) {
        const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
        return !part.empty() && error == std::errc() && end == part.data() + part.size();
    };
    if (split == std::string::npos || !parsed(std::string_view(text).substr(0, split), id) ||
        !parsed(std::string_view(text).substr(split + 1), bias) || std::isnan(bias) ||
        bias == std::numeric_limits<float>::infinity())
        return fail(ErrorCode::kUsage, "--logit-bias: expected ID=BIAS such as 15=-5 or 15=-inf, got '{}'", text);
    FR_TRY(check_token_id("--logit-bias", id, vocab_size));
    if (std::isfinite(bias) && std::abs(bias) > kLargestLogitBias)
        return fail(ErrorCode::kUsage, "--logit-bias: expected a bias of -1e6 to 1e6 or -inf, got '{}'", text);
    return std::pair(id, bias);
}

// Usual values for "off" are understood: 0 or -1 for top_k, 0 or 1 and more for top_p (generation_config.json files
// of Hugging Face models hold all of these). What no sampler takes is an error of the file.
Status apply_model_defaults(const ModelSource& source, SamplingParams& sampling) {
    const GenerationDefaults defaults = source.generation_defaults();
    const bool folder = source.format() == "huggingface";
    const auto refuse = [&](const char* hf_field, const char* gguf_key, auto value, const char* expected) {
        return bad_input("{}: {}: expected {}, got {}",
                         folder ? source.where() + "/generation_config.json" : source.where(),
                         folder ? hf_field : gguf_key, expected, value);
    };
    // Comparisons are written so that NaN fails them.
    if (defaults.temperature.has_value()) {
        if (!(*defaults.temperature >= 0 && *defaults.temperature <= 100))
            return refuse("temperature", "general.sampling.temp", *defaults.temperature, "0 to 100");
        sampling.temperature = *defaults.temperature;
    }
    if (defaults.top_k.has_value()) {
        if (*defaults.top_k < -1)
            return refuse("top_k", "general.sampling.top_k", *defaults.top_k, "1 or more (0 or -1: off)");
        sampling.top_k = static_cast<std::int32_t>(std::clamp<std::int64_t>(*defaults.top_k, 0, INT32_MAX));
    }
    if (defaults.top_p.has_value()) {
        if (!(*defaults.top_p >= 0))
            return refuse("top_p", "general.sampling.top_p", *defaults.top_p, "above 0, up to 1 (0 or 1: off)");
        sampling.top_p = *defaults.top_p == 0 ? 1.0 : std::min(*defaults.top_p, 1.0);
    }
    if (defaults.min_p.has_value()) {
        if (!(*defaults.min_p >= 0 && *defaults.min_p <= 1))
            return refuse("min_p", "general.sampling.min_p", *defaults.min_p, "0 to 1");
        sampling.min_p = *defaults.min_p;
    }
    if (defaults.repeat_penalty.has_value()) {
        if (!(*defaults.repeat_penalty > 0 && *defaults.repeat_penalty <= 100))
            return refuse("repetition_penalty", "general.sampling.penalty_repeat", *defaults.repeat_penalty,
                          "above 0, up to 100 (1: off)");
        sampling.repeat_penalty = *defaults.repeat_penalty;
    }
    return {};
}

std::uint64_t random_seed() {
    std::random_device device;
    return (static_cast<std::uint64_t>(device()) << 32 | device()) >> 11;  // 53 bits: exact in any JSON reader
}

}  // namespace

void add_sampling_flags(CLI::App& command, SamplingFlags& flags) {
    whole_numbers(command.add_option("-n,--max-tokens,--n-predict", flags.max_tokens,
                                     "tokens to generate (-1: until the model ends or the context is full)"),
                  -1, INT32_MAX);
    // The bounds are those of check_sampling_params.
    real_numbers(
        command.add_option("--temperature,--temp", flags.temperature, "0: always the likeliest token (default 0.8)"), 0,
        100);
    whole_numbers(command.add_option("--top-k", flags.top_k, "keep the K likeliest tokens (0 or -1: all; default 40)"),
                  -1, INT32_MAX);
    real_numbers(command.add_option("--top-p", flags.top_p,
                                    "keep the likeliest tokens of this total probability (1: all; default 0.95)"),
                 0, 1, true);
    real_numbers(command.add_option("--min-p", flags.min_p,
                                    "drop tokens below this share of the likeliest (0: none; default 0.05)"),
                 0, 1);
    real_numbers(command.add_option("--repeat-penalty", flags.repeat_penalty,
                                    "above 1: tokens of prompt and output are less likely (default 1)"),
                 0, 100, true);
    real_numbers(
        command.add_option("--presence-penalty", flags.presence_penalty, "subtracted from tokens of the output")
            ->capture_default_str(),
        -100, 100);
    real_numbers(
        command.add_option("--frequency-penalty", flags.frequency_penalty, "subtracted per occurrence in the output")
            ->capture_default_str(),
        -100, 100);
    whole_numbers(command.add_option("-s,--seed", flags.seed, "of the random draws (default: a new one each run)"), 0,
                  UINT64_MAX);
    command.add_option("--stop", flags.stop, "end before this text; may be given several times")
        ->allow_extra_args(false);
    whole_numbers(command.add_option("--stop-id", flags.stop_ids, "end at this token id; may be given several times")
                      ->allow_extra_args(false),
                  0, INT32_MAX);
    command
        .add_option("--logit-bias", flags.logit_bias, "ID=BIAS, added to a token's logit; may be given several times")
        ->allow_extra_args(false);
    whole_numbers(command.add_option("--logprobs", flags.logprobs,
                                     "report log probabilities with this many alternatives (with --json)"),
                  0, kMostLogprobs);
    command.add_flag("--ignore-eos", flags.ignore_eos, "go on past end tokens");
    command.add_flag("--model-defaults", flags.model_defaults, "start from the model's own sampling settings");
}

Result<Request> request_from_flags(const SamplingFlags& flags, const ModelSource& source) {
    Request request;
    SamplingParams& sampling = request.sampling;
    const std::int32_t vocab_size = source.config().vocab_size;
    if (flags.model_defaults) FR_TRY(apply_model_defaults(source, sampling));
    sampling.temperature = flags.temperature.value_or(sampling.temperature);
    sampling.top_k = std::max(0, flags.top_k.value_or(sampling.top_k));
    sampling.top_p = flags.top_p.value_or(sampling.top_p);
    sampling.min_p = flags.min_p.value_or(sampling.min_p);
    sampling.repeat_penalty = flags.repeat_penalty.value_or(sampling.repeat_penalty);
    sampling.presence_penalty = flags.presence_penalty;
    sampling.frequency_penalty = flags.frequency_penalty;
    sampling.seed = flags.seed.has_value() ? *flags.seed : random_seed();
    sampling.top_logprobs = flags.logprobs;
    for (const std::string& text : flags.logit_bias) {
        FR_ASSIGN(const auto bias, parse_logit_bias(text, vocab_size));
        sampling.logit_bias.push_back(bias);
    }
    for (const TokenId id : flags.stop_ids) FR_TRY(check_token_id("--stop-id", id, vocab_size));
    request.max_tokens = flags.max_tokens;
    request.stop = flags.stop;
    request.stop_ids = flags.stop_ids;
    request.ignore_eos = flags.ignore_eos;
    FR_TRY(check_sampling_params(sampling, vocab_size));
    return request;
}

}  // namespace frontier

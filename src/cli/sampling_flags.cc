#include "cli/sampling_flags.h"

#include <charconv>
#include <random>

namespace frontier {
namespace {

// "ID=BIAS", e.g. 15=-5 or 15=-inf.
Result<std::pair<TokenId, float>> parse_logit_bias(const std::string& text) {
    const auto split = text.find('=');
    TokenId id = 0;
    float bias = 0;
    const auto parsed = [](std::string_view part, auto& value) {
        const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
        return !part.empty() && error == std::errc() && end == part.data() + part.size();
    };
    if (split == std::string::npos || !parsed(std::string_view(text).substr(0, split), id) ||
        !parsed(std::string_view(text).substr(split + 1), bias))
        return fail(ErrorCode::kUsage, "--logit-bias: expected ID=BIAS such as 15=-5 or 15=-inf, got '{}'", text);
    return std::pair(id, bias);
}

std::uint64_t random_seed() {
    std::random_device device;
    return (static_cast<std::uint64_t>(device()) << 32 | device()) >> 11;  // 53 bits: exact in any JSON reader
}

}  // namespace

void add_sampling_flags(CLI::App& command, SamplingFlags& flags) {
    command.add_option("-n,--max-tokens,--n-predict", flags.max_tokens,
                       "tokens to generate (-1: until the model ends or the context is full)");
    command.add_option("--temperature,--temp", flags.temperature, "0: always the likeliest token (default 0.8)");
    command.add_option("--top-k", flags.top_k, "keep the K likeliest tokens (0: all; default 40)");
    command.add_option("--top-p", flags.top_p,
                       "keep the likeliest tokens of this total probability (1: all; default 0.95)");
    command.add_option("--min-p", flags.min_p, "drop tokens below this share of the likeliest (0: none; default 0.05)");
    command.add_option("--repeat-penalty", flags.repeat_penalty,
                       "above 1: tokens of prompt and output are less likely (default 1)");
    command.add_option("--presence-penalty", flags.presence_penalty, "subtracted from tokens of the output")
        ->capture_default_str();
    command.add_option("--frequency-penalty", flags.frequency_penalty, "subtracted per occurrence in the output")
        ->capture_default_str();
    command.add_option("-s,--seed", flags.seed, "of the random draws (default: a new one each run)");
    command.add_option("--stop", flags.stop, "end before this text; may be given several times")
        ->allow_extra_args(false);
    command.add_option("--stop-id", flags.stop_ids, "end at this token id; may be given several times")
        ->allow_extra_args(false);
    command
        .add_option("--logit-bias", flags.logit_bias, "ID=BIAS, added to a token's logit; may be given several times")
        ->allow_extra_args(false);
    command.add_option("--logprobs", flags.logprobs,
                       "report log probabilities with this many alternatives (with --json)");
    command.add_flag("--ignore-eos", flags.ignore_eos, "go on past end tokens");
    command.add_flag("--model-defaults", flags.model_defaults, "start from the model's own sampling settings");
}

Result<Request> request_from_flags(const SamplingFlags& flags, const ModelSource& source) {
    Request request;
    SamplingParams& sampling = request.sampling;
    if (flags.model_defaults) {
        const GenerationDefaults defaults = source.generation_defaults();
        sampling.temperature = defaults.temperature.value_or(sampling.temperature);
        sampling.top_p = defaults.top_p.value_or(sampling.top_p);
        sampling.min_p = defaults.min_p.value_or(sampling.min_p);
        sampling.repeat_penalty = defaults.repeat_penalty.value_or(sampling.repeat_penalty);
        sampling.top_k =
            static_cast<std::int32_t>(std::clamp<std::int64_t>(defaults.top_k.value_or(sampling.top_k), -1, INT32_MAX));
    }
    sampling.temperature = flags.temperature.value_or(sampling.temperature);
    sampling.top_k = flags.top_k.value_or(sampling.top_k);
    sampling.top_p = flags.top_p.value_or(sampling.top_p);
    sampling.min_p = flags.min_p.value_or(sampling.min_p);
    sampling.repeat_penalty = flags.repeat_penalty.value_or(sampling.repeat_penalty);
    sampling.presence_penalty = flags.presence_penalty;
    sampling.frequency_penalty = flags.frequency_penalty;
    sampling.seed = flags.seed.has_value() ? *flags.seed : random_seed();
    sampling.top_logprobs = flags.logprobs;
    for (const std::string& text : flags.logit_bias) {
        FR_ASSIGN(const auto bias, parse_logit_bias(text));
        sampling.logit_bias.push_back(bias);
    }
    if (flags.max_tokens < -1)
        return fail(ErrorCode::kUsage, "--max-tokens: expected -1 (no limit) or more, got {}", flags.max_tokens);
    request.max_tokens = flags.max_tokens;
    request.stop = flags.stop;
    request.stop_ids = flags.stop_ids;
    request.ignore_eos = flags.ignore_eos;
    FR_TRY(check_sampling_params(sampling, source.config().vocab_size));
    return request;
}

}  // namespace frontier

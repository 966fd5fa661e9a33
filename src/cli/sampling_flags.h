// The flags that shape a generation.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/result.h"
#include "engine/request.h"
#include "model/source.h"

namespace frontier {

struct SamplingFlags {
    std::int64_t max_tokens = -1;
    std::optional<double> temperature, top_p, min_p, repeat_penalty;
    std::optional<std::int32_t> top_k;
    double presence_penalty = 0;
    double frequency_penalty = 0;
    std::optional<std::uint64_t> seed;
    std::vector<std::string> stop;
    std::vector<std::int32_t> stop_ids;
    std::vector<std::string> logit_bias;  // ID=BIAS
    std::int32_t logprobs = -1;
    bool ignore_eos = false;
    bool model_defaults = false;
};

void add_sampling_flags(CLI::App& command, SamplingFlags& flags);

// A request without its prompt. Flags win over the model's defaults, which count only with --model-defaults. Without
// --seed the seed is drawn from the system and reported.
Result<Request> request_from_flags(const SamplingFlags& flags, const ModelSource& source);

}  // namespace frontier

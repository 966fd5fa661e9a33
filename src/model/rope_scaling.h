// Rotary frequencies and the ways in which files stretch them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "backend/backend.h"

namespace frontier {

struct RopeScaling {
    enum class Kind : std::uint8_t { kNone, kLinear, kLlama3, kYarn };
    Kind kind = Kind::kNone;
    double factor = 1;
    double original_context_tokens = 0;                // llama3, yarn
    double low_freq_factor = 1, high_freq_factor = 4;  // llama3
    double beta_fast = 32, beta_slow = 1;              // yarn
    bool truncate = true;                              // yarn: correction range rounded to whole dimensions
    std::optional<double> attention_factor;            // yarn: replaces 0.1 ln(factor) + 1
};

// Plain frequencies theta^(-2i / dims), divided by `factors` where given (rope_freqs.weight of a GGUF file, dims / 2
// long), then scaled. dims is even, theta > 1, factor >= 1 where a kind uses it.
RopeConfig make_rope(double theta, std::int32_t dims, const RopeScaling& scaling, std::span<const float> factors = {});

// The factors that rope_freqs.weight holds for llama3 scaling: plain frequency / scaled frequency.
std::vector<float> llama3_rope_factors(double theta, std::int32_t dims, const RopeScaling& scaling);

}  // namespace frontier

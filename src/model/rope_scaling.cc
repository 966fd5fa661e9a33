#include "model/rope_scaling.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

namespace frontier {
namespace {

double plain_frequency(double theta, std::int32_t dims, std::int32_t pair) {
    return std::pow(theta, -2.0 * pair / dims);
}

// Llama 3.1 reference code: wavelengths longer than the trained context / low factor are stretched, those shorter
// than context / high factor are kept, and between the two the frequency is interpolated.
double llama3_frequency(double frequency, const RopeScaling& s) {
    const double wavelength = 2 * std::numbers::pi / frequency;
    if (wavelength < s.original_context_tokens / s.high_freq_factor) return frequency;
    if (wavelength > s.original_context_tokens / s.low_freq_factor) return frequency / s.factor;
    const double smooth =
        (s.original_context_tokens / wavelength - s.low_freq_factor) / (s.high_freq_factor - s.low_freq_factor);
    return (1 - smooth) * frequency / s.factor + smooth * frequency;
}

// YaRN (Peng et al. 2023, section 3.2): dimensions that turn more than beta_fast times over the trained context keep
// their frequency, those that turn less than beta_slow times are interpolated, with a linear ramp between.
struct YarnRamp {
    double low = 0, high = 0;

    YarnRamp(double theta, std::int32_t dims, const RopeScaling& s) {
        const auto dimension_of = [&](double rotations) {
            return dims * std::log(s.original_context_tokens / (rotations * 2 * std::numbers::pi)) /
                   (2 * std::log(theta));
        };
        low = dimension_of(s.beta_fast);
        high = dimension_of(s.beta_slow);
        if (s.truncate) {
            low = std::floor(low);
            high = std::ceil(high);
        }
        low = std::max(low, 0.0);
        high = std::min(high, dims - 1.0);
        if (low == high) high += 0.001;  // as the reference code avoids the division by zero
    }
    double interpolated_share(std::int32_t pair) const { return std::clamp((pair - low) / (high - low), 0.0, 1.0); }
};

}  // namespace

RopeConfig make_rope(double theta, std::int32_t dims, const RopeScaling& scaling, std::span<const float> factors) {
    RopeConfig rope;
    rope.inv_freq.reserve(static_cast<std::size_t>(dims / 2));
    const YarnRamp ramp(theta, dims, scaling);
    for (std::int32_t pair = 0; pair < dims / 2; ++pair) {
        double frequency = plain_frequency(theta, dims, pair);
        if (!factors.empty()) frequency /= factors[static_cast<std::size_t>(pair)];
        switch (scaling.kind) {
            case RopeScaling::Kind::kNone:
                break;
            case RopeScaling::Kind::kLinear:
                frequency /= scaling.factor;
                break;
            case RopeScaling::Kind::kLlama3:
                frequency = llama3_frequency(frequency, scaling);
                break;
            case RopeScaling::Kind::kYarn: {
                const double share = ramp.interpolated_share(pair);
                frequency = frequency / scaling.factor * share + frequency * (1 - share);
                break;
            }
        }
        rope.inv_freq.push_back(static_cast<float>(frequency));
    }
    if (scaling.kind == RopeScaling::Kind::kYarn)
        rope.magnitude = static_cast<float>(scaling.attention_factor.value_or(0.1 * std::log(scaling.factor) + 1));
    return rope;
}

std::vector<float> llama3_rope_factors(double theta, std::int32_t dims, const RopeScaling& scaling) {
    std::vector<float> factors;
    for (std::int32_t pair = 0; pair < dims / 2; ++pair) {
        const double frequency = plain_frequency(theta, dims, pair);
        factors.push_back(static_cast<float>(frequency / llama3_frequency(frequency, scaling)));
    }
    return factors;
}

}  // namespace frontier

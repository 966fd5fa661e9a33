#include "model/rope_scaling.h"

#include <cmath>

#include <gtest/gtest.h>

namespace frontier {
namespace {

// Expected values: numpy in f64, from the formulas of the papers as transformers spells them; each is rounded to f32
// once here and there, so they agree to 1 ulp (6e-8 relative) or, with decimals of 9 digits, 1e-7.
constexpr float kTolerance = 2e-7F;

void expect_frequencies(const RopeConfig& rope, const std::vector<std::pair<std::size_t, double>>& expected) {
    for (const auto& [pair, frequency] : expected)
        EXPECT_NEAR(rope.inv_freq[pair] / frequency, 1.0, kTolerance) << "pair " << pair;
}

TEST(RopeScaling, Plain) {
    const RopeConfig rope = make_rope(10000, 8, {});
    ASSERT_EQ(rope.inv_freq.size(), 4U);
    expect_frequencies(rope, {{0, 1.0}, {1, 0.1}, {2, 0.01}, {3, 0.001}});
    EXPECT_EQ(rope.magnitude, 1.0F);
}

TEST(RopeScaling, Llama3KeepsShortAndStretchesLongWavelengths) {
    RopeScaling scaling{.kind = RopeScaling::Kind::kLlama3, .factor = 8};
    scaling.original_context_tokens = 8192;
    const RopeConfig rope = make_rope(500000, 128, scaling);  // Llama 3.1 8B
    expect_frequencies(rope, {{0, 1},
                              {20, 0.0165604401},
                              {28, 0.00321144599},
                              {29, 0.00216657076},
                              {32, 0.000524846161},
                              {35, 9.55621235e-05},
                              {36, 7.78465527e-05},
                              {50, 4.41153467e-06},
                              {63, 3.06892599e-07}});
    EXPECT_EQ(rope.magnitude, 1.0F);
}

TEST(RopeScaling, YarnRampsBetweenDimensions) {
    RopeScaling scaling{.kind = RopeScaling::Kind::kYarn, .factor = 4};
    scaling.original_context_tokens = 32768;
    RopeConfig rope = make_rope(1e6, 128, scaling);  // Qwen2.5 7B as its model card extends it
    expect_frequencies(rope, {{0, 1},
                              {10, 0.115478198},
                              {23, 0.00697830585},
                              {24, 0.00537532149},
                              {30, 0.00106436098},
                              {35, 0.000246258407},
                              {39, 6.49039432e-05},
                              {40, 4.44569853e-05},
                              {41, 3.58253143e-05},
                              {63, 3.1023444e-07}});
    EXPECT_NEAR(rope.magnitude, 1.13862944, kTolerance);
    scaling.attention_factor = 1.5;
    EXPECT_EQ(make_rope(1e6, 128, scaling).magnitude, 1.5F);
}

TEST(RopeScaling, LinearDividesAll) {
    RopeScaling scaling{.kind = RopeScaling::Kind::kLinear, .factor = 2.5};
    expect_frequencies(make_rope(10000, 8, scaling), {{0, 0.4}, {1, 0.04}, {2, 0.004}, {3, 0.0004}});
}

TEST(RopeScaling, Llama3FactorsGiveTheSameFrequencies) {
    RopeScaling scaling{.kind = RopeScaling::Kind::kLlama3, .factor = 32};
    scaling.original_context_tokens = 8192;
    const RopeConfig direct = make_rope(500000, 64, scaling);
    const RopeConfig divided = make_rope(500000, 64, {}, llama3_rope_factors(500000, 64, scaling));
    // The factors are rounded to f32 in between: 2 roundings.
    for (std::size_t i = 0; i < 32; ++i) EXPECT_NEAR(direct.inv_freq[i] / divided.inv_freq[i], 1.0F, kTolerance);
}

}  // namespace
}  // namespace frontier

#include "kernel_rows.h"
#include "test_data.h"

namespace frontier {
namespace {

using QuantizeTest = KernelTest;
FR_FOR_EACH_KERNEL_ROW(QuantizeTest);

TEST_P(QuantizeTest, ErrorIsAtMostHalfAStep) {
    const auto x = random_activations(4096, 1);
    const Quantized q(table(), x, 1, 4096);
    for (std::size_t b = 0; b < q.scales.size(); ++b) {
        float max = 0;
        for (std::size_t i = 0; i < 32; ++i) max = std::max(max, std::abs(x[32 * b + i]));
        ASSERT_EQ(q.scales[b], max / 127.0F);
        for (std::size_t i = 0; i < 32; ++i)  // 127 / max and the product are rounded: 127 * 2 roundings of a step
            ASSERT_NEAR(q.quants[32 * b + i], static_cast<double>(x[32 * b + i]) / max * 127, 0.5 + 254 * kF32Rounding);
        for (std::size_t g = 0; g < 2; ++g) {
            int sum = 0;
            for (std::size_t i = 0; i < 16; ++i) sum += q.quants[32 * b + 16 * g + i];
            ASSERT_EQ(q.sums[2 * b + g], sum);
        }
        ASSERT_EQ(q.scaled_sums[b], q.scales[b] * static_cast<float>(q.sums[2 * b] + q.sums[2 * b + 1]));
    }
}

TEST_P(QuantizeTest, BitsAreThoseOfScalar) {
    std::vector<float> x;
    for (const float size : {1e-38F, 7e-31F, 8e-31F, 1e-20F, 1.0F, 3e20F, 3.4e37F}) {
        const auto part = random_activations(320, 2);
        for (const float v : part) x.push_back(v * size);
    }
    for (int i = 0; i < 32; ++i) x.push_back(i == 0 ? 127.0F : static_cast<float>(i) - 15.5F);  // exact ties
    for (int i = 0; i < 32; ++i) x.push_back(-0.0F);
    const auto cols = static_cast<std::int64_t>(x.size());
    const Quantized q(table(), x, 1, cols);
    const Quantized expected(scalar(), x, 1, cols);
    EXPECT_EQ(q.quants, expected.quants);
    EXPECT_EQ(q.scales, expected.scales);
    EXPECT_EQ(q.scaled_sums, expected.scaled_sums);
    EXPECT_EQ(q.sums, expected.sums);
    // Ties go to even: -14.5 and -13.5 meet at -14.
    EXPECT_EQ(q.quants[x.size() - 64 + 1], -14);
    EXPECT_EQ(q.quants[x.size() - 64 + 2], -14);
}

TEST_P(QuantizeTest, ANonFiniteValueMarksItsBlock) {
    for (const float fault : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                              std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::quiet_NaN()}) {
        for (std::size_t at = 0; at < 32; ++at) {
            auto x = random_activations(96, 3);
            x[32 + at] = fault;
            const Quantized q(table(), x, 1, 96);
            EXPECT_FALSE(std::isnan(q.scales[0]));
            EXPECT_TRUE(std::isnan(q.scales[1]));
            EXPECT_FALSE(std::isnan(q.scales[2]));
        }
    }
}

TEST_P(QuantizeTest, TouchesNothingElse) {
    const auto x = random_activations(64, 4);
    std::vector<std::int8_t> quants(64 + 64, 99);
    std::vector<float> scales(2 + 16, 99);
    std::vector<float> scaled_sums(2 + 16, 99);
    std::vector<std::int16_t> sums(4 + 32, 99);
    table().quantize_q8(x.data(),
                        {quants.data() + 32, scales.data() + 8, scaled_sums.data() + 8, sums.data() + 16, 64});
    for (std::size_t i = 0; i < 32; ++i) {
        EXPECT_EQ(quants[i], 99);
        EXPECT_EQ(quants[96 + i], 99);
    }
    for (std::size_t i = 0; i < 8; ++i) {
        EXPECT_EQ(scales[i], 99);
        EXPECT_EQ(scales[10 + i], 99);
        EXPECT_EQ(scaled_sums[i], 99);
        EXPECT_EQ(scaled_sums[10 + i], 99);
    }
    for (std::size_t i = 0; i < 16; ++i) {
        EXPECT_EQ(sums[i], 99);
        EXPECT_EQ(sums[20 + i], 99);
    }
}

}  // namespace
}  // namespace frontier

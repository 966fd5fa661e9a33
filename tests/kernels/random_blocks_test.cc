#include "tensor/random_blocks.h"

#include <gtest/gtest.h>

#include "test_data.h"

namespace frontier {
namespace {

class RandomBlocksTest : public testing::TestWithParam<int> {
protected:
    DType type() const { return static_cast<DType>(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Types, RandomBlocksTest, testing::Range(0, kDTypeCount), [](const auto& param_info) {
    return std::string(dtype_name(static_cast<DType>(param_info.param)));
});

TEST_P(RandomBlocksTest, AnyRangeMadeAloneIsTheSame) {
    const std::int64_t bytes = dtype_info(type()).block_bytes;
    std::vector<std::byte> whole(static_cast<std::size_t>(100 * bytes));
    fill_random_blocks(type(), 5, 6, 1000, 100, 0.02F, whole.data());
    std::vector<std::byte> part(static_cast<std::size_t>(100 * bytes));
    for (const auto& [first, count] : {std::pair{0, 1}, {1, 41}, {42, 58}})
        fill_random_blocks(type(), 5, 6, 1000 + first, count, 0.02F, part.data() + first * bytes);
    EXPECT_EQ(part, whole);
    fill_random_blocks(type(), 5, 7, 1000, 100, 0.02F, part.data());
    EXPECT_NE(part, whole) << "streams differ";
}

TEST_P(RandomBlocksTest, ValuesHaveTheGivenSpread) {
    constexpr std::int64_t kElements = 1 << 20;
    const std::int64_t blocks = kElements / dtype_info(type()).block_elements;
    for (const float stddev : {0.02F, 1.0F}) {
        std::vector<std::byte> data(static_cast<std::size_t>(row_bytes(type(), kElements)));
        fill_random_blocks(type(), 1, 2, 0, blocks, stddev, data.data());
        ASSERT_TRUE(row_is_finite(type(), data.data(), kElements));
        std::vector<float> x(kElements);
        dequantize_row(type(), data.data(), kElements, x.data());
        double sum = 0;
        double squares = 0;
        for (const float v : x) {
            ASSERT_TRUE(std::isfinite(v));
            sum += v;
            squares += static_cast<double>(v) * v;
        }
        // The independent draws are the scales: at least 4096 blocks, whose mean squares spread by about their mean
        // in the types with two levels of scales. Five standard errors of the mean: 5 / sqrt(4096).
        EXPECT_NEAR(sum / kElements / stddev, 0, 5.0 / 64);
        EXPECT_NEAR(std::sqrt(squares / kElements) / stddev, 1, 5.0 / 64);
    }
}

std::vector<int> quantized_types() {
    std::vector<int> types;
    for (int type = 0; type < kDTypeCount; ++type)
        if (dtype_info(static_cast<DType>(type)).quantized) types.push_back(type);
    return types;
}
class RandomQuantsTest : public RandomBlocksTest {};
INSTANTIATE_TEST_SUITE_P(Types, RandomQuantsTest, testing::ValuesIn(quantized_types()), [](const auto& param_info) {
    return std::string(dtype_name(static_cast<DType>(param_info.param)));
});

TEST_P(RandomQuantsTest, EveryBytePatternOccursOutsideTheScales) {
    const std::int64_t bytes = dtype_info(type()).block_bytes;
    std::vector<std::byte> data(static_cast<std::size_t>(8192 * bytes));
    fill_random_blocks(type(), 3, 4, 0, 8192, 0.02F, data.data());
    int complete = 0;
    for (std::int64_t offset = 0; offset < bytes; ++offset) {
        std::vector<bool> seen(256);
        for (std::int64_t b = 0; b < 8192; ++b)
            seen[static_cast<std::uint8_t>(data[static_cast<std::size_t>(b * bytes + offset)])] = true;
        // 8192 draws miss one of 256 patterns with probability below 256 * exp(-32).
        complete += std::count(seen.begin(), seen.end(), true) == 256 ? 1 : 0;
    }
    // All but the f16 scale and minimum (four bytes at most), or the exponent byte.
    EXPECT_GE(complete, bytes - 4);
}

}  // namespace
}  // namespace frontier

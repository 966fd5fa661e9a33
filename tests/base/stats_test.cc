#include "base/stats.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace frontier {
namespace {

using Samples = std::vector<double>;
using Floats = std::vector<float>;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST(Stats, CentresOfSmallSets) {
    EXPECT_TRUE(std::isnan(median({})));
    EXPECT_TRUE(std::isnan(mean({})));
    EXPECT_TRUE(std::isnan(percentile({}, 50)));
    EXPECT_TRUE(std::isnan(median_absolute_deviation({})));
    EXPECT_EQ(median(Samples{3}), 3);
    EXPECT_EQ(median(Samples{9, 1, 4}), 4);
    EXPECT_EQ(median(Samples{9, 1, 4, 2}), 3);
    EXPECT_EQ(mean(Samples{9, 1, 4, 2}), 4);
    // Deviations from 3 are 6, 2, 1, 1.
    EXPECT_EQ(median_absolute_deviation(Samples{9, 1, 4, 2}), 1.5);
}

TEST(Stats, PercentileIsTheNearestRank) {
    const Samples ten = {10, 9, 8, 7, 6, 5, 4, 3, 2, 1};
    EXPECT_EQ(percentile(ten, 50), 5);
    EXPECT_EQ(percentile(ten, 51), 6);
    EXPECT_EQ(percentile(ten, 90), 9);
    EXPECT_EQ(percentile(ten, 99), 10);
    EXPECT_EQ(percentile(ten, 100), 10);
    EXPECT_EQ(percentile(ten, 1), 1);
    EXPECT_EQ(percentile(Samples{4}, 95), 4);
    // Out of range is clamped, not read out of bounds.
    EXPECT_EQ(percentile(ten, 0), 1);
    EXPECT_EQ(percentile(ten, 200), 10);
}

TEST(Stats, MaxAbsError) {
    EXPECT_EQ(max_abs_error({}, {}), 0);
    EXPECT_EQ(max_abs_error(Floats{1, -2, 3}, Floats{1, 2, 2.5}), 4);
    EXPECT_TRUE(std::isnan(max_abs_error(Floats{1, kNan}, Floats{1, 1})));
    EXPECT_TRUE(std::isnan(max_abs_error(Floats{1, 1}, Floats{kNan, 1})));
    EXPECT_TRUE(std::isinf(max_abs_error(Floats{INFINITY}, Floats{1})));
    // In double: the difference of these floats exceeds the range of float.
    EXPECT_EQ(max_abs_error(Floats{3e38F}, Floats{-3e38F}), 2 * static_cast<double>(3e38F));
}

TEST(Stats, RelativeL2Error) {
    EXPECT_EQ(relative_l2_error({}, {}), 0);
    EXPECT_EQ(relative_l2_error(Floats{0, 0}, Floats{0, 0}), 0);
    EXPECT_TRUE(std::isinf(relative_l2_error(Floats{1}, Floats{0})));
    // |(3, 4) - (0, 4)| / |(0, 4)| = 3/4; and relative to the other one 3/5.
    EXPECT_DOUBLE_EQ(relative_l2_error(Floats{3, 4}, Floats{0, 4}), 0.75);
    EXPECT_DOUBLE_EQ(relative_l2_error(Floats{0, 4}, Floats{3, 4}), 0.6);
    EXPECT_TRUE(std::isnan(relative_l2_error(Floats{kNan}, Floats{1})));
    EXPECT_TRUE(std::isnan(relative_l2_error(Floats{1}, Floats{kNan})));
    // Independent of the length: the root of a mean over n would shrink with it twice.
    EXPECT_DOUBLE_EQ(relative_l2_error(Floats(1000, 1.5F), Floats(1000, 1.0F)), 0.5);
}

}  // namespace
}  // namespace frontier

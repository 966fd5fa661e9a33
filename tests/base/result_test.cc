#include "base/result.h"

#include <gtest/gtest.h>

#include <memory>

namespace frontier {
namespace {

Result<int> half_of(int value) {
    if (value % 2 != 0) return bad_input("half of {}: expected an even number", value);
    return value / 2;
}

Result<int> quarter_of(int value, int& steps) {
    FR_ASSIGN(const int half, half_of(value));
    ++steps;
    int quarter = 0;
    FR_ASSIGN(quarter, half_of(half));
    ++steps;
    return quarter;
}

Status check_twice(int value, int& steps) {
    FR_TRY(half_of(value));
    ++steps;
    FR_TRY(half_of(value / 2));
    ++steps;
    return {};
}

TEST(Result, MacrosPassOnTheFirstError) {
    int steps = 0;
    EXPECT_EQ(quarter_of(12, steps).value(), 3);
    EXPECT_EQ(steps, 2);
    steps = 0;
    const auto failed = quarter_of(6, steps);
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().text, "half of 3: expected an even number");
    EXPECT_EQ(failed.error().code, ErrorCode::kBadInput);
    EXPECT_EQ(steps, 1);
    steps = 0;
    EXPECT_TRUE(check_twice(4, steps));
    EXPECT_FALSE(check_twice(6, steps));
    EXPECT_EQ(steps, 3);
}

Result<std::unique_ptr<int>> make(int value) {
    return std::make_unique<int>(value);
}

Result<int> unwrap(int value) {
    FR_ASSIGN(const std::unique_ptr<int> pointer, make(value));
    return *pointer;
}

TEST(Result, ValuesAreMovedOut) {
    EXPECT_EQ(unwrap(7).value(), 7);
}

// The exit codes of the command line contract.
TEST(Result, CodesAreTheExitCodes) {
    EXPECT_EQ(static_cast<int>(ErrorCode::kFailed), 1);
    EXPECT_EQ(static_cast<int>(ErrorCode::kUsage), 2);
    EXPECT_EQ(static_cast<int>(ErrorCode::kBadInput), 3);
    EXPECT_EQ(static_cast<int>(ErrorCode::kDoesNotFit), 4);
    EXPECT_EQ(static_cast<int>(ErrorCode::kGateFailed), 5);
    EXPECT_EQ(static_cast<int>(ErrorCode::kInterrupted), 130);
}

}  // namespace
}  // namespace frontier

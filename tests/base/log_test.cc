#include "base/log.h"

#include <gtest/gtest.h>

namespace frontier {
namespace {

TEST(Log, LevelsByName) {
    init_logging(false);
    EXPECT_FALSE(spdlog::default_logger()->should_log(spdlog::level::info));
    EXPECT_TRUE(spdlog::default_logger()->should_log(spdlog::level::warn));
    init_logging(true);
    EXPECT_TRUE(spdlog::default_logger()->should_log(spdlog::level::info));
    for (const char* name : {"trace", "debug", "info", "warning", "error", "off"})
        EXPECT_TRUE(set_log_level(name)) << name;
    EXPECT_FALSE(spdlog::default_logger()->should_log(spdlog::level::critical));
    EXPECT_TRUE(set_log_level("debug"));
    const Status bad = set_log_level("loud");
    ASSERT_FALSE(bad);
    EXPECT_EQ(bad.error().code, ErrorCode::kUsage);
    EXPECT_EQ(bad.error().text, "--log-level: expected trace, debug, info, warning, error or off, got 'loud'");
    EXPECT_TRUE(spdlog::default_logger()->should_log(spdlog::level::debug));  // unchanged by the mistake
}

}  // namespace
}  // namespace frontier

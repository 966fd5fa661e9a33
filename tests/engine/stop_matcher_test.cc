#include "engine/stop_matcher.h"

#include <gtest/gtest.h>

#include "base/rng.h"

namespace frontier {
namespace {

// The definition, byte by byte: the text before the stop string that is complete first, the longest of several.
std::string expected_text(const std::string& text, const std::vector<std::string>& stops) {
    for (std::size_t end = 1; end <= text.size(); ++end) {
        std::size_t longest = 0;
        for (const std::string& stop : stops)
            if (std::string_view(text).substr(0, end).ends_with(stop)) longest = std::max(longest, stop.size());
        if (longest > 0) return text.substr(0, end - longest);
    }
    return text;
}

TEST(StopMatcher, HoldsBackWhatMayBecomeAStop) {
    StopMatcher matcher({"</s>"});
    EXPECT_EQ(matcher.push("abc<"), "abc");
    EXPECT_EQ(matcher.push("/"), "");
    EXPECT_EQ(matcher.push("x"), "</x");
    EXPECT_EQ(matcher.push("</s"), "");
    EXPECT_EQ(matcher.push(">tail"), "");
    EXPECT_TRUE(matcher.stopped());
    EXPECT_EQ(matcher.finish(), "");
}

TEST(StopMatcher, GivesBackHeldTextAtTheEnd) {
    StopMatcher matcher({"stop"});
    EXPECT_EQ(matcher.push("the sto"), "the ");
    EXPECT_EQ(matcher.finish(), "sto");
    EXPECT_FALSE(matcher.stopped());
}

TEST(StopMatcher, EmptyStopStringsNeverStop) {
    StopMatcher matcher({"", ""});
    EXPECT_EQ(matcher.push("text"), "text");
    EXPECT_FALSE(matcher.stopped());
}

TEST(StopMatcher, AnySplitGivesTheTextBeforeTheFirstStop) {
    RandomStream random(7);
    for (int round = 0; round < 20'000; ++round) {
        std::vector<std::string> stops;
        for (std::uint64_t i = 0; i < 1 + random.next() % 3; ++i) {
            std::string stop;
            for (std::uint64_t j = 0; j < 1 + random.next() % 4; ++j)
                stop += static_cast<char>('a' + random.next() % 2);
            stops.push_back(stop);
        }
        std::string text;
        for (std::uint64_t i = 0; i < random.next() % 20; ++i) text += static_cast<char>('a' + random.next() % 3);
        StopMatcher matcher(stops);
        std::string shown;
        for (std::size_t at = 0; at < text.size();) {
            const std::size_t length = 1 + random.next() % 4;
            shown += matcher.push(std::string_view(text).substr(at, length));
            at += length;
        }
        shown += matcher.finish();
        ASSERT_EQ(shown, expected_text(text, stops)) << text << " / " << stops.front();
    }
}

}  // namespace
}  // namespace frontier

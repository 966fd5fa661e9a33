#include "engine/stop_matcher.h"

#include <gtest/gtest.h>

#include "base/rng.h"

namespace frontier {
namespace {

// The definition: the text up to the first occurrence of any stop string.
std::string expected_text(const std::string& text, const std::vector<std::string>& stops) {
    std::size_t end = text.size();
    for (const std::string& stop : stops)
        if (!stop.empty()) end = std::min(end, text.find(stop));
    return text.substr(0, end);
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

#include "text/regex.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace frontier {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> matches(std::string_view pattern, std::string_view text) {
    auto regex = Regex::compile(pattern, "test");
    EXPECT_TRUE(regex.has_value()) << (regex ? "" : regex.error().text);
    std::vector<std::string> result;
    if (!regex) return result;
    Regex::Matcher matcher(*regex, text.size());
    for (std::size_t from = 0; from <= text.size() && matcher.find(text, from);) {
        result.emplace_back(text.substr(matcher.begin, matcher.end - matcher.begin));
        from = matcher.end > matcher.begin ? matcher.end : matcher.end + 1;
    }
    return result;
}

TEST(Regex, ReadsOnigurumasSyntax) {
    EXPECT_THAT(matches(R"(\h+)", "xyz1Fg"), ElementsAre("1F"));
    EXPECT_THAT(matches(R"(\u00e9)", "caf\xC3\xA9"), ElementsAre("\xC3\xA9"));
    EXPECT_THAT(matches(R"(.$)", "ab\ncd"), ElementsAre("b", "d"));
    EXPECT_THAT(matches(R"((?i:'ll|'s))", "I'LL 's"), ElementsAre("'LL", "'s"));
    EXPECT_THAT(matches(R"([\p{L}&&[^\p{Lu}]]+)", "abCDef"), ElementsAre("ab", "ef"));
    EXPECT_THAT(matches(R"([a[0-9]c]+)", "a1cb"), ElementsAre("a1c"));
    EXPECT_THAT(matches(R"([^a[0-9]]+)", "a1xyc3"), ElementsAre("xyc"));
    EXPECT_THAT(matches(R"([[:digit:]x]+)", "a1x"), ElementsAre("1x"));
    EXPECT_THAT(matches(R"([]a]+)", "]a["), ElementsAre("]a"));
}

TEST(Regex, SpacesAndWordsAreUnicodes) {
    EXPECT_THAT(matches(R"(\s)", "\xC2\xA0\xE3\x80\x80\xC2\x85"), ElementsAre("\xC2\xA0", "\xE3\x80\x80", "\xC2\x85"));
    // U+180E is no White_Space; PCRE2's own \s takes it.
    EXPECT_THAT(matches(R"(\s|[\s])", "\xE1\xA0\x8E"), ElementsAre());
    EXPECT_THAT(matches(R"(\w+)", "h\xC3\xA9_1-\xE4\xB8\x80"), ElementsAre("h\xC3\xA9_1", "\xE4\xB8\x80"));
    EXPECT_THAT(matches(R"(\S+)", "a\xE1\xA0\x8E b"), ElementsAre("a\xE1\xA0\x8E", "b"));
}

TEST(Regex, ErrorsNameThePattern) {
    const auto unclosed = Regex::compile("[a", "file: field");
    ASSERT_FALSE(unclosed.has_value());
    EXPECT_EQ(unclosed.error().code, ErrorCode::kBadInput);
    EXPECT_THAT(unclosed.error().text, testing::AllOf(HasSubstr("file: field"), HasSubstr("[a")));
    EXPECT_FALSE(Regex::compile("a(", "x").has_value());
    EXPECT_FALSE(Regex::compile(R"(\C)", "x").has_value());
    EXPECT_FALSE(Regex::compile(std::string(100'000, 'a'), "x").has_value());
    std::string nested;
    for (int i = 0; i < 40; ++i) nested += "[a";
    EXPECT_FALSE(Regex::compile(nested, "x").has_value());
}

// The error of scanning `text` to its end.
std::string scan_error(std::string_view pattern, std::string_view text) {
    auto regex = Regex::compile(pattern, "file: field");
    if (!regex) return regex.error().text;
    Regex::Matcher matcher(*regex, text.size());
    for (std::size_t from = 0; from <= text.size() && matcher.find(text, from);)
        from = matcher.end > matcher.begin ? matcher.end : matcher.end + 1;
    return matcher.status() ? "" : matcher.status().error().text;
}

TEST(Regex, HostilePatternsAreErrors) {
    // Exponential backtracking.
    EXPECT_THAT(scan_error("^(a+)+$", std::string(40, 'a') + "b"), HasSubstr("file: field: pattern '^(a+)+$': "));
    EXPECT_THAT(scan_error("(a|aa)+$", std::string(5000, 'a') + "b"), HasSubstr("limit"));
    // Each place looks at all the rest: 5 * 10^9 steps, were it let.
    EXPECT_THAT(scan_error("(?=.*x)a", std::string(100'000, 'a')), HasSubstr("in proportion to the text"));
    EXPECT_THAT(scan_error("(?:(?!a*x)a)", std::string(300'000, 'a')), HasSubstr("in proportion to the text"));
    EXPECT_THAT(scan_error("(?<=.{300})a", "a"), HasSubstr("looks 300 characters back"));
    EXPECT_THAT(scan_error(R"((a*)\1b)", "a"), HasSubstr("back-references"));
}

TEST(Regex, LongMatchesArePossible) {
    // A group repeated a million times outgrows the small stack of JIT code, not the large one.
    const std::string text(1'000'000, 'a');
    EXPECT_THAT(matches("(?:a|b)+", text), ElementsAre(text));
    // Digits by threes from the right, as published patterns group them.
    EXPECT_EQ(matches(R"(\d{1,3}(?=(?:\d{3})*\b))", std::string(1000, '1')).size(), 334U);
    EXPECT_EQ(scan_error(R"(\d{1,3}(?=(?:\d{3})*\b))", std::string(1000, '1')), "");
}

TEST(Regex, WindowsChangeNoMatch) {
    // Runs that end before, at and after the borders of the windows (128 and 512 bytes, and from other places).
    for (const std::size_t length : {1U, 2U, 126U, 127U, 128U, 129U, 130U, 254U, 255U, 256U, 511U, 512U, 513U, 2047U}) {
        const std::string letters(length, 'a'), spaces(length, ' ');
        const std::string text = letters + spaces + "b" + spaces;
        EXPECT_THAT(matches(R"( ?b|\s+(?!\S)|\s+|a+)", text),
                    length == 1 ? testing::ElementsAreArray({letters, std::string(" b"), spaces})
                                : testing::ElementsAreArray({letters, spaces.substr(1), std::string(" b"), spaces}));
        EXPECT_THAT(matches("b", text), ElementsAre("b"));
        EXPECT_THAT(matches("(?<= )(?=b)", text), ElementsAre(""));
        EXPECT_THAT(matches(R"(a\b)", text), ElementsAre("a"));
        EXPECT_THAT(matches("$", text), ElementsAre(""));
        EXPECT_EQ(matches("b*", text).size(), 3 * length + 2);  // each place, the b, the end
        std::string accents;
        for (std::size_t i = 0; i < length; ++i) accents += "\xC3\xA9";
        EXPECT_THAT(matches(R"(\p{L}+)", accents + " " + accents), ElementsAre(accents, accents));
    }
}

TEST(Regex, TrailingSpacesCostOnePass) {
    // \s+$ from every place of a long run would be a 10^12 step search.
    std::string text(1'000'000, ' ');
    text += "x  ";
    EXPECT_THAT(matches(R"(\s+$)", text), ElementsAre("  "));
    EXPECT_THAT(matches(R"(\s+$)", "a \n\n b  \n c "), ElementsAre(" \n", "  ", " "));
}

}  // namespace
}  // namespace frontier

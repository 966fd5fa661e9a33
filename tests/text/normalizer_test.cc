#include "text/normalizer.h"

#include <gtest/gtest.h>

namespace frontier {
namespace {

using Op = NormalizerStep::Op;

std::string apply(std::vector<NormalizerStep> steps, std::string_view text, bool first = true) {
    auto normalizer = Normalizer::create(steps, "test");
    EXPECT_TRUE(normalizer.has_value());
    return normalizer ? *normalizer->apply(text, first) : "";
}

TEST(Normalizer, NormalForms) {
    const std::string composed = "\xC3\xA9", decomposed = "e\xCC\x81";
    EXPECT_EQ(apply({{.op = Op::kNfc}}, decomposed), composed);
    EXPECT_EQ(apply({{.op = Op::kNfd}}, composed), decomposed);
    EXPECT_EQ(apply({{.op = Op::kNfkc}}, "\xEF\xAC\x81"), "fi");
    EXPECT_EQ(apply({{.op = Op::kNfkd}}, "\xEF\xAC\x81" + composed), "fi" + decomposed);
    EXPECT_EQ(apply({{.op = Op::kNfc}}, "\xEF\xAC\x81"), "\xEF\xAC\x81");
}

TEST(Normalizer, KeepsTheHangulCharacterBeforeTheTrailingOnes) {
    // U+AC00 U+11A7: the second does not compose (utf8proc 2.8 swallows it).
    const std::string text = "\xEA\xB0\x80\xE1\x86\xA7";
    EXPECT_EQ(apply({{.op = Op::kNfc}}, text), text);
    EXPECT_EQ(apply({{.op = Op::kNfc}}, "\xEA\xB0\x80\xE1\x86\xA8"), "\xEA\xB0\x81");
}

TEST(Normalizer, CaseAndAccents) {
    EXPECT_EQ(apply({{.op = Op::kLowercase}}, "\xC3\x89\xCE\xA3 A\xC4\xB0"), "\xC3\xA9\xCF\x83 ai\xCC\x87");
    EXPECT_EQ(apply({{.op = Op::kNfd}, {.op = Op::kStripAccents}}, "\xC3\xA9\xC3\xBC"), "eu");
}

TEST(Normalizer, PrependsOnlyToTheFirstStretch) {
    const NormalizerStep prepend{.op = Op::kPrepend, .content = "_"};
    EXPECT_EQ(apply({prepend}, "a"), "_a");
    EXPECT_EQ(apply({prepend}, "a", false), "a");
    EXPECT_EQ(apply({prepend}, ""), "");
}

TEST(Normalizer, Replaces) {
    EXPECT_EQ(apply({{.op = Op::kReplace, .pattern = "  ", .content = "-"}}, "a    b"), "a--b");
    const NormalizerStep regex{.op = Op::kReplace, .pattern = " {2,}", .pattern_is_regex = true, .content = " "};
    EXPECT_EQ(apply({regex}, "a    b c"), "a b c");
    const NormalizerStep empty{.op = Op::kReplace, .pattern = "x*", .pattern_is_regex = true, .content = "-"};
    EXPECT_EQ(apply({empty}, "a\xC3\xA9"), "-a-\xC3\xA9-");
}

TEST(Normalizer, GrowthIsBounded) {
    const NormalizerStep grow{.op = Op::kReplace, .pattern = "a", .content = std::string(1000, 'a')};
    const NormalizerStep by_regex{
        .op = Op::kReplace, .pattern = "a", .pattern_is_regex = true, .content = std::string(1000, 'a')};
    const NormalizerStep prefix{.op = Op::kPrepend, .content = std::string(100, 'a')};
    for (const auto& step : {grow, by_regex, prefix}) {
        const auto result = Normalizer::create({{.op = Op::kNfc}, step}, "file")->apply("a", true);
        ASSERT_FALSE(result.has_value());
        EXPECT_EQ(result.error().code, ErrorCode::kBadInput);
        EXPECT_EQ(result.error().text, "file: normalizer step 2: expected at most 80 bytes from a text of 1, got more");
    }
    // The character that grows most in published files fits, also many of them.
    std::string text;
    for (int i = 0; i < 1000; ++i) text += "\xEF\xB7\xBA";
    const NormalizerStep mark{.op = Op::kReplace, .pattern = " ", .content = "\xE2\x96\x81"};
    EXPECT_EQ(apply({{.op = Op::kNfkc}, mark}, text).size(), 39'000U);
}

TEST(Normalizer, Strips) {
    EXPECT_EQ(apply({{.op = Op::kStrip, .strip_left = true, .strip_right = true}}, " \n\xE3\x80\x80 a b\t"), "a b");
    EXPECT_EQ(apply({{.op = Op::kStrip, .strip_left = true}}, " a "), "a ");
    EXPECT_EQ(apply({{.op = Op::kStrip, .strip_right = true}}, " a "), " a");
    EXPECT_EQ(apply({{.op = Op::kStrip, .strip_right = true}}, "  "), "");
    EXPECT_EQ(apply({{.op = Op::kCollapseSpaces}}, "  a   b "), "a b");
}

}  // namespace
}  // namespace frontier

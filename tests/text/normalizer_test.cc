#include "text/normalizer.h"

#include <gtest/gtest.h>

namespace frontier {
namespace {

using Op = NormalizerStep::Op;

std::string apply(std::vector<NormalizerStep> steps, std::string_view text, bool first = true) {
    auto normalizer = Normalizer::create(steps, "test");
    EXPECT_TRUE(normalizer.has_value());
    return normalizer ? normalizer->apply(text, first) : "";
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

TEST(Normalizer, Strips) {
    EXPECT_EQ(apply({{.op = Op::kStrip, .strip_left = true, .strip_right = true}}, " \n\xE3\x80\x80 a b\t"), "a b");
    EXPECT_EQ(apply({{.op = Op::kStrip, .strip_left = true}}, " a "), "a ");
    EXPECT_EQ(apply({{.op = Op::kStrip, .strip_right = true}}, " a "), " a");
    EXPECT_EQ(apply({{.op = Op::kStrip, .strip_right = true}}, "  "), "");
    EXPECT_EQ(apply({{.op = Op::kCollapseSpaces}}, "  a   b "), "a b");
}

}  // namespace
}  // namespace frontier

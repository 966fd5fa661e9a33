#include "text/unicode.h"

#include <gtest/gtest.h>

namespace frontier {
namespace {

TEST(Utf8, DecodesTheBordersOfEachLength) {
    for (const char32_t code : {0x0U, 0x7FU, 0x80U, 0x7FFU, 0x800U, 0xD7FFU, 0xE000U, 0xFFFFU, 0x10000U, 0x10FFFFU}) {
        std::string text;
        append_utf8(text, code);
        const Utf8Char c = next_utf8(text);
        EXPECT_TRUE(c.valid);
        EXPECT_EQ(c.code, code);
        EXPECT_EQ(static_cast<std::size_t>(c.size_bytes), text.size());
        EXPECT_EQ(valid_utf8_prefix(text), text.size());
    }
}

TEST(Utf8, RefusesOverlongFormsSurrogatesAndStrayBytes) {
    for (const std::string_view text : {"\xC0\x80", "\xC1\xBF", "\xE0\x80\x80", "\xED\xA0\x80", "\xF0\x80\x80\x80",
                                        "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\x80", "\xFF"}) {
        EXPECT_FALSE(next_utf8(text).valid);
        EXPECT_FALSE(next_utf8(text).truncated);
        EXPECT_EQ(valid_utf8_prefix(text), 0U);
    }
}

TEST(Utf8, TakesWhatIsCertain) {
    // Maximal subparts, Unicode table 3-8: 61 F1 80 80 E1 80 C2 62 80 63 80 BF 64 gives 61 x x x 62 x 63 x x 64.
    std::string pending = "\x61\xF1\x80\x80\xE1\x80\xC2\x62\x80\x63\x80\xBF\x64";
    const std::string x(kReplacementChar);
    EXPECT_EQ(take_valid_utf8(pending, false), "a" + x + x + x + "b" + x + "c" + x + x + "d");
    EXPECT_EQ(pending, "");
    pending = "\xF0\x9F\x98";
    EXPECT_EQ(take_valid_utf8(pending, false), "");
    EXPECT_EQ(pending, "\xF0\x9F\x98");
    EXPECT_EQ(take_valid_utf8(pending, true), x);
}

TEST(ByteLevel, IsTheAlphabetOfGpt2) {
    EXPECT_EQ(byte_to_char()[' '], 0x120U);
    EXPECT_EQ(byte_to_char()['\n'], 0x10AU);
    EXPECT_EQ(byte_to_char()['a'], static_cast<char32_t>('a'));
    EXPECT_EQ(byte_to_char()[0xAD], 0x143U);
    for (int byte = 0; byte < 256; ++byte)
        EXPECT_EQ(char_to_byte(byte_to_char()[static_cast<std::size_t>(byte)]), byte);
    EXPECT_EQ(char_to_byte(' '), -1);
    EXPECT_EQ(char_to_byte(0x144), -1);
    std::string all, mapped, back;
    for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
    append_byte_level(mapped, all);
    EXPECT_TRUE(append_from_byte_level(back, mapped));
    EXPECT_EQ(back, all);
    EXPECT_FALSE(append_from_byte_level(back, "a b"));
    EXPECT_EQ(back, all);
}

TEST(ByteFallback, ReadsOnlyItsOwnForm) {
    EXPECT_EQ(byte_fallback_value("<0x00>"), 0);
    EXPECT_EQ(byte_fallback_value("<0xFf>"), 255);
    for (const std::string_view piece : {"<0x0>", "<0x000>", "<0xG0>", "0x41", "<0x41)"})
        EXPECT_EQ(byte_fallback_value(piece), -1) << piece;
}

TEST(ReplaceAll, GoesOnBehindEachReplacement) {
    std::string text = "aaa";
    replace_all(text, "a", "aa");
    EXPECT_EQ(text, "aaaaaa");
    replace_all(text, "", "x");
    EXPECT_EQ(text, "aaaaaa");
    replace_all(text, "aaaa", "b");
    EXPECT_EQ(text, "baa");
}

}  // namespace
}  // namespace frontier

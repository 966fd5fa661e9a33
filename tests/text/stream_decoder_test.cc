#include <gtest/gtest.h>

#include "text_test_util.h"

namespace frontier::test {
namespace {

bool is_valid(std::string_view text) {
    return valid_utf8_prefix(text) == text.size();
}

TEST(StreamDecoder, WaitsForTheRestOfACharacter) {
    StreamDecoder decoder(make(byte_level_spec()));
    EXPECT_EQ(decoder.push(4 + 0xE2), "");
    EXPECT_EQ(decoder.push(4 + 0x82), "");
    EXPECT_EQ(decoder.push(4 + 0xAC), "\xE2\x82\xAC");
    EXPECT_EQ(decoder.finish(), "");
}

TEST(StreamDecoder, ReplacesWhatCannotBecomeACharacterAtOnce) {
    StreamDecoder decoder(make(byte_level_spec()));
    EXPECT_EQ(decoder.push(4 + 0xE2), "");
    // E2 followed by a letter is certain to be invalid.
    EXPECT_EQ(decoder.push(4 + 'a'),
              "\xEF\xBF\xBD"
              "a");
    EXPECT_EQ(decoder.push(4 + 0xFF), "\xEF\xBF\xBD");
    EXPECT_EQ(decoder.push(4 + 0xF0), "");
    EXPECT_EQ(decoder.finish(), "\xEF\xBF\xBD");
    EXPECT_EQ(decoder.finish(), "");
}

TEST(StreamDecoder, ControlTokensAreSilentUnlessWanted) {
    const auto tokenizer = make(byte_level_spec());
    StreamDecoder plain(tokenizer), special(tokenizer, true);
    EXPECT_EQ(plain.push(2), "");
    EXPECT_EQ(special.push(2), "<|user|>");
    EXPECT_EQ(plain.push(3), "<think>");
    EXPECT_EQ(plain.push(-1) + plain.push(1'000'000), "");
}

TEST(StreamDecoder, DropsTheFirstSpaceOnlyAtTheStart) {
    const auto tokenizer = make(sentencepiece_spec({{"\xE2\x96\x81", -1},
                                                    {"a", -2},
                                                    {"\xE2\x96\x81"
                                                     "a",
                                                     -3}}));
    const std::vector<TokenId> ids = {1, 261, 261};
    EXPECT_EQ(tokenizer->decode(ids), "a a");
    StreamDecoder at_start(tokenizer, false, true), continuing(tokenizer);
    std::string start, rest;
    for (const TokenId id : ids) {
        start += at_start.push(id);
        rest += continuing.push(id);
    }
    EXPECT_EQ(start, "a a");
    EXPECT_EQ(rest, " a a");
}

// Any sequence of tokens, in particular those that no text gives: the pieces are valid UTF-8 and join to decode().
TEST(StreamDecoder, RandomSequencesJoinToDecode) {
    const std::shared_ptr<const Tokenizer> tokenizers[] = {
        make(byte_level_spec({"\xC3\xA2 \xC4\xA4", "\xC3\xB0 \xC5\x81", "h e"})),
        make(sentencepiece_spec({{"\xE2\x96\x81", -1},
                                 {"\xC3\xA9", -2},
                                 {"\xE2\x96\x81"
                                  "a",
                                  -3}}))};
    RandomStream random(30);
    for (const auto& tokenizer : tokenizers) {
        for (int round = 0; round < 3000; ++round) {
            const bool with_special = round % 2 == 0;
            StreamDecoder decoder(tokenizer, with_special, true);
            std::vector<TokenId> ids;
            std::string joined;
            const std::uint64_t length = random.next() % 30;
            for (std::uint64_t i = 0; i < length; ++i) {
                ids.push_back(
                    static_cast<TokenId>(random.next() % static_cast<std::uint64_t>(tokenizer->vocab_size())));
                const std::string piece = decoder.push(ids.back());
                ASSERT_TRUE(is_valid(piece));
                joined += piece;
            }
            const std::string last = decoder.finish();
            ASSERT_TRUE(is_valid(last));
            ASSERT_EQ(joined + last, tokenizer->decode(ids, with_special)) << "round " << round;
        }
    }
}

}  // namespace
}  // namespace frontier::test

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "text_test_util.h"

namespace frontier::test {
namespace {

using testing::ElementsAre;

const std::string kSpace(kSpaceMark);

std::vector<std::string> encode(const TokenizerSpec& spec, std::string_view text) {
    const auto tokenizer = make(spec);
    return pieces_of(*tokenizer, *tokenizer->encode(text, {.add_special = false}));
}

TEST(SentencePiece, TheHighestScoreMergesFirst) {
    const std::vector<std::pair<std::string, float>> letters = {{kSpace, -9}, {"a", -9}, {"b", -9}, {"c", -9}};
    auto left = letters, right = letters;
    left.insert(left.end(), {{"ab", -1}, {"bc", -2}});
    right.insert(right.end(), {{"ab", -2}, {"bc", -1}});
    EXPECT_THAT(encode(sentencepiece_spec(left), "abc"), ElementsAre(kSpace, "ab", "c"));
    EXPECT_THAT(encode(sentencepiece_spec(right), "abc"), ElementsAre(kSpace, "a", "bc"));
}

TEST(SentencePiece, TheLeftmostOfEqualsMergesFirst) {
    const auto spec = sentencepiece_spec({{kSpace, -9}, {"a", -9}, {"aa", -1}, {"aaa", -1}});
    EXPECT_THAT(encode(spec, "aaaaa"), ElementsAre(kSpace, "aaa", "aa"));
}

TEST(SentencePiece, FallsBackToBytes) {
    EXPECT_THAT(encode(sentencepiece_spec({{kSpace, -1}}), "\xC3\xA9"), ElementsAre(kSpace, "<0xC3>", "<0xA9>"));
}

TEST(SentencePiece, UnknownWithoutBytes) {
    TokenizerSpec spec = sentencepiece_spec({{kSpace, -1}, {"a", -2}});
    for (auto& type : spec.types)
        if (type == TokenType::kByte) type = TokenType::kNormal;
    for (std::size_t i = 3; i < 259; ++i) spec.pieces[i] = fmt::format("[{}]", i);
    EXPECT_THAT(encode(spec, "a\xC3\xA9"), ElementsAre(kSpace, "a", "<unk>"));
}

TEST(SentencePiece, PrefixAndWhitespaceSwitches) {
    TokenizerSpec spec = sentencepiece_spec({{kSpace, -1}, {"a", -2}, {kSpace + "a", -3}});
    EXPECT_THAT(encode(spec, "a"), ElementsAre(kSpace + "a"));
    EXPECT_THAT(encode(spec, ""), ElementsAre());
    EXPECT_THAT(encode(spec, " a"), ElementsAre(kSpace, kSpace + "a"));
    spec.remove_extra_whitespaces = true;
    EXPECT_THAT(encode(spec, "  a   a "), ElementsAre(kSpace + "a", kSpace + "a"));
    spec.remove_extra_whitespaces = false;
    spec.add_space_prefix = false;
    EXPECT_THAT(encode(spec, "a"), ElementsAre("a"));
    EXPECT_EQ(make(spec)->decode(std::vector<TokenId>{261}), " a");
}

TEST(SentencePiece, UserDefinedTokensComeFirst) {
    TokenizerSpec spec = sentencepiece_spec({{kSpace, -1}, {"a", -2}, {"b", -2}, {"ab", -1}, {"ba", -9}});
    spec.types[spec.pieces.size() - 1] = TokenType::kUserDefined;
    // The fragment behind a found token gets the prefix again, as llama.cpp does.
    EXPECT_THAT(encode(spec, "abab"), ElementsAre(kSpace, "a", "ba", kSpace, "b"));
}

TEST(SentencePiece, UnusedPiecesAreTakenApart) {
    TokenizerSpec spec = sentencepiece_spec({{kSpace, -9}, {"a", -9}, {"b", -9}, {"c", -9}, {"ab", -1}, {"abc", -2}});
    spec.types[spec.pieces.size() - 2] = TokenType::kUnused;
    EXPECT_THAT(encode(spec, "ab"), ElementsAre(kSpace, "a", "b"));
    EXPECT_THAT(encode(spec, "abc"), ElementsAre(kSpace, "abc"));
}

TEST(SentencePiece, AddsTheSpecialTokensItIsToldTo) {
    TokenizerSpec spec = sentencepiece_spec({{kSpace, -1}, {"a", -2}});
    spec.add_eos = true;
    EXPECT_THAT(*make(spec)->encode("a"), ElementsAre(1, 259, 260, 2));
    EXPECT_THAT(*make(spec)->encode(""), ElementsAre(1, 2));
    spec.bos.reset();
    EXPECT_THAT(*make(spec)->encode(""), ElementsAre(2));
}

TEST(SentencePiece, RefusesInconsistentSpecs) {
    const auto error = [](const TokenizerSpec& spec) {
        const auto tokenizer = Tokenizer::create(spec);
        return tokenizer ? std::string("no error") : tokenizer.error().text;
    };
    TokenizerSpec spec = sentencepiece_spec({{"a", -1}});
    spec.scores.pop_back();
    EXPECT_THAT(error(spec), testing::HasSubstr("scores: expected 260"));
    spec.scores.push_back(std::numeric_limits<float>::quiet_NaN());
    EXPECT_THAT(error(spec), testing::HasSubstr("scores: entry 259"));
    spec.scores.back() = 0;
    spec.bos = 260;
    EXPECT_THAT(error(spec), testing::HasSubstr("bos token id 260"));
    spec.bos = -1;
    EXPECT_THAT(error(spec), testing::HasSubstr("bos token id -1"));
    spec.bos.reset();
    spec.types.pop_back();
    EXPECT_THAT(error(spec), testing::HasSubstr("token types: expected 260"));
    EXPECT_THAT(error(TokenizerSpec{}), testing::HasSubstr("vocabulary is empty"));
}

}  // namespace
}  // namespace frontier::test

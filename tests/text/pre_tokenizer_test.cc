#include "text/pre_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace frontier {
namespace {

using testing::ElementsAre;

std::vector<std::string> split(const std::vector<SplitStep>& steps, std::string_view text, bool first = true) {
    auto pre_tokenizer = PreTokenizer::create(steps, "test");
    EXPECT_TRUE(pre_tokenizer.has_value());
    std::vector<std::string> result;
    if (!pre_tokenizer) return result;
    Words words;
    pre_tokenizer->split(text, first, words);
    for (const Words::Range range : words.ranges) result.emplace_back(words.word(range));
    return result;
}

std::vector<std::string> by_name(std::string_view name, std::string_view text) {
    return split(gguf_split_steps(name), text);
}

SplitStep regex(std::string pattern, SplitBehavior behavior, bool invert = false) {
    SplitStep step;
    step.pattern = std::move(pattern);
    step.behavior = behavior;
    step.invert = invert;
    return step;
}

TEST(PreTokenizer, NamedFamiliesDiffer) {
    const std::string_view text = "I'LL pay 12345 x\n\n y";
    EXPECT_THAT(by_name("gpt-2", text), ElementsAre("I", "'", "LL", " pay", " 12345", " x", "\n\n", " y"));
    EXPECT_THAT(by_name("llama-bpe", text), ElementsAre("I", "'LL", " pay", " ", "123", "45", " x", "\n\n", " y"));
    EXPECT_THAT(by_name("qwen2", text),
                ElementsAre("I", "'LL", " pay", " ", "1", "2", "3", "4", "5", " x", "\n\n", " y"));
    EXPECT_THAT(by_name("starcoder", text),
                ElementsAre("I", "'", "LL", " pay", " ", "1", "2", "3", "4", "5", " x", "\n\n", " y"));
    EXPECT_THAT(by_name("deepseek-llm", text),
                ElementsAre("I", "'", "LL", " pay", " ", "12345", " x", "\n", "\n", " y"));
    EXPECT_THAT(by_name("tekken", "helloWorld"), ElementsAre("hello", "World"));
    EXPECT_THAT(by_name("gpt-4o", "It's"), ElementsAre("It's"));
    EXPECT_TRUE(gguf_split_steps("no such").empty());
}

TEST(PreTokenizer, EveryNamedPatternCompilesAndCoversTheText) {
    TokenizerSpec spec;
    const auto error = apply_gguf_pre_tokenizer(spec, "gpt2", "no such");
    ASSERT_FALSE(error.has_value());
    // The error lists all names behind "known are".
    std::string_view names = error.error().text;
    names.remove_prefix(names.find("known are ") + 10);
    const std::string text = "Ab1 \xE4\xB8\x80\xE3\x81\x82 don't  \n\t\xC2\xBD(x) $5,000.00\r\n  \xF0\x9F\x98\x80";
    int count = 0;
    while (!names.empty()) {
        const std::string name(names.substr(0, names.find(", ")));
        names.remove_prefix(std::min(names.size(), name.size() + 2));
        std::string joined;
        for (const std::string& word : by_name(name, text)) joined += word;
        EXPECT_EQ(joined, text) << name;
        ++count;
    }
    EXPECT_GT(count, 50);
}

TEST(PreTokenizer, Behaviors) {
    const std::string_view text = "a--b-";
    EXPECT_THAT(split({regex("-", SplitBehavior::kIsolated)}, text), ElementsAre("a", "-", "-", "b", "-"));
    EXPECT_THAT(split({regex("-", SplitBehavior::kRemoved)}, text), ElementsAre("a", "b"));
    EXPECT_THAT(split({regex("-", SplitBehavior::kContiguous)}, text), ElementsAre("a", "--", "b", "-"));
    EXPECT_THAT(split({regex("-", SplitBehavior::kMergedWithPrevious)}, text), ElementsAre("a-", "-", "b-"));
    EXPECT_THAT(split({regex("-", SplitBehavior::kMergedWithNext)}, text), ElementsAre("a", "-", "-b", "-"));
    EXPECT_THAT(split({regex("[a-z]", SplitBehavior::kRemoved, true)}, text), ElementsAre("a", "b"));
}

TEST(PreTokenizer, EmptyMatchesAreBorders) {
    EXPECT_THAT(split({regex("(?=[A-Z])", SplitBehavior::kIsolated)},
                      "fooBar\xC3\xA9"
                      "Baz"),
                ElementsAre("foo", "Bar\xC3\xA9", "Baz"));
}

TEST(PreTokenizer, Metaspace) {
    SplitStep step;
    step.op = SplitStep::Op::kMetaspace;
    step.pattern = "_";
    step.prefix = SplitStep::Prefix::kFirst;
    EXPECT_THAT(split({step}, "a b  c"), ElementsAre("_a", "_b", "_", "_c"));
    EXPECT_THAT(split({step}, "a b", false), ElementsAre("a", "_b"));
    step.prefix = SplitStep::Prefix::kAlways;
    EXPECT_THAT(split({step}, "_a", false), ElementsAre("_a"));
    step.split = false;
    EXPECT_THAT(split({step}, "a b"), ElementsAre("_a_b"));
}

TEST(PreTokenizer, PatternsAfterByteLevelSeeItsAlphabet) {
    SplitStep byte_level;
    byte_level.op = SplitStep::Op::kByteLevel;
    // The second byte of U+00BD (C2 BD) is itself a fraction, hence a digit, in the alphabet.
    EXPECT_THAT(split({byte_level, regex(R"(\p{N})", SplitBehavior::kIsolated)}, "a\xC2\xBD"),
                ElementsAre("a\xC3\x82", "\xC2\xBD"));
}

TEST(PreTokenizer, NothingGivesNothing) {
    EXPECT_THAT(by_name("gpt-2", ""), ElementsAre());
    EXPECT_THAT(split({}, "as it is"), ElementsAre("as it is"));
}

TEST(GgufNames, SetTheFlagsThatGoWithThem) {
    TokenizerSpec spec;
    spec.where = "model.gguf";
    ASSERT_TRUE(apply_gguf_pre_tokenizer(spec, "gpt2", "llama-bpe").has_value());
    EXPECT_TRUE(spec.ignore_merges);
    EXPECT_TRUE(spec.add_bos);
    EXPECT_FALSE(spec.add_space_prefix);
    ASSERT_TRUE(apply_gguf_pre_tokenizer(spec, "gpt2", "qwen2").has_value());
    EXPECT_FALSE(spec.ignore_merges);
    EXPECT_FALSE(spec.add_bos);
    ASSERT_TRUE(apply_gguf_pre_tokenizer(spec, "llama", "").has_value());
    EXPECT_EQ(spec.kind, TokenizerKind::kSentencePiece);
    EXPECT_TRUE(spec.add_bos);
    EXPECT_TRUE(spec.add_space_prefix);
    const auto bert = apply_gguf_pre_tokenizer(spec, "bert", "");
    ASSERT_FALSE(bert.has_value());
    EXPECT_EQ(bert.error().code, ErrorCode::kBadInput);
    EXPECT_THAT(bert.error().text, testing::AllOf(testing::HasSubstr("model.gguf"), testing::HasSubstr("'bert'")));
}

}  // namespace
}  // namespace frontier

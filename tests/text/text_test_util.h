// What the tokenizer tests share: files, random text, small vocabularies.
#pragma once

#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "text/tokenizer.h"
#include "text/unicode.h"

namespace frontier::test {

inline std::string source_path(const std::string& name) {
    return std::string(FRONTIER_SOURCE_DIR) + "/" + name;
}

// "" when the file cannot be read.
inline std::string read_file(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Valid UTF-8 of up to `max_chars` characters from scripts that pre-tokenisers treat differently.
inline std::string random_text(RandomStream& random, int max_chars) {
    constexpr std::pair<char32_t, char32_t> kRanges[] = {
        {0x20, 0x7E},     {0x20, 0x7E},     {'a', 'z'},         {'0', '9'},       {0x09, 0x0D},       {0x20, 0x20},
        {0x80, 0x24F},    {0x300, 0x36F},   {0x370, 0x52F},     {0x590, 0x6FF},   {0x900, 0x97F},     {0xE00, 0xE7F},
        {0x1780, 0x17FF}, {0x2000, 0x206F}, {0x2150, 0x218F},   {0x3000, 0x30FF}, {0x4E00, 0x9FFF},   {0xAC00, 0xD7A3},
        {0xE000, 0xF8FF}, {0xFF00, 0xFFFD}, {0x1F300, 0x1F64F}, {0, 0x1F},        {0x10000, 0x10FFFF}};
    std::string text;
    const auto count = static_cast<int>(random.next() % static_cast<std::uint64_t>(max_chars + 1));
    for (int i = 0; i < count; ++i) {
        const auto& [low, high] = kRanges[random.next() % std::size(kRanges)];
        append_utf8(text, low + static_cast<char32_t>(random.next() % (high - low + 1)));
    }
    return text;
}

inline std::shared_ptr<const Tokenizer> make(TokenizerSpec spec) {
    auto tokenizer = Tokenizer::create(std::move(spec));
    if (!tokenizer) throw std::runtime_error(tokenizer.error().text);
    return *tokenizer;
}

// A byte-level vocabulary: <s>, </s>, <|user|> (control), <think> (user-defined), the 256 bytes from id 4 on, then the
// results of `merges`.
inline TokenizerSpec byte_level_spec(std::vector<std::string> merges = {}) {
    TokenizerSpec spec;
    spec.kind = TokenizerKind::kByteLevelBpe;
    spec.where = "test";
    spec.pre_tokenizer = "gpt-2";
    spec.pieces = {"<s>", "</s>", "<|user|>", "<think>"};
    spec.types = {TokenType::kControl, TokenType::kControl, TokenType::kControl, TokenType::kUserDefined};
    for (const char32_t code : byte_to_char()) {
        spec.pieces.emplace_back();
        append_utf8(spec.pieces.back(), code);
    }
    for (const std::string& merge : merges) {
        const auto space = merge.find(' ', 1);
        spec.pieces.push_back(merge.substr(0, space) + merge.substr(space + 1));
    }
    spec.types.resize(spec.pieces.size(), TokenType::kNormal);
    spec.merges = std::move(merges);
    spec.bos = 0;
    spec.eos = 1;
    return spec;
}

// A SentencePiece vocabulary: <unk>, <s>, </s>, the 256 bytes from id 3 on, then `pieces` with their scores.
inline TokenizerSpec sentencepiece_spec(const std::vector<std::pair<std::string, float>>& pieces) {
    TokenizerSpec spec;
    spec.where = "test";
    if (!apply_gguf_pre_tokenizer(spec, "llama", "")) throw std::runtime_error("llama is known");
    spec.pieces = {"<unk>", "<s>", "</s>"};
    spec.types = {TokenType::kUnknown, TokenType::kControl, TokenType::kControl};
    for (int byte = 0; byte < 256; ++byte) {
        spec.pieces.push_back(fmt::format("<0x{:02X}>", byte));
        spec.types.push_back(TokenType::kByte);
    }
    spec.scores.resize(spec.pieces.size());
    for (const auto& [piece, score] : pieces) {
        spec.pieces.push_back(piece);
        spec.scores.push_back(score);
        spec.types.push_back(TokenType::kNormal);
    }
    return spec;
}

inline std::vector<std::string> pieces_of(const Tokenizer& tokenizer, const std::vector<TokenId>& ids) {
    std::vector<std::string> result;
    for (const TokenId id : ids) result.push_back(tokenizer.spec().pieces[static_cast<std::size_t>(id)]);
    return result;
}

}  // namespace frontier::test

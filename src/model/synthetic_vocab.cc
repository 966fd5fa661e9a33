// Vocabularies of any size for synthetic models.
#include "base/check.h"
#include "model/synthetic.h"

namespace frontier {
namespace {

void append_utf8(std::string& out, std::uint32_t code_point) {  // below U+10000
    if (code_point < 0x80) {
        out += static_cast<char>(code_point);
    } else if (code_point < 0x800) {
        out += static_cast<char>(0xC0U | code_point >> 6);
        out += static_cast<char>(0x80U | (code_point & 0x3FU));
    } else {
        out += static_cast<char>(0xE0U | code_point >> 12);
        out += static_cast<char>(0x80U | (code_point >> 6 & 0x3FU));
        out += static_cast<char>(0x80U | (code_point & 0x3FU));
    }
}

// GPT-2's alphabet: printable bytes stand for themselves, the others for U+0100 onwards in ascending order.
std::vector<std::string> byte_alphabet() {
    std::vector<std::string> alphabet;
    std::uint32_t next = 0x100;
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
        const bool printable = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
        std::string piece;
        append_utf8(piece, printable ? byte : next++);
        alphabet.push_back(std::move(piece));
    }
    return alphabet;
}

// Words by length: every word but the first ones is an earlier word and one more letter. `space` is the piece that
// stands for a space and may begin a word.
struct Word {
    std::string left, right;
};
std::vector<Word> made_up_words(const std::string& space, std::size_t count) {
    constexpr std::string_view kLetters = "etaoinshrdlucmfwypvbgkjqxz";  // about by frequency in English
    std::vector<Word> words;
    std::vector<std::string> stems = {space};
    for (const char letter : kLetters) stems.emplace_back(1, letter);
    while (words.size() < count) {
        std::vector<std::string> longer;
        for (const std::string& stem : stems) {
            for (const char letter : kLetters) {
                if (words.size() == count) return words;
                words.push_back({stem, std::string(1, letter)});
                longer.push_back(stem + letter);
            }
        }
        stems = std::move(longer);
    }
    return words;
}

TokenizerSpec sentencepiece_spec(const SyntheticShape& shape) {
    const std::string kSpace = "\xE2\x96\x81";  // U+2581
    TokenizerSpec spec;
    FR_CHECK(apply_gguf_pre_tokenizer(spec, "llama", "default"));
    const auto add = [&](std::string piece, TokenType type, float score) {
        spec.pieces.push_back(std::move(piece));
        spec.types.push_back(type);
        spec.scores.push_back(score);
    };
    add("<unk>", TokenType::kUnknown, 0);
    add("<s>", TokenType::kControl, 0);
    add("</s>", TokenType::kControl, 0);
    for (int byte = 0; byte < 256; ++byte) add(fmt::format("<0x{:02X}>", byte), TokenType::kByte, 0);
    // Pieces rank by their score: longer words merge later.
    const auto next_score = [&] { return -static_cast<float>(spec.pieces.size()); };
    add(kSpace, TokenType::kNormal, next_score());
    for (char c = '!'; c <= '~'; ++c) add(std::string(1, c), TokenType::kNormal, next_score());
    const std::size_t words = static_cast<std::size_t>(shape.vocab_size) - spec.pieces.size();
    for (Word& word : made_up_words(kSpace, words)) add(word.left + word.right, TokenType::kNormal, next_score());
    spec.unk = 0;
    spec.bos = 1;
    spec.eos = 2;
    spec.add_bos = true;
    return spec;
}

// Control tokens of the family at their places after the text tokens; the rest are reserved.
std::vector<std::string> control_pieces(const SyntheticShape& shape) {
    const bool llama = shape.vocabulary == SyntheticVocabulary::kLlama3;
    std::vector<std::string> pieces;
    pieces.reserve(static_cast<std::size_t>(shape.vocab_size - shape.normal_tokens));
    for (std::int32_t i = 0; i < shape.vocab_size - shape.normal_tokens; ++i)
        pieces.push_back(fmt::format("<|reserved_special_token_{}|>", i));
    if (llama) {
        pieces[0] = "<|begin_of_text|>";
        pieces[1] = "<|end_of_text|>";
        pieces[6] = "<|start_header_id|>";
        pieces[7] = "<|end_header_id|>";
        pieces[9] = "<|eot_id|>";
    } else {
        pieces[0] = "<|endoftext|>";
        pieces[1] = "<|im_start|>";
        pieces[2] = "<|im_end|>";
    }
    return pieces;
}

TokenizerSpec byte_level_spec(const SyntheticShape& shape) {
    const bool llama = shape.vocabulary == SyntheticVocabulary::kLlama3;
    TokenizerSpec spec;
    FR_CHECK(apply_gguf_pre_tokenizer(spec, "gpt2", llama ? "llama-bpe" : "qwen2"));
    spec.pieces = byte_alphabet();
    const std::string space = spec.pieces[' '];
    const std::size_t words = static_cast<std::size_t>(shape.normal_tokens) - spec.pieces.size();
    for (Word& word : made_up_words(space, words)) {
        spec.merges.push_back(word.left + " " + word.right);
        spec.pieces.push_back(word.left + word.right);
    }
    spec.types.assign(spec.pieces.size(), TokenType::kNormal);
    for (std::string& piece : control_pieces(shape)) {
        spec.pieces.push_back(std::move(piece));
        spec.types.push_back(TokenType::kControl);
    }
    const TokenId first = shape.normal_tokens;
    spec.bos = first;
    spec.eos = first + (llama ? 9 : 2);  // as the instruction-tuned models end a turn
    spec.add_bos = llama;
    return spec;
}

}  // namespace

TokenizerSpec synthetic_tokenizer_spec(const SyntheticShape& shape) {
    TokenizerSpec spec =
        shape.vocabulary == SyntheticVocabulary::kSentencePiece ? sentencepiece_spec(shape) : byte_level_spec(shape);
    spec.where = fmt::format("synthetic:{}", shape.name);
    FR_CHECK(spec.pieces.size() == static_cast<std::size_t>(shape.vocab_size));
    return spec;
}

}  // namespace frontier

// Text to token ids and back. Built from a TokenizerSpec, which the readers of GGUF metadata and tokenizer.json fill.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/types.h"

namespace frontier {

enum class TokenizerKind : std::uint8_t {
    kSentencePiece,  // llama: scores, byte fallback, U+2581 for the space
    kByteLevelBpe,   // gpt-2 and descendants: byte-to-unicode alphabet, ranked merges, pre-tokeniser
    kMergeBpe        // tokenizer.json BPE over characters with byte fallback (llama-2 style files)
};

enum class TokenType : std::uint8_t { kNormal, kUnknown, kControl, kUserDefined, kUnused, kByte };

struct TokenizerSpec {
    TokenizerKind kind = TokenizerKind::kByteLevelBpe;
    std::string where;                // file, for error texts
    std::vector<std::string> pieces;  // as stored: byte-level pieces in the gpt-2 alphabet, SPM with U+2581
    std::vector<float> scores;        // SentencePiece only
    std::vector<TokenType> types;     // empty: all normal
    std::vector<std::string> merges;  // "left right" in rank order
    std::string pre_tokenizer;        // GGUF name: "gpt-2", "llama-bpe", "qwen2", "deepseek-llm", "starcoder", ...
    std::vector<std::string>
        pre_tokenizer_patterns;  // from tokenizer.json, instead of a name: applied one after another
    std::optional<TokenId> bos, eos, unk, pad;
    std::vector<TokenId> end_of_generation;  // besides eos: <|eot_id|>, <|im_end|>, ...
    bool add_bos = false;
    bool add_eos = false;
    bool add_space_prefix = false;
    bool remove_extra_whitespaces = false;
    bool ignore_merges = false;  // llama-3: a whole word that is a token is taken without merging
    // Further switches of tokenizer.json (normalisers, added-token strip flags, decoder) are the text layer's to add.
};

struct EncodeOptions {
    bool add_special = true;     // BOS / EOS as the model wants them
    bool parse_special = false;  // control tokens written out in the text count
};

// One stretch of a rendered template. Control tokens are recognised only where `trusted`.
struct TextSpan {
    std::string_view text;
    bool trusted = false;
};

class Tokenizer {
public:
    static Result<std::shared_ptr<const Tokenizer>> create(TokenizerSpec spec);
    virtual ~Tokenizer() = default;

    // Linear time in the text. Invalid UTF-8 is encoded byte by byte where the vocabulary can, else as U+FFFD / unk.
    virtual std::vector<TokenId> encode(std::string_view text, const EncodeOptions& options = {}) const = 0;
    // The spans concatenated are the text. Control tokens are recognised only if they lie wholly in trusted bytes;
    // the text between them is tokenised whole, across span borders. Adds no BOS or EOS.
    virtual std::vector<TokenId> encode_spans(std::span<const TextSpan> spans) const = 0;

    // The bytes that a token stands for in running text; control tokens give "" unless `with_special`.
    virtual std::string token_bytes(TokenId id, bool with_special = false) const = 0;
    // Joined text of the ids, e.g. without the space that SentencePiece puts first.
    virtual std::string decode(std::span<const TokenId> ids, bool with_special = false) const = 0;

    virtual std::int32_t vocab_size() const = 0;
    virtual const TokenizerSpec& spec() const = 0;
    virtual std::optional<TokenId> find(std::string_view piece) const = 0;  // piece as stored
    virtual bool is_control(TokenId id) const = 0;
    virtual bool ends_generation(TokenId id) const = 0;  // eos or in end_of_generation
};

// Turns a stream of tokens into text; never emits half a character: incomplete UTF-8 waits for the next token.
class StreamDecoder {
public:
    explicit StreamDecoder(std::shared_ptr<const Tokenizer> tokenizer, bool with_special = false);
    std::string push(TokenId id);  // the text that is now certain, possibly empty
    std::string finish();          // what is left; invalid bytes become U+FFFD

private:
    std::shared_ptr<const Tokenizer> tokenizer_;
    bool with_special_;
    bool at_start_ = true;
    std::string pending_;
};

// Reads tokenizer.json and, for the special tokens, tokenizer_config.json (may be empty). Texts, not paths.
Result<TokenizerSpec> parse_tokenizer_json(std::string_view tokenizer_json, std::string_view tokenizer_config_json,
                                           std::string_view where);

}  // namespace frontier

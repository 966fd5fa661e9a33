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
#include "text/tokenizer_spec.h"

namespace frontier {

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
    // Fails (kBadInput) only where steps of the file would make the text, or the work, grow out of proportion.
    virtual Result<std::vector<TokenId>> encode(std::string_view text, const EncodeOptions& options = {}) const = 0;
    // The spans concatenated are the text. Control tokens are recognised only if they lie wholly in trusted bytes;
    // the text between them is tokenised whole, across span borders. Adds no BOS or EOS.
    virtual Result<std::vector<TokenId>> encode_spans(std::span<const TextSpan> spans) const = 0;

    // The bytes that a token stands for in running text; control tokens give "" unless `with_special`.
    virtual std::string token_bytes(TokenId id, bool with_special = false) const = 0;
    // Joined text of the ids, always valid UTF-8 (bytes that form none become U+FFFD); without the space that
    // SentencePiece puts first. Ids outside the vocabulary stand for nothing.
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
    // `at_start`: the tokens begin a text, so the space that SentencePiece puts first is dropped as decode() does.
    // A continuation of a prompt keeps it.
    explicit StreamDecoder(std::shared_ptr<const Tokenizer> tokenizer, bool with_special = false,
                           bool at_start = false);
    std::string push(TokenId id);  // the text that is now certain, possibly empty
    std::string finish();          // what is left; invalid bytes become U+FFFD

private:
    std::shared_ptr<const Tokenizer> tokenizer_;
    bool with_special_;
    bool strip_space_;  // the next byte, if it is a space, is dropped
    std::string pending_;
};

// Reads tokenizer.json and, for the special tokens, tokenizer_config.json (may be empty). Texts, not paths.
Result<TokenizerSpec> parse_tokenizer_json(std::string_view tokenizer_json, std::string_view tokenizer_config_json,
                                           std::string_view where);

}  // namespace frontier

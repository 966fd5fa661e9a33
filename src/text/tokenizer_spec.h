// What a tokenizer is made of, independent of the file it came from. GGUF metadata gives a kind, pieces and the name of
// a pre-tokenizer; tokenizer.json gives the steps of its pipeline one by one.
#pragma once

#include <cstdint>
#include <optional>
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

// One step of the text's preparation before it is cut into words.
struct NormalizerStep {
    enum class Op : std::uint8_t {
        kNfc,
        kNfd,
        kNfkc,
        kNfkd,
        kLowercase,
        kStripAccents,    // drops combining marks
        kPrepend,         // `content` before non-empty text
        kReplace,         // every `pattern` by `content`
        kStrip,           // whitespace at the ends chosen by strip_left, strip_right
        kCollapseSpaces,  // SentencePiece's remove_extra_whitespaces: no spaces at the ends, one between words
    };
    Op op = Op::kNfc;
    std::string pattern;
    bool pattern_is_regex = false;
    std::string content;
    bool strip_left = false;
    bool strip_right = false;
};

enum class SplitBehavior : std::uint8_t { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

// One step of cutting text into words, inside which tokens are merged.
struct SplitStep {
    enum class Op : std::uint8_t {
        kRegex,        // matches of `pattern` are delimiters (words, if `invert`)
        kLiteral,      // the same for a fixed string
        kPrefixSpace,  // a space before each word that has none
        kByteLevel,    // the gpt-2 alphabet
        kMetaspace     // the space becomes `pattern`, perhaps one is put first; cut before each if `split`
    };
    enum class Prefix : std::uint8_t { kNever, kFirst, kAlways };
    Op op = Op::kRegex;
    std::string pattern;
    SplitBehavior behavior = SplitBehavior::kIsolated;
    bool invert = false;
    Prefix prefix = Prefix::kNever;
    bool split = true;
};

// How the bytes of a token follow from its piece, in order.
struct DecodeStep {
    enum class Op : std::uint8_t {
        kByteLevel,     // gpt-2 alphabet to bytes
        kByteFallback,  // <0x41> is one byte
        kReplace        // every `pattern` in the piece by `content`
    };
    Op op = Op::kByteLevel;
    std::string pattern;
    std::string content;
};

// A token that is found in the text before anything else happens to it.
struct AddedToken {
    TokenId id = 0;
    bool special = false;      // a control token: counts only where parse_special or trust allows it
    bool lstrip = false;       // swallows the whitespace before it
    bool rstrip = false;       // and after it
    bool single_word = false;  // not inside a word
    bool normalized = false;   // sought in the normalised text (only when not special)
};

struct TokenizerSpec {
    TokenizerKind kind = TokenizerKind::kByteLevelBpe;
    std::string where;                // file, for error texts
    std::vector<std::string> pieces;  // as stored: byte-level pieces in the gpt-2 alphabet, SPM with U+2581
    std::vector<float> scores;        // SentencePiece only
    std::vector<TokenType> types;     // empty: all normal
    std::vector<std::string> merges;  // "left right" in rank order
    // GGUF name: "gpt-2", "llama-bpe", "qwen2", ...; stands for split_steps where those are empty.
    std::string pre_tokenizer;
    std::optional<TokenId> bos, eos, unk, pad;
    // Besides eos. create() adds the well-known ones (<|eot_id|>, <|im_end|>, ...) that the vocabulary has.
    std::vector<TokenId> end_of_generation;
    bool add_bos = false;
    bool add_eos = false;
    bool add_space_prefix = false;
    bool remove_extra_whitespaces = false;
    bool ignore_merges = false;  // llama-3: a whole word that is a token is taken without merging

    // From tokenizer.json. From GGUF they stay empty and create() fills them as the kind wants.
    std::vector<AddedToken> added_tokens;
    std::vector<NormalizerStep> normalizer;
    std::vector<SplitStep> split_steps;
    std::vector<DecodeStep> decode_steps;
    bool byte_fallback = false;      // characters outside the vocabulary become <0xNN> tokens
    bool fuse_unknown = false;       // adjacent unknown characters give one unk
    bool strip_first_space = false;  // decode() drops one space at the start of the text
};

// Sets kind, pre_tokenizer and the flags that go with `tokenizer.ggml.model` and `tokenizer.ggml.pre` (may be empty);
// the file's own keys (add_bos_token, add_space_prefix, ...) are to be applied after it. Unknown names are kBadInput;
// spec.where names the file.
Status apply_gguf_pre_tokenizer(TokenizerSpec& spec, std::string_view model, std::string_view pre);

}  // namespace frontier

// Words to tokens: the part of a tokenizer that knows scores and merges. Immutable; scratch is the caller's.
#pragma once

#include <array>
#include <memory>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/merge.h"
#include "text/piece_index.h"
#include "text/tokenizer_spec.h"

namespace frontier {

class TokenModel {
public:
    virtual ~TokenModel() = default;
    // Appends the tokens of one word. `word` is at most kMaxWordBytes long; it need not be valid UTF-8.
    virtual void encode(std::string_view word, MergeScratch& scratch, std::vector<TokenId>& out) const = 0;
};

// Symbol offsets are 32 bits wide; longer words are cut.
inline constexpr std::size_t kMaxWordBytes = std::size_t{1} << 30;

// `ordinary` holds the pieces that text can become: not control, unknown or byte tokens, so that no text spells a
// control token; `all` holds every piece. The references outlive the model.
std::unique_ptr<TokenModel> make_sentencepiece_model(const TokenizerSpec& spec, const PieceIndex& ordinary);
// Checks the merges: each names two pieces of the vocabulary whose concatenation is a third.
Result<std::unique_ptr<TokenModel>> make_bpe_model(const TokenizerSpec& spec, const PieceIndex& ordinary,
                                                   const PieceIndex& all);

// The token of each byte, -1 where there is none: "<0xNN>" pieces, or the characters of the gpt-2 alphabet.
std::array<TokenId, 256> byte_tokens(const TokenizerSpec& spec, const PieceIndex& all);

}  // namespace frontier

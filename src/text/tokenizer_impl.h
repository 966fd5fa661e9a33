// The one implementation of Tokenizer: added tokens, normaliser, pre-tokeniser, token model, decoder.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/added_tokens.h"
#include "text/normalizer.h"
#include "text/pre_tokenizer.h"
#include "text/token_model.h"
#include "text/tokenizer.h"

namespace frontier {

class TokenizerImpl final : public Tokenizer {
public:
    explicit TokenizerImpl(TokenizerSpec spec) : spec_(std::move(spec)) {}
    Status init();

    Result<std::vector<TokenId>> encode(std::string_view text, const EncodeOptions& options) const override;
    Result<std::vector<TokenId>> encode_spans(std::span<const TextSpan> spans) const override;
    std::string token_bytes(TokenId id, bool with_special) const override;
    std::string decode(std::span<const TokenId> ids, bool with_special) const override;
    std::int32_t vocab_size() const override { return static_cast<std::int32_t>(spec_.pieces.size()); }
    const TokenizerSpec& spec() const override { return spec_; }
    std::optional<TokenId> find(std::string_view piece) const override;
    bool is_control(TokenId id) const override;
    bool ends_generation(TokenId id) const override;

private:
    // What one encode() call works with.
    struct Work {
        std::vector<TokenId> ids;
        MergeScratch merge;
        Words words;
    };

    Status check_spec() const;
    void fill_defaults();
    bool in_normalized_text(const AddedToken& token) const;
    Result<std::string> normalized_content(const AddedToken& token) const;
    Status build_bytes();
    TokenType type(TokenId id) const;

    Status encode_marked(std::string_view text, std::span<const TrustedRange> trusted, Work& work) const;
    Status encode_fragment(std::string_view text, bool first_in_text, Work& work) const;
    Status encode_valid(std::string_view text, bool first_in_fragment, bool first_in_text, Work& work) const;
    Status encode_words(std::string_view text, bool first_in_text, Work& work) const;
    void encode_word(std::string_view word, Work& work) const;
    void encode_invalid(std::string_view bytes, Work& work) const;

    TokenizerSpec spec_;
    PieceIndex all_;
    PieceIndex ordinary_;  // what running text can become
    AddedTokenMatcher added_;
    AddedTokenMatcher normalized_added_;
    Normalizer normalizer_;
    PreTokenizer pre_tokenizer_;
    std::unique_ptr<TokenModel> model_;
    std::array<TokenId, 256> byte_ids_{};
    std::vector<std::string> bytes_;  // by id: what the token stands for in running text
};

}  // namespace frontier

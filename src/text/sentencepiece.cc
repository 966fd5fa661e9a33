// SentencePiece's BPE: neighbours whose concatenation is a piece are joined, highest score first, leftmost among equals
// (https://github.com/google/sentencepiece, src/bpe_model.cc); what is no piece at the end is written as bytes.
#include <algorithm>
#include <unordered_map>

#include "text/pair_filter.h"
#include "text/token_model.h"
#include "text/unicode.h"

namespace frontier {
namespace {

class SentencePieceModel : public TokenModel {
public:
    SentencePieceModel(const TokenizerSpec& spec, const PieceIndex& ordinary)
        : ordinary_(ordinary), unk_(spec.unk.value_or(-1)), types_(spec.types) {
        std::vector<float> distinct = spec.scores;
        std::sort(distinct.begin(), distinct.end(), std::greater<>());
        distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
        ranks_.reserve(spec.scores.size());
        for (const float score : spec.scores) {
            const auto at = std::lower_bound(distinct.begin(), distinct.end(), score, std::greater<>());
            ranks_.push_back(static_cast<std::int32_t>(at - distinct.begin()));
        }
        for (std::size_t id = 0; id < spec.pieces.size(); ++id) {
            const TokenType type = spec.types.empty() ? TokenType::kNormal : spec.types[id];
            if (type == TokenType::kByte) {
                if (const int byte = byte_fallback_value(spec.pieces[id]); byte >= 0)
                    bytes_[static_cast<std::size_t>(byte)] = static_cast<TokenId>(id);
                continue;
            }
            if (type == TokenType::kUnused) has_unused_ = true;
            filter_.add_piece(spec.pieces[id]);
        }
    }

    void encode(std::string_view word, MergeScratch& scratch, std::vector<TokenId>& out) const override {
        std::size_t at = 0;
        while (at < word.size()) {
            // One stretch that no merge can cross on either side.
            scratch.symbols.clear();
            const std::size_t begin = at;
            char32_t previous = 0;
            while (at < word.size()) {
                const Utf8Char c = next_utf8(word.substr(at));
                const char32_t code = c.valid ? c.code : PairFilter::kInvalid;
                if (at > begin && !filter_.may_join(previous, code)) break;
                previous = code;
                const auto size = static_cast<std::uint32_t>(c.size_bytes);
                scratch.symbols.push_back({static_cast<std::uint32_t>(at - begin), size, -1, -1, -1});
                at += size;
            }
            encode_stretch(word.substr(begin, at - begin), scratch, out);
        }
    }

private:
    using Splits = std::unordered_map<TokenId, std::uint32_t>;  // unused piece -> bytes of its left part

    void encode_stretch(std::string_view text, MergeScratch& scratch, std::vector<TokenId>& out) const {
        Splits splits;
        merge_symbols(scratch, [&](const MergeSymbol& left, const MergeSymbol& right) -> MergeCandidate {
            const TokenId id = ordinary_.find(text.substr(left.begin, left.size + right.size));
            if (id < 0) return {};
            if (has_unused_ && type(id) == TokenType::kUnused) splits[id] = left.size;
            return {ranks_[static_cast<std::size_t>(id)], id};
        });
        for (const MergeSymbol& symbol : scratch.symbols) {
            if (symbol.size == 0) continue;
            const TokenId id = symbol.id >= 0 ? symbol.id : ordinary_.find(text.substr(symbol.begin, symbol.size));
            emit(id, text.substr(symbol.begin, symbol.size), splits, out);
        }
    }

    void emit(TokenId id, std::string_view text, const Splits& splits, std::vector<TokenId>& out) const {
        if (id >= 0 && has_unused_ && type(id) == TokenType::kUnused) {
            // Unused pieces only help to build others; they are taken apart again. Each part is shorter, so this ends.
            if (const auto split = splits.find(id); split != splits.end()) {
                const std::string_view left = text.substr(0, split->second), right = text.substr(split->second);
                emit(ordinary_.find(left), left, splits, out);
                emit(ordinary_.find(right), right, splits, out);
                return;
            }
        }
        if (id >= 0) {
            out.push_back(id);
            return;
        }
        for (const char c : text) {
            const TokenId byte = bytes_[static_cast<unsigned char>(c)];
            if (byte < 0) {
                if (unk_ >= 0) out.push_back(unk_);  // one for the whole character
                return;
            }
            out.push_back(byte);
        }
    }

    TokenType type(TokenId id) const {
        return types_.empty() ? TokenType::kNormal : types_[static_cast<std::size_t>(id)];
    }

    const PieceIndex& ordinary_;
    TokenId unk_;
    const std::vector<TokenType>& types_;
    std::vector<std::int32_t> ranks_;  // by id; equal scores have equal ranks
    std::array<TokenId, 256> bytes_ = [] {
        std::array<TokenId, 256> none{};
        none.fill(-1);
        return none;
    }();
    bool has_unused_ = false;
    PairFilter filter_;
};

}  // namespace

std::unique_ptr<TokenModel> make_sentencepiece_model(const TokenizerSpec& spec, const PieceIndex& ordinary) {
    return std::make_unique<SentencePieceModel>(spec, ordinary);
}

}  // namespace frontier

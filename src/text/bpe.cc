// Byte-pair encoding with ranked merges, over bytes in the gpt-2 alphabet or over characters with byte fallback.
#include <algorithm>

#include "text/pair_filter.h"
#include "text/token_model.h"
#include "text/unicode.h"

namespace frontier {
namespace {

struct MergeIds {
    TokenId left = -1, right = -1, merged = -1;
    std::string unknown;  // the piece that is not in the vocabulary
};

// "left right". Pieces may hold spaces themselves (but the first character is never the separator): the first space
// that leaves two known pieces counts.
std::optional<MergeIds> find_merge(std::string_view merge, const PieceIndex& all, std::string& joined) {
    std::optional<MergeIds> failed;
    for (std::size_t space = merge.find(' ', 1); space != std::string_view::npos && space + 1 < merge.size();
         space = merge.find(' ', space + 1)) {
        const std::string_view left = merge.substr(0, space), right = merge.substr(space + 1);
        joined.assign(left).append(right);
        MergeIds ids{all.find(left), all.find(right), all.find(joined), {}};
        if (ids.left >= 0 && ids.right >= 0 && ids.merged >= 0) return ids;
        if (failed) continue;
        ids.unknown = ids.left < 0 ? left : ids.right < 0 ? right : std::string_view(joined);
        failed = std::move(ids);
    }
    return failed;
}

Result<MergeTable> read_merges(const TokenizerSpec& spec, const PieceIndex& all, bool& merges_bytes) {
    MergeTable table(spec.merges.size());
    const auto is_control = [&](TokenId id) {
        if (spec.types.empty()) return false;
        const TokenType type = spec.types[static_cast<std::size_t>(id)];
        return type == TokenType::kControl || type == TokenType::kUnknown;
    };
    const auto is_byte = [&](TokenId id) {
        return byte_fallback_value(spec.pieces[static_cast<std::size_t>(id)]) >= 0;
    };
    std::string joined;
    for (std::size_t rank = 0; rank < spec.merges.size(); ++rank) {
        const auto ids = find_merge(spec.merges[rank], all, joined);
        if (!ids)
            return bad_input("{}: merges: entry {} ('{}') is not two pieces separated by a space", spec.where, rank,
                             spec.merges[rank]);
        if (!ids->unknown.empty())
            return bad_input("{}: merges: entry {} ('{}'): '{}' is not in the vocabulary", spec.where, rank,
                             spec.merges[rank], ids->unknown);
        // No text may turn into a control token.
        if (is_control(ids->left) || is_control(ids->right) || is_control(ids->merged)) continue;
        if (is_byte(ids->left) || is_byte(ids->right)) merges_bytes = true;
        table.insert(ids->left, ids->right, {static_cast<std::int32_t>(rank), ids->merged});
    }
    return table;
}

class BpeModel : public TokenModel {
public:
    BpeModel(const TokenizerSpec& spec, const PieceIndex& ordinary, const PieceIndex& all, MergeTable merges,
             bool merges_bytes)
        : ordinary_(ordinary),
          merges_(std::move(merges)),
          bytes_(byte_tokens(spec, all)),
          byte_level_(spec.kind == TokenizerKind::kByteLevelBpe),
          ignore_merges_(spec.ignore_merges),
          byte_fallback_(spec.byte_fallback),
          fuse_unknown_(spec.fuse_unknown),
          unk_(spec.unk.value_or(-1)) {
        if (byte_level_ || merges_bytes) return;
        filter_.emplace();
        for (const std::string& piece : spec.pieces) filter_->add_piece(piece);
    }

    void encode(std::string_view word, MergeScratch& scratch, std::vector<TokenId>& out) const override {
        if (ignore_merges_) {
            TokenId whole = -1;
            // A mapped word is at least as long as the word, so longer ones cannot be pieces.
            if (!byte_level_) {
                whole = ordinary_.find(word);
            } else if (word.size() <= ordinary_.max_bytes()) {
                std::string mapped;
                append_byte_level(mapped, word);
                whole = ordinary_.find(mapped);
            }
            if (whole >= 0) {
                out.push_back(whole);
                return;
            }
        }
        if (byte_level_)
            encode_bytes(word, scratch, out);
        else
            encode_characters(word, scratch, out);
    }

private:
    void encode_bytes(std::string_view word, MergeScratch& scratch, std::vector<TokenId>& out) const {
        scratch.symbols.clear();
        for (std::size_t i = 0; i < word.size(); ++i) {
            TokenId id = bytes_[static_cast<unsigned char>(word[i])];
            if (id < 0) id = unk_;
            if (id < 0) continue;  // the vocabulary has no way to write this byte
            scratch.symbols.push_back({static_cast<std::uint32_t>(i), 1, -1, -1, id});
        }
        merge(scratch, out);
    }

    void encode_characters(std::string_view word, MergeScratch& scratch, std::vector<TokenId>& out) const {
        std::size_t at = 0;
        bool after_unknown = false;
        while (at < word.size()) {
            scratch.symbols.clear();
            const std::size_t begin = at;
            char32_t previous = 0;
            while (at < word.size()) {
                const Utf8Char c = next_utf8(word.substr(at));
                const char32_t code = c.valid ? c.code : PairFilter::kInvalid;
                if (at > begin && filter_ && !filter_->may_join(previous, code)) break;
                previous = code;
                add_character(word.substr(at, static_cast<std::size_t>(c.size_bytes)), at - begin, after_unknown,
                              scratch);
                at += static_cast<std::size_t>(c.size_bytes);
            }
            merge(scratch, out);
        }
    }

    void add_character(std::string_view character, std::size_t offset, bool& after_unknown,
                       MergeScratch& scratch) const {
        const auto add = [&](std::size_t begin, std::size_t size, TokenId id) {
            scratch.symbols.push_back(
                {static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(size), -1, -1, id});
        };
        const bool was_unknown = std::exchange(after_unknown, false);
        if (const TokenId id = ordinary_.find(character); id >= 0) return add(offset, character.size(), id);
        if (byte_fallback_ && std::all_of(character.begin(), character.end(),
                                          [&](char c) { return bytes_[static_cast<unsigned char>(c)] >= 0; })) {
            for (std::size_t i = 0; i < character.size(); ++i)
                add(offset + i, 1, bytes_[static_cast<unsigned char>(character[i])]);
            return;
        }
        if (unk_ < 0) return;
        after_unknown = true;
        if (!(fuse_unknown_ && was_unknown)) add(offset, character.size(), unk_);
    }

    void merge(MergeScratch& scratch, std::vector<TokenId>& out) const {
        if (scratch.symbols.size() > 1) {
            merge_symbols(scratch, [&](const MergeSymbol& left, const MergeSymbol& right) -> MergeCandidate {
                const MergeTable::Entry entry = merges_.find(left.id, right.id);
                return {entry.rank, entry.merged};
            });
        }
        for (const MergeSymbol& symbol : scratch.symbols)
            if (symbol.size != 0) out.push_back(symbol.id);
    }

    const PieceIndex& ordinary_;
    MergeTable merges_;
    std::array<TokenId, 256> bytes_;
    bool byte_level_;
    bool ignore_merges_;
    bool byte_fallback_;
    bool fuse_unknown_;
    TokenId unk_;
    std::optional<PairFilter> filter_;
};

}  // namespace

std::array<TokenId, 256> byte_tokens(const TokenizerSpec& spec, const PieceIndex& all) {
    std::array<TokenId, 256> result{};
    for (std::size_t byte = 0; byte < 256; ++byte) {
        std::string piece;
        if (spec.kind == TokenizerKind::kByteLevelBpe)
            append_utf8(piece, byte_to_char()[byte]);
        else
            piece = fmt::format("<0x{:02X}>", byte);
        result[byte] = all.find(piece);
        // An added token such as "\u00FB" stands for that character. It is not the vocabulary's byte FB, although it is
        // written like it (DeepSeek's have such tokens for bytes that UTF-8 never uses).
        if (result[byte] >= 0 && byte >= 0x80 && !spec.types.empty() &&
            spec.types[static_cast<std::size_t>(result[byte])] == TokenType::kUserDefined)
            result[byte] = -1;
    }
    return result;
}

Result<std::unique_ptr<TokenModel>> make_bpe_model(const TokenizerSpec& spec, const PieceIndex& ordinary,
                                                   const PieceIndex& all) {
    bool merges_bytes = false;
    FR_ASSIGN(MergeTable merges, read_merges(spec, all, merges_bytes));
    return std::make_unique<BpeModel>(spec, ordinary, all, std::move(merges), merges_bytes);
}

}  // namespace frontier

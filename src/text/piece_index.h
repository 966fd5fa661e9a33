// Hash tables of the tokenizer: pieces to ids, and pairs of ids to their merge. Open addressing, at most half full,
// built once and read by all threads.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "base/rng.h"
#include "base/types.h"

namespace frontier {

inline std::uint64_t hash_bytes(std::string_view text) {
    std::uint64_t hash = 0x9E3779B97F4A7C15ULL ^ text.size();
    std::size_t at = 0;
    for (; at + 8 <= text.size(); at += 8) {
        std::uint64_t word;
        std::memcpy(&word, text.data() + at, 8);
        hash = (std::rotl(hash, 23) ^ word) * 0x9FB21C651E98DF25ULL;
    }
    std::uint64_t tail = 0;
    if (at < text.size()) std::memcpy(&tail, text.data() + at, text.size() - at);
    return mix64(hash ^ tail);
}

// The pieces are not copied: `pieces` outlives the index and does not change.
class PieceIndex {
public:
    void reset(const std::vector<std::string>* pieces, std::size_t expected) {
        pieces_ = pieces;
        slots_.assign(std::bit_ceil(expected * 2 + 2), Slot{});
        count_ = 0;
        max_bytes_ = 0;
    }
    // False when the piece is there already (the first id stays). At most `expected` insertions.
    bool insert(TokenId id) {
        const std::string& piece = (*pieces_)[static_cast<std::size_t>(id)];
        const std::uint64_t hash = hash_bytes(piece);
        Slot& slot = slots_[locate(piece, hash)];
        if (slot.id >= 0) return false;
        slot = {static_cast<std::uint32_t>(hash >> 32), id};
        ++count_;
        if (piece.size() > max_bytes_) max_bytes_ = piece.size();
        return true;
    }
    // -1 when absent.
    TokenId find(std::string_view piece) const {
        if (piece.size() > max_bytes_ || count_ == 0) return -1;
        return slots_[locate(piece, hash_bytes(piece))].id;
    }
    std::size_t max_bytes() const { return max_bytes_; }
    std::size_t size() const { return count_; }

private:
    struct Slot {
        std::uint32_t tag = 0;
        TokenId id = -1;
    };
    std::size_t locate(std::string_view piece, std::uint64_t hash) const {
        const std::size_t mask = slots_.size() - 1;
        const auto tag = static_cast<std::uint32_t>(hash >> 32);
        std::size_t at = hash & mask;
        while (slots_[at].id >= 0) {
            if (slots_[at].tag == tag && (*pieces_)[static_cast<std::size_t>(slots_[at].id)] == piece) break;
            at = (at + 1) & mask;
        }
        return at;
    }
    const std::vector<std::string>* pieces_ = nullptr;
    std::vector<Slot> slots_;
    std::size_t count_ = 0;
    std::size_t max_bytes_ = 0;
};

// (left id, right id) -> (rank, merged id).
class MergeTable {
public:
    struct Entry {
        std::int32_t rank = -1;  // -1: no such merge
        TokenId merged = -1;
    };
    explicit MergeTable(std::size_t expected = 0) : slots_(std::bit_ceil(expected * 2 + 2)) {}
    // Keeps the first, better ranked, of two entries for one pair.
    void insert(TokenId left, TokenId right, Entry entry) {
        Slot& slot = slots_[locate(key(left, right))];
        if (slot.entry.rank < 0) slot = {key(left, right), entry};
    }
    Entry find(TokenId left, TokenId right) const { return slots_[locate(key(left, right))].entry; }

private:
    struct Slot {
        std::uint64_t key = 0;
        Entry entry;
    };
    static std::uint64_t key(TokenId left, TokenId right) {
        return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 | static_cast<std::uint32_t>(right);
    }
    std::size_t locate(std::uint64_t wanted) const {
        const std::size_t mask = slots_.size() - 1;
        std::size_t at = mix64(wanted) & mask;
        while (slots_[at].entry.rank >= 0 && slots_[at].key != wanted) at = (at + 1) & mask;
        return at;
    }
    std::vector<Slot> slots_;
};

}  // namespace frontier

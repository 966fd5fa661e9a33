// The merging loop shared by SentencePiece and BPE: adjacent symbols are joined, best rank first and leftmost among
// equals, until no pair can be. O(n log n) for n symbols.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/types.h"

namespace frontier {

struct MergeSymbol {
    std::uint32_t begin = 0;  // bytes of the word
    std::uint32_t size = 0;   // 0: merged into its left neighbour
    std::int32_t previous = -1;
    std::int32_t next = -1;
    TokenId id = -1;  // -1: no token
};

struct MergeCandidate {
    std::int32_t rank = -1;  // lower first; negative: the pair does not merge
    TokenId merged = -1;
};

// Buffers that live from word to word.
struct MergeScratch {
    struct Entry {
        std::int32_t rank;
        std::int32_t left;
        std::uint32_t size;  // of the joined symbol; a pair that has changed since has another
        TokenId merged;
    };
    std::vector<MergeSymbol> symbols;
    std::vector<Entry> heap;
};

// `find(left, right)` gives the candidate for two adjacent symbols. They are linked in order here; on return those of
// size 0 are gone. Symbols only grow, so a queued pair is still what it was if its joint size is.
template <typename Find>
void merge_symbols(MergeScratch& scratch, const Find& find) {
    auto& symbols = scratch.symbols;
    auto& heap = scratch.heap;
    const auto count = static_cast<std::int32_t>(symbols.size());
    const auto worse = [](const MergeScratch::Entry& a, const MergeScratch::Entry& b) {
        return a.rank != b.rank ? a.rank > b.rank : a.left > b.left;
    };
    heap.clear();
    const auto consider = [&](std::int32_t left, std::int32_t right) {
        if (left < 0 || right < 0) return false;
        const MergeSymbol& a = symbols[static_cast<std::size_t>(left)];
        const MergeSymbol& b = symbols[static_cast<std::size_t>(right)];
        const MergeCandidate candidate = find(a, b);
        if (candidate.rank < 0) return false;
        heap.push_back({candidate.rank, left, a.size + b.size, candidate.merged});
        return true;
    };
    for (std::int32_t i = 0; i < count; ++i) {
        symbols[static_cast<std::size_t>(i)].previous = i - 1;
        symbols[static_cast<std::size_t>(i)].next = i + 1 < count ? i + 1 : -1;
    }
    for (std::int32_t i = 0; i + 1 < count; ++i) consider(i, i + 1);
    std::make_heap(heap.begin(), heap.end(), worse);
    while (!heap.empty()) {
        const MergeScratch::Entry best = heap.front();
        std::pop_heap(heap.begin(), heap.end(), worse);
        heap.pop_back();
        MergeSymbol& left = symbols[static_cast<std::size_t>(best.left)];
        if (left.size == 0 || left.next < 0) continue;
        MergeSymbol& right = symbols[static_cast<std::size_t>(left.next)];
        if (left.size + right.size != best.size) continue;
        left.size = best.size;
        left.id = best.merged;
        left.next = right.next;
        right.size = 0;
        if (left.next >= 0) symbols[static_cast<std::size_t>(left.next)].previous = best.left;
        if (consider(left.previous, best.left)) std::push_heap(heap.begin(), heap.end(), worse);
        if (consider(best.left, left.next)) std::push_heap(heap.begin(), heap.end(), worse);
    }
}

}  // namespace frontier

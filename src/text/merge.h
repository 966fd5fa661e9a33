// The merging loop shared by SentencePiece and BPE: adjacent symbols are joined, best rank first and leftmost among
// equals, until no pair can be. O(n log n) for n symbols at worst.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <queue>
#include <unordered_map>
#include <utility>
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
        // The order of the queue, worst first.
        friend bool operator<(const Entry& a, const Entry& b) {
            return a.rank != b.rank ? a.rank > b.rank : a.left > b.left;
        }
    };
    std::vector<MergeSymbol> symbols;
    std::vector<Entry> heap;
};

namespace merge_detail {

// The linked symbols of one word. `find(left, right)` gives the candidate for two adjacent symbols.
template <typename Find>
class Chain {
public:
    Chain(std::vector<MergeSymbol>& symbols, const Find& find) : symbols_(symbols), find_(find) {
        const auto count = static_cast<std::int32_t>(symbols.size());
        for (std::int32_t i = 0; i < count; ++i) {
            at(i).previous = i - 1;
            at(i).next = i + 1 < count ? i + 1 : -1;
        }
    }
    // Calls `add(entry)` if the symbol at `left` merges with its right neighbour.
    template <typename Add>
    void consider(std::int32_t left, const Add& add) const {
        if (left < 0 || at(left).next < 0) return;
        const MergeSymbol& a = at(left);
        const MergeSymbol& b = at(a.next);
        const MergeCandidate candidate = find_(a, b);
        if (candidate.rank >= 0) add(MergeScratch::Entry{candidate.rank, left, a.size + b.size, candidate.merged});
    }
    // Merges the pair unless it has changed since. Symbols only grow, so it is what it was if its joint size is.
    template <typename Add>
    void merge(const MergeScratch::Entry& entry, const Add& add) {
        MergeSymbol& left = at(entry.left);
        if (left.size == 0 || left.next < 0) return;
        MergeSymbol& right = at(left.next);
        if (left.size + right.size != entry.size) return;
        left.size = entry.size;
        left.id = entry.merged;
        left.next = right.next;
        right.size = 0;
        if (left.next >= 0) at(left.next).previous = entry.left;
        consider(left.previous, add);
        consider(entry.left, add);
    }

private:
    MergeSymbol& at(std::int32_t index) const { return symbols_[static_cast<std::size_t>(index)]; }
    std::vector<MergeSymbol>& symbols_;
    const Find& find_;
};

// For words up to some thousand symbols: one queue.
template <typename Find>
void merge_with_heap(MergeScratch& scratch, const Find& find) {
    auto& heap = scratch.heap;
    Chain<Find> chain(scratch.symbols, find);
    heap.clear();
    for (std::size_t i = 0; i < scratch.symbols.size(); ++i)
        chain.consider(static_cast<std::int32_t>(i), [&](const auto& entry) { heap.push_back(entry); });
    std::make_heap(heap.begin(), heap.end());
    while (!heap.empty()) {
        const MergeScratch::Entry best = heap.front();
        std::pop_heap(heap.begin(), heap.end());
        heap.pop_back();
        chain.merge(best, [&](const auto& entry) {
            heap.push_back(entry);
            std::push_heap(heap.begin(), heap.end());
        });
    }
}

// For long words a queue of all pairs no longer fits the caches. The same order comes from a list of places for each
// rank, worked off from left to right, and a queue of the ranks alone.
template <typename Find>
void merge_by_rank(MergeScratch& scratch, const Find& find) {
    using Entry = MergeScratch::Entry;
    Chain<Find> chain(scratch.symbols, find);
    std::unordered_map<std::int32_t, std::vector<Entry>> places;
    std::priority_queue<std::int32_t, std::vector<std::int32_t>, std::greater<>> ranks;
    const auto queue = [&](const Entry& entry) {
        std::vector<Entry>& list = places[entry.rank];
        if (list.empty()) ranks.push(entry.rank);
        list.push_back(entry);
    };
    for (std::size_t i = 0; i < scratch.symbols.size(); ++i) chain.consider(static_cast<std::int32_t>(i), queue);
    auto& same_rank = scratch.heap;  // pairs of the current rank that arise while it is worked off
    while (!ranks.empty()) {
        const std::int32_t rank = ranks.top();
        ranks.pop();
        std::vector<Entry> list = std::move(places[rank]);
        places.erase(rank);
        const auto further_left = [](const Entry& a, const Entry& b) { return a.left < b.left; };
        if (!std::is_sorted(list.begin(), list.end(), further_left)) std::sort(list.begin(), list.end(), further_left);
        same_rank.clear();
        bool better_arose = false;
        const auto add = [&](const Entry& entry) {
            if (entry.rank == rank) {
                same_rank.push_back(entry);
                std::push_heap(same_rank.begin(), same_rank.end());
            } else {
                better_arose |= entry.rank < rank;
                queue(entry);
            }
        };
        std::size_t at = 0;
        while (!better_arose && (at < list.size() || !same_rank.empty())) {
            if (same_rank.empty() || (at < list.size() && list[at].left <= same_rank.front().left)) {
                chain.merge(list[at++], add);
            } else {
                const Entry next = same_rank.front();
                std::pop_heap(same_rank.begin(), same_rank.end());
                same_rank.pop_back();
                chain.merge(next, add);
            }
        }
        // A better pair goes first; what is left of this rank waits.
        for (; at < list.size(); ++at) queue(list[at]);
        for (const Entry& entry : same_rank) queue(entry);
    }
}

}  // namespace merge_detail

// Above this many symbols the queue of pairs (16 bytes each) leaves the L2 cache of common machines.
inline constexpr std::size_t kLongWordSymbols = 16384;

// Merges scratch.symbols, whose begin, size and id are set; on return those of size 0 are gone.
template <typename Find>
void merge_symbols(MergeScratch& scratch, const Find& find) {
    if (scratch.symbols.size() < kLongWordSymbols)
        merge_detail::merge_with_heap(scratch, find);
    else
        merge_detail::merge_by_rank(scratch, find);
}

}  // namespace frontier

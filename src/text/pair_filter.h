// Which characters ever stand side by side inside a piece. Where two neighbours of a text never do, no merge can cross
// the place, so a long text falls into independent stretches and the merge queue stays small. A Bloom filter with one
// hash: a false positive costs time, never correctness.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/rng.h"
#include "text/unicode.h"

namespace frontier {

class PairFilter {
public:
    void add_piece(std::string_view piece) {
        char32_t previous = 0;
        for (bool first = true; !piece.empty(); first = false) {
            const Utf8Char c = next_utf8(piece);
            const char32_t code = c.valid ? c.code : kInvalid;
            if (!first) words_[slot(previous, code) / 64] |= std::uint64_t{1} << (slot(previous, code) % 64);
            previous = code;
            piece.remove_prefix(static_cast<std::size_t>(c.size_bytes));
        }
    }
    bool may_join(char32_t left, char32_t right) const {
        return (words_[slot(left, right) / 64] >> (slot(left, right) % 64) & 1) != 0;
    }
    static constexpr char32_t kInvalid = 0x110000;

private:
    static constexpr std::size_t kBits = std::size_t{1} << 20;  // 128 KB: stays in L2, 150k pieces fill about a tenth
    static std::size_t slot(char32_t left, char32_t right) { return mix64(std::uint64_t{left} << 32 | right) % kBits; }
    std::vector<std::uint64_t> words_ = std::vector<std::uint64_t>(kBits / 64);
};

}  // namespace frontier

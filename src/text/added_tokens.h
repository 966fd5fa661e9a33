// Finds added tokens (control tokens, user-defined ones) in a text.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer_spec.h"

namespace frontier {

// Stretches of a text in which control tokens count: half-open, ascending, not touching.
struct TrustedRange {
    std::size_t begin = 0;
    std::size_t end = 0;
};

class AddedTokenMatcher {
public:
    // `content` is what to look for, seldom empty (then it is ignored). The first of two equal contents wins.
    void add(std::string_view content, const AddedToken& token);
    bool empty() const { return nodes_.empty(); }

    struct Match {
        std::size_t begin = 0;  // with the whitespace that lstrip and rstrip swallow
        std::size_t end = 0;
        TokenId id = 0;
    };
    // The leftmost, then longest, permitted match that begins at or after `from`. `trusted` is advanced as the scan
    // passes its ranges, so successive calls cost one pass over the text.
    std::optional<Match> find(std::string_view text, std::size_t from, std::span<const TrustedRange>& trusted) const;

private:
    struct Node {
        std::vector<std::pair<unsigned char, std::uint32_t>> children;
        std::int32_t token = -1;  // index into tokens_
    };
    std::uint32_t child(std::uint32_t node, unsigned char byte) const;
    std::vector<Node> nodes_;
    std::array<std::uint32_t, 256> roots_{};  // first byte -> node, 0 = none
    std::vector<AddedToken> tokens_;
};

}  // namespace frontier

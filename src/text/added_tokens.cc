#include "text/added_tokens.h"

#include "text/unicode.h"

namespace frontier {
namespace {

// The character that ends at `at`, or nothing at the start of the text or behind invalid bytes.
std::optional<Utf8Char> previous_char(std::string_view text, std::size_t at) {
    for (std::size_t size = 1; size <= 4 && size <= at; ++size) {
        const Utf8Char c = next_utf8(text.substr(at - size, size));
        if (c.valid && static_cast<std::size_t>(c.size_bytes) == size) return c;
    }
    return std::nullopt;
}

bool word_before(std::string_view text, std::size_t at) {
    const auto c = previous_char(text, at);
    return c && is_word_char(c->code);
}

bool word_after(std::string_view text, std::size_t at) {
    if (at >= text.size()) return false;
    const Utf8Char c = next_utf8(text.substr(at));
    return c.valid && is_word_char(c.code);
}

std::size_t skip_space_back(std::string_view text, std::size_t at, std::size_t limit) {
    while (at > limit) {
        const auto c = previous_char(text, at);
        if (!c || !is_unicode_space(c->code) || at - static_cast<std::size_t>(c->size_bytes) < limit) break;
        at -= static_cast<std::size_t>(c->size_bytes);
    }
    return at;
}

std::size_t skip_space(std::string_view text, std::size_t at) {
    while (at < text.size()) {
        const Utf8Char c = next_utf8(text.substr(at));
        if (!c.valid || !is_unicode_space(c.code)) break;
        at += static_cast<std::size_t>(c.size_bytes);
    }
    return at;
}

}  // namespace

std::uint32_t AddedTokenMatcher::child(std::uint32_t node, unsigned char byte) const {
    for (const auto& [key, next] : nodes_[node].children)
        if (key == byte) return next;
    return 0;
}

void AddedTokenMatcher::add(std::string_view content, const AddedToken& token) {
    if (content.empty()) return;
    if (nodes_.empty()) nodes_.emplace_back();  // index 0 means none
    const auto grow = [&] {
        nodes_.emplace_back();
        return static_cast<std::uint32_t>(nodes_.size() - 1);
    };
    std::uint32_t& root = roots_[static_cast<unsigned char>(content[0])];
    if (root == 0) root = grow();
    std::uint32_t node = root;
    for (const char c : content.substr(1)) {
        const auto byte = static_cast<unsigned char>(c);
        std::uint32_t next = child(node, byte);
        if (next == 0) {
            next = grow();
            nodes_[node].children.emplace_back(byte, next);
        }
        node = next;
    }
    if (nodes_[node].token >= 0) return;
    nodes_[node].token = static_cast<std::int32_t>(tokens_.size());
    tokens_.push_back(token);
}

std::optional<AddedTokenMatcher::Match> AddedTokenMatcher::find(std::string_view text, std::size_t from,
                                                                std::span<const TrustedRange>& trusted) const {
    if (nodes_.empty()) return std::nullopt;
    for (std::size_t begin = from; begin < text.size(); ++begin) {
        std::uint32_t node = roots_[static_cast<unsigned char>(text[begin])];
        if (node == 0) continue;
        while (!trusted.empty() && trusted.front().end <= begin) trusted = trusted.subspan(1);
        const std::size_t special_end = !trusted.empty() && trusted.front().begin <= begin ? trusted.front().end : 0;
        const AddedToken* best = nullptr;
        std::size_t best_end = 0;
        for (std::size_t end = begin + 1; node != 0; ++end) {
            if (nodes_[node].token >= 0) {
                const AddedToken& token = tokens_[static_cast<std::size_t>(nodes_[node].token)];
                if (!token.special || end <= special_end) {
                    best = &token;
                    best_end = end;
                }
            }
            if (end >= text.size()) break;
            node = child(node, static_cast<unsigned char>(text[end]));
        }
        if (best == nullptr) continue;
        if (best->single_word && (word_before(text, begin) || word_after(text, best_end))) {
            begin = best_end - 1;  // as the reference: the place is passed over
            continue;
        }
        return Match{best->lstrip ? skip_space_back(text, begin, from) : begin,
                     best->rstrip ? skip_space(text, best_end) : best_end, best->id};
    }
    return std::nullopt;
}

}  // namespace frontier

// Strings that remember which of their bytes came from the caller, and the Unicode helpers that Python's str needs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace frontier::jinja {

// Bytes plus the half-open ranges of them that are untrusted: ascending, disjoint, never touching one another.
class Text {
public:
    struct Range {
        std::size_t begin = 0;
        std::size_t end = 0;
    };

    Text() = default;
    explicit Text(std::string bytes, bool untrusted = false);

    const std::string& bytes() const { return bytes_; }
    const std::vector<Range>& untrusted() const { return untrusted_; }
    std::size_t size() const { return bytes_.size(); }
    bool empty() const { return bytes_.empty(); }
    bool any_untrusted() const { return !untrusted_.empty(); }
    bool is_untrusted_at(std::size_t position) const;
    // What the memory budget is charged for this text.
    std::size_t cost_bytes() const { return bytes_.size() + untrusted_.size() * sizeof(Range); }

    void append(const Text& other);
    void append(std::string_view bytes, bool untrusted);
    void append_slice(const Text& other, std::size_t begin, std::size_t end);
    Text slice(std::size_t begin, std::size_t end) const;
    bool any_untrusted_in(std::size_t begin, std::size_t end) const;
    // For results whose bytes cannot be traced one by one.
    void distrust() {
        untrusted_.clear();
        add_range(0, bytes_.size());
    }

private:
    void add_range(std::size_t begin, std::size_t end);

    std::string bytes_;
    std::vector<Range> untrusted_;
};

// Calls of is_untrusted_at with ascending positions, in constant amortised time.
class TaintCursor {
public:
    explicit TaintCursor(const Text& text) : ranges_(text.untrusted()) {}
    bool at(std::size_t position) {
        while (next_ < ranges_.size() && ranges_[next_].end <= position) ++next_;
        return next_ < ranges_.size() && ranges_[next_].begin <= position;
    }

private:
    const std::vector<Text::Range>& ranges_;
    std::size_t next_ = 0;
};

// One character: a well-formed UTF-8 sequence, or a single byte that belongs to none (then `code` is negative).
struct Character {
    std::int32_t code = -1;
    std::size_t size_bytes = 1;
};
Character character_at(std::string_view bytes, std::size_t position);
std::size_t count_characters(std::string_view bytes);
// Byte offset of the index-th character; the size for any index past the end.
std::size_t offset_of_character(std::string_view bytes, std::size_t index);
void append_utf8(std::string& out, std::int32_t code);

// str.isspace of Python 3.11, which is also what \s matches in its regular expressions.
bool is_space(std::int32_t code);
// Byte bounds after removing white space at the chosen ends.
std::size_t skip_space(std::string_view bytes, std::size_t begin);
std::size_t trim_space_end(std::string_view bytes, std::size_t begin, std::size_t end);

// First occurrence at or after `from`, std::string::npos if none. Linear time whatever the needle is.
std::size_t find_bytes(std::string_view haystack, std::string_view needle, std::size_t from);

enum class CaseMapping : std::uint8_t { kUpper, kLower, kTitle };
// Full mapping of one character, as str.upper(), lower() and title() apply it (the final sigma rule excepted).
void append_mapped(std::string& out, std::string_view bytes, const Character& character, CaseMapping mapping);
bool is_letter(std::int32_t code);         // str.isalpha
bool is_decimal_digit(std::int32_t code);  // str.isdecimal
bool is_cased(std::int32_t code);
bool is_upper(std::int32_t code);
bool is_lower(std::int32_t code);
bool is_word_character(std::int32_t code);  // \w
bool is_printable(std::int32_t code);       // str.isprintable, which decides what repr() escapes

}  // namespace frontier::jinja

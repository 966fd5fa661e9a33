// UTF-8 and the byte alphabet of gpt-2.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace frontier {

// The character at the start of `text` (not empty). A sequence that is no UTF-8 has valid == false and size_bytes of
// its maximal subpart (Unicode 3.9, table 3-8): what one U+FFFD replaces. `truncated`: more bytes could complete it.
struct Utf8Char {
    char32_t code = 0;
    int size_bytes = 1;
    bool valid = false;
    bool truncated = false;
};
Utf8Char next_utf8(std::string_view text);

// Bytes up to the first that is not part of a valid character.
std::size_t valid_utf8_prefix(std::string_view text);

void append_utf8(std::string& out, char32_t code);

// Moves the certain part of `pending` to the result: valid characters, and U+FFFD for what can be none. A tail that may
// still become a character stays in `pending`, unless `final`.
std::string take_valid_utf8(std::string& pending, bool final);

// U+2581, the space of SentencePiece.
inline constexpr std::string_view kSpaceMark = "\xE2\x96\x81";
inline constexpr std::string_view kReplacementChar = "\xEF\xBF\xBD";

// White_Space of Unicode, which `\s` means in the reference's patterns.
bool is_unicode_space(char32_t code);
// What `\w` means: alphabetic, mark, decimal number, connector punctuation.
bool is_word_char(char32_t code);

// gpt-2 writes each byte as a printable character: printable Latin-1 as itself, the others from U+0100 on.
// https://github.com/openai/gpt-2, encoder.py, bytes_to_unicode.
const std::array<char32_t, 256>& byte_to_char();
// The byte of a character of that alphabet, or -1.
int char_to_byte(char32_t code);
void append_byte_level(std::string& out, std::string_view bytes);
// False, and `out` as before, when `piece` holds a character outside the alphabet.
bool append_from_byte_level(std::string& out, std::string_view piece);

// The byte of "<0x41>", or -1.
int byte_fallback_value(std::string_view piece);

// False, and `text` as before, when the result would have more than `max_bytes`.
bool replace_all(std::string& text, std::string_view from, std::string_view to,
                 std::size_t max_bytes = std::string::npos);

}  // namespace frontier

#include "text/unicode.h"

#include <utf8proc.h>

namespace frontier {

Utf8Char next_utf8(std::string_view text) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned lead = byte(0);
    if (lead < 0x80) return {lead, 1, true, false};
    if (lead < 0xC2 || lead > 0xF4) return {0, 1, false, false};
    const int length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    // The second byte's range excludes overlong forms, surrogates and codes above U+10FFFF.
    unsigned low = 0x80, high = 0xBF;
    if (lead == 0xE0) low = 0xA0;
    if (lead == 0xED) high = 0x9F;
    if (lead == 0xF0) low = 0x90;
    if (lead == 0xF4) high = 0x8F;
    char32_t code = lead & (0x7FU >> length);
    for (int i = 1; i < length; ++i) {
        if (static_cast<std::size_t>(i) == text.size()) return {0, i, false, true};
        const unsigned c = byte(static_cast<std::size_t>(i));
        if (c < low || c > high) return {0, i, false, false};
        code = (code << 6) | (c & 0x3F);
        low = 0x80;
        high = 0xBF;
    }
    return {code, length, true, false};
}

std::size_t valid_utf8_prefix(std::string_view text) {
    std::size_t at = 0;
    while (at < text.size()) {
        if (static_cast<unsigned char>(text[at]) < 0x80) {
            ++at;
            continue;
        }
        const Utf8Char c = next_utf8(text.substr(at));
        if (!c.valid) break;
        at += static_cast<std::size_t>(c.size_bytes);
    }
    return at;
}

void append_utf8(std::string& out, char32_t code) {
    const auto put = [&](char32_t byte) { out.push_back(static_cast<char>(byte)); };
    if (code < 0x80) {
        put(code);
    } else if (code < 0x800) {
        put(0xC0 | (code >> 6));
        put(0x80 | (code & 0x3F));
    } else if (code < 0x10000) {
        put(0xE0 | (code >> 12));
        put(0x80 | ((code >> 6) & 0x3F));
        put(0x80 | (code & 0x3F));
    } else {
        put(0xF0 | (code >> 18));
        put(0x80 | ((code >> 12) & 0x3F));
        put(0x80 | ((code >> 6) & 0x3F));
        put(0x80 | (code & 0x3F));
    }
}

std::string take_valid_utf8(std::string& pending, bool final) {
    std::string out;
    std::string_view rest = pending;
    while (!rest.empty()) {
        const std::size_t valid = valid_utf8_prefix(rest);
        out.append(rest.substr(0, valid));
        rest.remove_prefix(valid);
        if (rest.empty()) break;
        const Utf8Char c = next_utf8(rest);
        if (c.truncated && !final) break;
        out += kReplacementChar;
        rest.remove_prefix(static_cast<std::size_t>(c.size_bytes));
    }
    pending = std::string(rest);
    return out;
}

bool is_unicode_space(char32_t code) {
    switch (code) {
        case ' ':
        case 0x85:
        case 0xA0:
        case 0x1680:
        case 0x2028:
        case 0x2029:
        case 0x202F:
        case 0x205F:
        case 0x3000:
            return true;
        default:
            return (code >= 0x09 && code <= 0x0D) || (code >= 0x2000 && code <= 0x200A);
    }
}

bool is_word_char(char32_t code) {
    switch (utf8proc_category(static_cast<utf8proc_int32_t>(code))) {
        case UTF8PROC_CATEGORY_LU:
        case UTF8PROC_CATEGORY_LL:
        case UTF8PROC_CATEGORY_LT:
        case UTF8PROC_CATEGORY_LM:
        case UTF8PROC_CATEGORY_LO:
        case UTF8PROC_CATEGORY_MN:
        case UTF8PROC_CATEGORY_MC:
        case UTF8PROC_CATEGORY_ME:
        case UTF8PROC_CATEGORY_ND:
        case UTF8PROC_CATEGORY_NL:
        case UTF8PROC_CATEGORY_PC:
            return true;
        default:
            return false;
    }
}

const std::array<char32_t, 256>& byte_to_char() {
    static const auto table = [] {
        std::array<char32_t, 256> result{};
        char32_t next = 0x100;
        for (char32_t b = 0; b < 256; ++b) {
            const bool printable = (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
            result[b] = printable ? b : next++;
        }
        return result;
    }();
    return table;
}

int char_to_byte(char32_t code) {
    static const auto table = [] {
        std::array<std::int16_t, 0x144> result{};  // 68 bytes are not printable: U+0100..U+0143
        result.fill(-1);
        for (std::size_t b = 0; b < 256; ++b) result[byte_to_char()[b]] = static_cast<std::int16_t>(b);
        return result;
    }();
    return code < table.size() ? table[code] : -1;
}

void append_byte_level(std::string& out, std::string_view bytes) {
    for (const char c : bytes) append_utf8(out, byte_to_char()[static_cast<unsigned char>(c)]);
}

bool append_from_byte_level(std::string& out, std::string_view piece) {
    const std::size_t before = out.size();
    while (!piece.empty()) {
        const Utf8Char c = next_utf8(piece);
        const int byte = c.valid ? char_to_byte(c.code) : -1;
        if (byte < 0) {
            out.resize(before);
            return false;
        }
        out.push_back(static_cast<char>(byte));
        piece.remove_prefix(static_cast<std::size_t>(c.size_bytes));
    }
    return true;
}

int byte_fallback_value(std::string_view piece) {
    if (piece.size() != 6 || !piece.starts_with("<0x") || piece[5] != '>') return -1;
    int value = 0;
    for (const char c : piece.substr(3, 2)) {
        const int digit = c >= '0' && c <= '9'   ? c - '0'
                          : c >= 'A' && c <= 'F' ? c - 'A' + 10
                          : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                                 : -1;
        if (digit < 0) return -1;
        value = value * 16 + digit;
    }
    return value;
}

bool replace_all(std::string& text, std::string_view from, std::string_view to, std::size_t max_bytes) {
    if (from.empty()) return true;
    std::size_t at = text.find(from);
    if (at == std::string::npos) return true;
    std::string out;
    out.reserve(text.size() + text.size() / 4);
    std::size_t done = 0;
    for (; at != std::string::npos; at = text.find(from, done)) {
        out.append(text, done, at - done).append(to);
        if (out.size() > max_bytes) return false;
        done = at + from.size();
    }
    out.append(text, done);
    if (out.size() > max_bytes) return false;
    text = std::move(out);
    return true;
}

}  // namespace frontier

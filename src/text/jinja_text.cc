#include "text/jinja_text.h"

#include <algorithm>
#include <cstring>

#include <utf8proc.h>

namespace frontier::jinja {

Text::Text(std::string bytes, bool untrusted) : bytes_(std::move(bytes)) {
    if (untrusted) add_range(0, bytes_.size());
}

void Text::add_range(std::size_t begin, std::size_t end) {
    if (begin == end) return;
    if (!untrusted_.empty() && untrusted_.back().end == begin) {
        untrusted_.back().end = end;
    } else {
        untrusted_.push_back({begin, end});
    }
}

bool Text::is_untrusted_at(std::size_t position) const {
    const auto after = std::upper_bound(untrusted_.begin(), untrusted_.end(), position,
                                        [](std::size_t p, const Range& range) { return p < range.begin; });
    return after != untrusted_.begin() && std::prev(after)->end > position;
}

void Text::append(const Text& other) {
    append_slice(other, 0, other.size());
}

void Text::append(std::string_view bytes, bool untrusted) {
    const std::size_t begin = bytes_.size();
    bytes_.append(bytes);
    if (untrusted) add_range(begin, bytes_.size());
}

void Text::append_slice(const Text& other, std::size_t begin, std::size_t end) {
    const std::size_t base = bytes_.size();
    bytes_.append(other.bytes_, begin, end - begin);
    auto range = std::upper_bound(other.untrusted_.begin(), other.untrusted_.end(), begin,
                                  [](std::size_t p, const Range& r) { return p < r.end; });
    for (; range != other.untrusted_.end() && range->begin < end; ++range) {
        add_range(base + std::max(range->begin, begin) - begin, base + std::min(range->end, end) - begin);
    }
}

bool Text::any_untrusted_in(std::size_t begin, std::size_t end) const {
    const auto range = std::upper_bound(untrusted_.begin(), untrusted_.end(), begin,
                                        [](std::size_t p, const Range& r) { return p < r.end; });
    return range != untrusted_.end() && range->begin < end;
}

Text Text::slice(std::size_t begin, std::size_t end) const {
    Text out;
    out.append_slice(*this, begin, end);
    return out;
}

Character character_at(std::string_view bytes, std::size_t position) {
    const auto lead = static_cast<unsigned char>(bytes[position]);
    if (lead < 0x80) return {lead, 1};
    utf8proc_int32_t code = -1;
    const auto available = static_cast<utf8proc_ssize_t>(std::min<std::size_t>(bytes.size() - position, 4));
    const auto length =
        utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(bytes.data() + position), available, &code);
    if (length <= 0) return {-1, 1};
    return {code, static_cast<std::size_t>(length)};
}

std::size_t count_characters(std::string_view bytes) {
    std::size_t count = 0;
    for (std::size_t i = 0; i < bytes.size(); i += character_at(bytes, i).size_bytes) ++count;
    return count;
}

std::size_t offset_of_character(std::string_view bytes, std::size_t index) {
    std::size_t i = 0;
    for (; i < bytes.size() && index > 0; --index) i += character_at(bytes, i).size_bytes;
    return i;
}

void append_utf8(std::string& out, std::int32_t code) {
    utf8proc_uint8_t buffer[4];
    const auto length = utf8proc_encode_char(code, buffer);
    out.append(reinterpret_cast<const char*>(buffer), static_cast<std::size_t>(length));
}

bool is_space(std::int32_t code) {
    if (code < 0x80) return (code >= 0x09 && code <= 0x0D) || (code >= 0x1C && code <= 0x20);
    return code == 0x85 || code == 0xA0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200A) || code == 0x2028 ||
           code == 0x2029 || code == 0x202F || code == 0x205F || code == 0x3000;
}

std::size_t skip_space(std::string_view bytes, std::size_t begin) {
    while (begin < bytes.size()) {
        const Character character = character_at(bytes, begin);
        if (!is_space(character.code)) break;
        begin += character.size_bytes;
    }
    return begin;
}

std::size_t trim_space_end(std::string_view bytes, std::size_t begin, std::size_t end) {
    while (end > begin) {
        // The character that ends here starts at most 4 bytes back.
        std::size_t start = end - 1;
        while (start > begin && end - start < 4 && (static_cast<unsigned char>(bytes[start]) & 0xC0) == 0x80) --start;
        const Character character = character_at(bytes.substr(0, end), start);
        if (start + character.size_bytes != end || !is_space(character.code)) break;
        end = start;
    }
    return end;
}

std::size_t find_bytes(std::string_view haystack, std::string_view needle, std::size_t from) {
    if (from > haystack.size()) return std::string::npos;
    if (needle.empty()) return from;
    // glibc's memmem is the two-way algorithm; std::string::find is quadratic on hostile needles.
    const void* found = memmem(haystack.data() + from, haystack.size() - from, needle.data(), needle.size());
    if (found == nullptr) return std::string::npos;
    return static_cast<std::size_t>(static_cast<const char*>(found) - haystack.data());
}

namespace {
// The entries of Unicode's SpecialCasing.txt that a single-character mapping cannot express and that are in use.
struct SpecialCase {
    std::int32_t code;
    const char* upper;
    const char* title;
};
constexpr SpecialCase kSpecialCases[] = {
    {0x00DF, "SS", "Ss"},
    {0x0149,
     "\xCA\xBC"
     "N",
     "\xCA\xBC"
     "N"},
    {0x01F0, "J\xCC\x8C", "J\xCC\x8C"},
    {0x0587, "\xD4\xB5\xD5\x92", "\xD4\xB5\xD6\x82"},
    {0xFB00, "FF", "Ff"},
    {0xFB01, "FI", "Fi"},
    {0xFB02, "FL", "Fl"},
    {0xFB03, "FFI", "Ffi"},
    {0xFB04, "FFL", "Ffl"},
    {0xFB05, "ST", "St"},
    {0xFB06, "ST", "St"},
};
}  // namespace

void append_mapped(std::string& out, std::string_view bytes, const Character& character, CaseMapping mapping) {
    if (character.code < 0) {
        out.append(bytes);
        return;
    }
    if (mapping == CaseMapping::kLower) {
        if (character.code == 0x130) {
            out.append("i\xCC\x87");
        } else {
            append_utf8(out, utf8proc_tolower(character.code));
        }
        return;
    }
    if (character.code >= 0xDF) {
        for (const SpecialCase& special : kSpecialCases) {
            if (special.code == character.code) {
                out.append(mapping == CaseMapping::kUpper ? special.upper : special.title);
                return;
            }
        }
    }
    append_utf8(out,
                mapping == CaseMapping::kUpper ? utf8proc_toupper(character.code) : utf8proc_totitle(character.code));
}

bool is_letter(std::int32_t code) {
    if (code < 0) return false;
    const auto category = utf8proc_category(code);
    return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
}

bool is_decimal_digit(std::int32_t code) {
    return code >= 0 && utf8proc_category(code) == UTF8PROC_CATEGORY_ND;
}

bool is_upper(std::int32_t code) {
    return code >= 0 && utf8proc_category(code) == UTF8PROC_CATEGORY_LU;
}

bool is_lower(std::int32_t code) {
    return code >= 0 && utf8proc_category(code) == UTF8PROC_CATEGORY_LL;
}

bool is_cased(std::int32_t code) {
    return is_upper(code) || is_lower(code) || (code >= 0 && utf8proc_category(code) == UTF8PROC_CATEGORY_LT);
}

bool is_word_character(std::int32_t code) {
    if (code == '_') return true;
    if (code < 0) return false;
    const auto category = utf8proc_category(code);
    return is_letter(code) || (category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO);
}

bool is_printable(std::int32_t code) {
    if (code == ' ') return true;
    if (code < 0) return false;
    switch (utf8proc_category(code)) {
        case UTF8PROC_CATEGORY_CN:
        case UTF8PROC_CATEGORY_ZS:
        case UTF8PROC_CATEGORY_ZL:
        case UTF8PROC_CATEGORY_ZP:
        case UTF8PROC_CATEGORY_CC:
        case UTF8PROC_CATEGORY_CF:
        case UTF8PROC_CATEGORY_CS:
        case UTF8PROC_CATEGORY_CO:
            return false;
        default:
            return true;
    }
}

}  // namespace frontier::jinja

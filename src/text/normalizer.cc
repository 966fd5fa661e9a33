#include "text/normalizer.h"

#include <utf8proc.h>

#include <cstdlib>
#include <memory>

#include "text/unicode.h"

namespace frontier {
namespace {

using Op = NormalizerStep::Op;

bool is_ascii(std::string_view text) {
    for (const char c : text)
        if (static_cast<unsigned char>(c) >= 0x80) return false;
    return true;
}

void append_mapped(std::string& out, std::string_view text, int options) {
    utf8proc_uint8_t* mapped = nullptr;
    const utf8proc_ssize_t size =
        utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()), static_cast<utf8proc_ssize_t>(text.size()),
                     &mapped, static_cast<utf8proc_option_t>(options));
    const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(mapped, &std::free);
    // Out of memory; valid UTF-8 has no other failure.
    out += size < 0 ? text : std::string_view(reinterpret_cast<const char*>(mapped), static_cast<std::size_t>(size));
}

void map_utf8(std::string& text, int options) {
    if (is_ascii(text)) return;  // every normal form of ASCII is itself
    // utf8proc 2.8 composes a Hangul syllable with U+11A7, the "no trailing consonant" that is no character of it, and
    // so loses that character. It never composes with anything, so the text is mapped around it.
    constexpr std::string_view kNoTrailing = "\xE1\x86\xA7";
    std::string out;
    out.reserve(text.size());
    std::string_view rest = text;
    while (true) {
        const std::size_t at = rest.find(kNoTrailing);
        append_mapped(out, rest.substr(0, at), options);
        if (at == std::string_view::npos) break;
        out += kNoTrailing;
        rest.remove_prefix(at + kNoTrailing.size());
    }
    text = std::move(out);
}

// Replaces every character by what `map(code)` says, 0 dropping it.
template <typename Map>
void map_chars(std::string& text, const Map& map) {
    std::string out;
    out.reserve(text.size());
    for (std::string_view rest = text; !rest.empty();) {
        const Utf8Char c = next_utf8(rest);
        if (const char32_t code = map(c.code); code != 0 || c.code == 0) append_utf8(out, code);
        rest.remove_prefix(static_cast<std::size_t>(c.size_bytes));
    }
    text = std::move(out);
}

bool is_mark(char32_t code) {
    const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(code));
    return category == UTF8PROC_CATEGORY_MN || category == UTF8PROC_CATEGORY_MC || category == UTF8PROC_CATEGORY_ME;
}

void strip(std::string& text, bool left, bool right) {
    std::size_t begin = text.size(), end = 0;
    for (std::size_t at = 0; at < text.size();) {
        const Utf8Char c = next_utf8(std::string_view(text).substr(at));
        const std::size_t next = at + static_cast<std::size_t>(c.size_bytes);
        if (!is_unicode_space(c.code)) {
            begin = std::min(begin, at);
            end = next;
        }
        at = next;
    }
    if (end == 0) {
        if (left || right) text.clear();
        return;
    }
    if (right) text.resize(end);
    if (left) text.erase(0, begin);
}

void collapse_spaces(std::string& text) {
    std::string out;
    out.reserve(text.size());
    for (const char c : text)
        if (c != ' ' || (!out.empty() && out.back() != ' ')) out += c;
    if (!out.empty() && out.back() == ' ') out.pop_back();
    text = std::move(out);
}

// False when the result would have more than `max_bytes`.
Result<bool> replace_regex(std::string& text, const Regex& regex, std::string_view content, std::size_t max_bytes) {
    Regex::Matcher matcher(regex, text.size());
    std::string out;
    std::size_t done = 0, from = 0;
    while (from <= text.size() && matcher.find(text, from)) {
        out.append(text, done, matcher.begin - done).append(content);
        if (out.size() > max_bytes) return false;
        done = from = matcher.end;
        if (matcher.end == matcher.begin) {
            if (from == text.size()) break;
            from += static_cast<std::size_t>(next_utf8(std::string_view(text).substr(from)).size_bytes);
        }
    }
    FR_TRY(matcher.status());
    out.append(text, done);
    text = std::move(out);
    return true;
}

}  // namespace

std::size_t max_grown_bytes(std::size_t bytes) {
    return 64 + 16 * bytes;
}

Result<Normalizer> Normalizer::create(const std::vector<NormalizerStep>& steps, std::string_view where) {
    Normalizer result;
    result.where_ = where;
    for (const NormalizerStep& spec : steps) {
        Step step{spec, std::nullopt};
        if (spec.op == Op::kReplace && spec.pattern_is_regex) {
            FR_ASSIGN(step.regex, Regex::compile(spec.pattern, where));
        }
        result.steps_.push_back(std::move(step));
    }
    return result;
}

Result<std::string> Normalizer::apply(std::string_view input, bool first) const {
    std::string text(input);
    const std::size_t max_bytes = max_grown_bytes(input.size());
    for (std::size_t i = 0; i < steps_.size(); ++i) {
        const Step& step = steps_[i];
        const NormalizerStep& spec = step.spec;
        bool fits = true;
        switch (spec.op) {
            case Op::kNfc:
                map_utf8(text, UTF8PROC_STABLE | UTF8PROC_COMPOSE);
                break;
            case Op::kNfd:
                map_utf8(text, UTF8PROC_STABLE | UTF8PROC_DECOMPOSE);
                break;
            case Op::kNfkc:
                map_utf8(text, UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT);
                break;
            case Op::kNfkd:
                map_utf8(text, UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT);
                break;
            case Op::kLowercase:
                // The one character whose lower case is two: i with a combining dot.
                replace_all(text, "\xC4\xB0", "i\xCC\x87");
                map_chars(text, [](char32_t c) {
                    return static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c)));
                });
                break;
            case Op::kStripAccents:
                // The one character whose lower case is two: i with a combining dot.
                replace_all(text, "\xC4\xB0", "i\xCC\x87");
                map_chars(text, [](char32_t c) { return is_mark(c) ? 0 : c; });
                break;
            case Op::kPrepend:
                if (first && !text.empty()) text.insert(0, spec.content);
                break;
            case Op::kReplace:
                if (step.regex) {
                    FR_ASSIGN(fits, replace_regex(text, *step.regex, spec.content, max_bytes));
                } else {
                    fits = replace_all(text, spec.pattern, spec.content, max_bytes);
                }
                break;
            case Op::kStrip:
                strip(text, spec.strip_left, spec.strip_right);
                break;
            case Op::kCollapseSpaces:
                collapse_spaces(text);
                break;
        }
        if (!fits || text.size() > max_bytes)
            return bad_input("{}: normalizer step {}: expected at most {} bytes from a text of {}, got more", where_,
                             i + 1, max_bytes, input.size());
    }
    return text;
}

}  // namespace frontier

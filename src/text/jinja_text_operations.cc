// Text operations that filters and methods share.
#include <algorithm>

#include "text/jinja_builtins.h"

namespace frontier::jinja {

Result<std::int64_t> to_integer(const Value& value, std::string_view what) {
    if (!value.is_integral()) return bad_input("{} needs an integer, not {}", what, type_name(value));
    return value.as_int();
}

Result<const Text*> to_string_argument(const Value& value, std::string_view what) {
    if (!value.is(Kind::kString)) return bad_input("{} needs a string, not {}", what, type_name(value));
    return &value.text();
}

namespace {
CaseMapping mapping_for(Casing casing, std::int32_t code, bool is_first, bool after_cased) {
    switch (casing) {
        case Casing::kUpper:
            return CaseMapping::kUpper;
        case Casing::kLower:
            return CaseMapping::kLower;
        case Casing::kTitle:
            return after_cased ? CaseMapping::kLower : CaseMapping::kTitle;
        case Casing::kCapitalize:
            return is_first ? CaseMapping::kTitle : CaseMapping::kLower;
        case Casing::kSwap:
            return is_upper(code) ? CaseMapping::kLower : CaseMapping::kUpper;
    }
    return CaseMapping::kLower;
}
}  // namespace

Result<Value> change_case(Interpreter& interpreter, const Text& text, Casing casing, bool markup) {
    FR_TRY(interpreter.meter().scan(text.size()));
    Text out;
    TaintCursor taint(text);
    std::string piece;
    bool after_cased = false;
    for (std::size_t i = 0; i < text.size();) {
        const Character c = character_at(text.bytes(), i);
        piece.clear();
        append_mapped(piece, std::string_view(text.bytes()).substr(i, c.size_bytes), c,
                      mapping_for(casing, c.code, i == 0, after_cased));
        out.append(piece, taint.at(i));
        after_cased = is_cased(c.code);
        i += c.size_bytes;
    }
    return interpreter.make_string(std::move(out), markup);
}

namespace {
// Whether `set` holds the character at `position` of `bytes`.
bool holds_character(std::string_view set, std::string_view bytes, std::size_t position, std::size_t size) {
    const std::string_view wanted = bytes.substr(position, size);
    for (std::size_t i = 0; i < set.size();) {
        const std::size_t length = character_at(set, i).size_bytes;
        if (set.substr(i, length) == wanted) return true;
        i += length;
    }
    return false;
}
}  // namespace

Result<Value> strip_text(Interpreter& interpreter, const Text& text, const Value* characters, bool left, bool right,
                         bool markup) {
    const std::string& bytes = text.bytes();
    std::size_t begin = 0;
    std::size_t end = bytes.size();
    if (characters == nullptr || characters->is(Kind::kNone)) {
        FR_TRY(interpreter.meter().scan(bytes.size()));
        if (left) begin = skip_space(bytes, 0);
        if (right) end = trim_space_end(bytes, begin, end);
        return interpreter.make_string(text.slice(begin, end), markup);
    }
    FR_ASSIGN(const Text* set, to_string_argument(*characters, "strip"));
    FR_TRY(interpreter.meter().scan(bytes.size()));
    while (left && begin < end) {
        FR_TRY(interpreter.meter().scan(set->size() * 8));
        const std::size_t size = character_at(bytes, begin).size_bytes;
        if (!holds_character(set->bytes(), bytes, begin, size)) break;
        begin += size;
    }
    while (right && end > begin) {
        FR_TRY(interpreter.meter().scan(set->size() * 8));
        std::size_t start = end - 1;
        while (start > begin && end - start < 4 && (static_cast<unsigned char>(bytes[start]) & 0xC0) == 0x80) --start;
        if (start + character_at(bytes, start).size_bytes != end) start = end - 1;
        if (!holds_character(set->bytes(), bytes, start, end - start)) break;
        end = start;
    }
    return interpreter.make_string(text.slice(begin, end), markup);
}

Result<Text> replace_text(Interpreter& interpreter, const Text& text, const Text& from, const Text& to,
                          std::int64_t count) {
    Meter& meter = interpreter.meter();
    FR_TRY(meter.scan(text.size() + from.size()));
    Text out;
    std::size_t position = 0;
    const std::string& bytes = text.bytes();
    if (count < 0) count = -1;  // no limit; counts down without ever reaching 0
    for (; count != 0; --count) {
        std::size_t found = find_bytes(bytes, from.bytes(), position);
        if (found == std::string::npos) break;
        out.append_slice(text, position, found);
        FR_TRY(meter.allocate(to.cost_bytes()));
        FR_TRY(meter.check_string(out.size() + to.size()));
        out.append(to);
        position = found + from.size();
        if (!from.empty()) continue;
        // The empty string is found before each character and at the end.
        if (position >= bytes.size()) return out;
        const std::size_t next = position + character_at(bytes, position).size_bytes;
        out.append_slice(text, position, next);
        position = next;
    }
    out.append_slice(text, position, bytes.size());
    FR_TRY(meter.check_string(out.size()));
    return out;
}

Result<Text> escape_html(Interpreter& interpreter, const Value& value) {
    FR_ASSIGN(Text text, interpreter.to_text(value));
    if (value.is(Kind::kString) && value.markup()) return text;
    Text out;
    TaintCursor taint(text);
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text.bytes()[i];
        const std::string_view entity = c == '&'    ? "&amp;"
                                        : c == '<'  ? "&lt;"
                                        : c == '>'  ? "&gt;"
                                        : c == '"'  ? "&#34;"
                                        : c == '\'' ? "&#39;"
                                                    : std::string_view(&text.bytes()[i], 1);
        out.append(entity, taint.at(i));
    }
    FR_TRY(interpreter.meter().allocate(out.cost_bytes()));
    return out;
}

}  // namespace frontier::jinja

// str(), repr() and json.dumps() of template values.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "text/jinja_value.h"

namespace frontier::jinja {

namespace {
Status check(Meter& meter, const Text& out, int depth) {
    FR_TRY(meter.spend(1));
    FR_TRY(meter.check_string(out.cost_bytes()));
    if (depth > kMaxValueDepth) return bad_input("values nest too deeply to print");
    return {};
}

void append_scalar(Text& out, std::string_view text, const Value& value) {
    out.append(text, value.untrusted());
}

void append_hex(std::string& out, const char* prefix, unsigned width, std::uint32_t code) {
    out += fmt::format("{}{:0{}x}", prefix, code, width);
}

// A string literal: quotes and escapes by repr's rules, each output byte as trusted as the character it stands for.
Status append_string_repr(Meter& meter, Text& out, const Text& text) {
    FR_TRY(meter.allocate(text.cost_bytes()));
    const std::string& bytes = text.bytes();
    const bool double_quotes = bytes.find('\'') != std::string::npos && bytes.find('"') == std::string::npos;
    const char quote = double_quotes ? '"' : '\'';
    out.append({&quote, 1}, false);
    TaintCursor taint(text);
    std::string piece;
    for (std::size_t i = 0; i < bytes.size();) {
        const Character c = character_at(bytes, i);
        piece.clear();
        if (c.code == quote || c.code == '\\') {
            piece = {'\\', static_cast<char>(c.code)};
        } else if (c.code == '\n') {
            piece = "\\n";
        } else if (c.code == '\r') {
            piece = "\\r";
        } else if (c.code == '\t') {
            piece = "\\t";
        } else if (c.code < 0 || is_printable(c.code)) {
            piece.assign(bytes, i, c.size_bytes);
        } else if (c.code < 0x100) {
            append_hex(piece, "\\x", 2, static_cast<std::uint32_t>(c.code));
        } else if (c.code < 0x10000) {
            append_hex(piece, "\\u", 4, static_cast<std::uint32_t>(c.code));
        } else {
            append_hex(piece, "\\U", 8, static_cast<std::uint32_t>(c.code));
        }
        out.append(piece, taint.at(i));
        i += c.size_bytes;
    }
    out.append({&quote, 1}, false);
    return {};
}

Status append_items(Meter& meter, Text& out, const std::vector<Value>& items, int depth) {
    bool first = true;
    for (const Value& item : items) {
        if (!first) out.append(", ", false);
        first = false;
        FR_TRY(append_repr(meter, out, item, depth + 1));
    }
    return {};
}

Status append_sequence_repr(Meter& meter, Text& out, const Value& value, int depth) {
    const SequenceObject& sequence = value.sequence();
    switch (value.kind()) {
        case Kind::kList:
            out.append("[", false);
            FR_TRY(append_items(meter, out, sequence.items, depth));
            out.append("]", false);
            return {};
        case Kind::kTuple:
            out.append("(", false);
            FR_TRY(append_items(meter, out, sequence.items, depth));
            out.append(sequence.items.size() == 1 ? ",)" : ")", false);
            return {};
        case Kind::kRange:
            out.append(sequence.label, false);
            return {};
        case Kind::kView:
            out.append(sequence.label, false);
            out.append("([", false);
            FR_TRY(append_items(meter, out, sequence.items, depth));
            out.append("])", false);
            return {};
        default:
            return bad_input("a generator cannot be printed; pass it through the filter list or join");
    }
}

Status append_dict_repr(Meter& meter, Text& out, const DictObject& dict, int depth) {
    out.append("{", false);
    bool first = true;
    for (const auto& [key, item] : dict.entries) {
        if (!first) out.append(", ", false);
        first = false;
        FR_TRY(append_repr(meter, out, key, depth + 1));
        out.append(": ", false);
        FR_TRY(append_repr(meter, out, item, depth + 1));
    }
    out.append("}", false);
    return {};
}

Status append_namespace_repr(Meter& meter, Text& out, const NamespaceObject& name_space, int depth) {
    out.append("<Namespace {", false);
    bool first = true;
    for (const auto& [key, item] : name_space.attributes) {
        if (!first) out.append(", ", false);
        first = false;
        FR_TRY(append_string_repr(meter, out, Text(key, name_space.untrusted_names)));
        out.append(": ", false);
        FR_TRY(append_repr(meter, out, item, depth + 1));
    }
    out.append("}>", false);
    return {};
}
}  // namespace

std::string format_double(double value) {
    if (std::isnan(value)) return "nan";
    if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
    // The shortest digits that read back as `value`, laid out as Python does: an exponent below 1e-4 and from 1e16.
    char buffer[40];
    const auto end = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific).ptr;
    const std::string_view scientific(buffer, static_cast<std::size_t>(end - buffer));
    const std::size_t e = scientific.find('e');
    int exponent = 0;
    const char* exponent_begin = scientific.data() + e + 1;
    if (*exponent_begin == '+') ++exponent_begin;
    std::from_chars(exponent_begin, scientific.data() + scientific.size(), exponent);
    if (exponent < -4 || exponent >= 16) return std::string(scientific);
    std::string fixed(400, '\0');
    const auto fixed_end =
        std::to_chars(fixed.data(), fixed.data() + fixed.size(), value, std::chars_format::fixed).ptr;
    fixed.resize(static_cast<std::size_t>(fixed_end - fixed.data()));
    if (fixed.find('.') == std::string::npos) fixed += ".0";
    return fixed;
}

Status append_str(Meter& meter, Text& out, const Value& value) {
    if (value.is(Kind::kUndefined)) return {};
    if (value.is(Kind::kString)) {
        FR_TRY(meter.scan(value.text().cost_bytes()));
        out.append(value.text());
        return meter.check_string(out.cost_bytes());
    }
    return append_repr(meter, out, value, 0);
}

Status append_repr(Meter& meter, Text& out, const Value& value, int depth) {
    FR_TRY(check(meter, out, depth));
    switch (value.kind()) {
        case Kind::kUndefined:
            out.append("Undefined", false);
            return {};
        case Kind::kNone:
            append_scalar(out, "None", value);
            return {};
        case Kind::kBool:
            append_scalar(out, value.as_bool() ? "True" : "False", value);
            return {};
        case Kind::kInt:
            append_scalar(out, fmt::format("{}", value.as_int()), value);
            return {};
        case Kind::kFloat:
            append_scalar(out, format_double(value.as_double()), value);
            return {};
        case Kind::kString: {
            if (value.markup()) out.append("Markup(", false);
            FR_TRY(append_string_repr(meter, out, value.text()));
            if (value.markup()) out.append(")", false);
            return {};
        }
        case Kind::kDict:
            return append_dict_repr(meter, out, value.dict(), depth);
        case Kind::kNamespace:
            return append_namespace_repr(meter, out, value.name_space(), depth);
        case Kind::kLoop: {
            const auto& loop = value.as<LoopObject>();
            out.append(fmt::format("<LoopContext {}/{}>", loop.index + 1, loop.items->items.size()), false);
            return {};
        }
        case Kind::kMacro:
        case Kind::kFunction:
        case Kind::kMethod:
            return bad_input("a {} cannot be printed; was a call meant?", type_name(value));
        default:
            return append_sequence_repr(meter, out, value, depth);
    }
}

namespace {
// A JSON string with each output byte as trusted as its character.
Status append_json_string(Meter& meter, Text& out, const Text& text, bool ensure_ascii) {
    FR_TRY(meter.allocate(text.cost_bytes()));
    const std::string& bytes = text.bytes();
    out.append("\"", false);
    TaintCursor taint(text);
    std::string piece;
    for (std::size_t i = 0; i < bytes.size();) {
        const Character c = character_at(bytes, i);
        piece.clear();
        switch (c.code) {
            case '"':
                piece = "\\\"";
                break;
            case '\\':
                piece = "\\\\";
                break;
            case '\n':
                piece = "\\n";
                break;
            case '\r':
                piece = "\\r";
                break;
            case '\t':
                piece = "\\t";
                break;
            case '\f':
                piece = "\\f";
                break;
            case '\b':
                piece = "\\b";
                break;
            default: {
                const auto code = static_cast<std::uint32_t>(c.code < 0 ? 0xFFFD : c.code);
                if (code < 0x20 || (ensure_ascii && code > 0x7E && code < 0x10000)) {
                    append_hex(piece, "\\u", 4, code);
                } else if (ensure_ascii && code >= 0x10000) {
                    append_hex(piece, "\\u", 4, 0xD800 + ((code - 0x10000) >> 10));
                    append_hex(piece, "\\u", 4, 0xDC00 + ((code - 0x10000) & 0x3FF));
                } else {
                    piece.assign(bytes, i, c.size_bytes);
                }
            }
        }
        out.append(piece, taint.at(i));
        i += c.size_bytes;
    }
    out.append("\"", false);
    return {};
}

Status append_json_break(Meter& meter, Text& out, const JsonStyle& style, int depth) {
    if (!style.indent) return {};
    out.append("\n", false);
    for (int i = 0; i < depth; ++i) out.append(*style.indent, false);
    return meter.allocate(style.indent->size() * static_cast<std::size_t>(depth));
}

std::string json_double(double value) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
    return format_double(value);
}

// Keys other than strings are written as json.dumps does, in quotes.
Status append_json_key(Meter& meter, Text& out, const Value& key, const JsonStyle& style) {
    switch (key.kind()) {
        case Kind::kString:
            return append_json_string(meter, out, key.text(), style.ensure_ascii);
        case Kind::kNone:
            out.append("\"null\"", key.untrusted());
            return {};
        case Kind::kBool:
            out.append(key.as_bool() ? "\"true\"" : "\"false\"", key.untrusted());
            return {};
        case Kind::kInt:
            out.append(fmt::format("\"{}\"", key.as_int()), key.untrusted());
            return {};
        case Kind::kFloat:
            out.append(fmt::format("\"{}\"", json_double(key.as_double())), key.untrusted());
            return {};
        default:
            return bad_input("tojson: a key of type {} is not possible in JSON", type_name(key));
    }
}

Status append_json_dict(Meter& meter, Text& out, const DictObject& dict, const JsonStyle& style, int depth) {
    if (dict.entries.empty()) {
        out.append("{}", false);
        return {};
    }
    std::vector<const std::pair<Value, Value>*> order;
    order.reserve(dict.entries.size());
    for (const auto& entry : dict.entries) order.push_back(&entry);
    if (style.sort_keys) {
        FR_TRY(meter.spend(order.size() * 16));
        for (const auto* entry : order) {
            if (!entry->first.is(Kind::kString)) return bad_input("tojson: sort_keys needs keys that are strings");
        }
        std::sort(order.begin(), order.end(),
                  [](const auto* a, const auto* b) { return a->first.bytes() < b->first.bytes(); });
    }
    out.append("{", false);
    bool first = true;
    for (const auto* entry : order) {
        if (!first) out.append(style.item_separator, false);
        first = false;
        FR_TRY(append_json_break(meter, out, style, depth + 1));
        FR_TRY(append_json_key(meter, out, entry->first, style));
        out.append(style.key_separator, false);
        FR_TRY(append_json(meter, out, entry->second, style, depth + 1));
    }
    FR_TRY(append_json_break(meter, out, style, depth));
    out.append("}", false);
    return {};
}
}  // namespace

Status append_json(Meter& meter, Text& out, const Value& value, const JsonStyle& style, int depth) {
    FR_TRY(check(meter, out, depth));
    switch (value.kind()) {
        case Kind::kNone:
            append_scalar(out, "null", value);
            return {};
        case Kind::kBool:
            append_scalar(out, value.as_bool() ? "true" : "false", value);
            return {};
        case Kind::kInt:
            append_scalar(out, fmt::format("{}", value.as_int()), value);
            return {};
        case Kind::kFloat:
            append_scalar(out, json_double(value.as_double()), value);
            return {};
        case Kind::kString:
            return append_json_string(meter, out, value.text(), style.ensure_ascii);
        case Kind::kDict:
            return append_json_dict(meter, out, value.dict(), style, depth);
        case Kind::kList:
        case Kind::kTuple: {
            const auto& items = value.sequence().items;
            if (items.empty()) {
                out.append("[]", false);
                return {};
            }
            out.append("[", false);
            bool first = true;
            for (const Value& item : items) {
                if (!first) out.append(style.item_separator, false);
                first = false;
                FR_TRY(append_json_break(meter, out, style, depth + 1));
                FR_TRY(append_json(meter, out, item, style, depth + 1));
            }
            FR_TRY(append_json_break(meter, out, style, depth));
            out.append("]", false);
            return {};
        }
        default:
            return bad_input("tojson: a value of type {} is not possible in JSON", type_name(value));
    }
}

}  // namespace frontier::jinja

// The methods of str.
#include <algorithm>

#include "text/jinja_builtins.h"

namespace frontier::jinja {

namespace {

struct MethodCall {
    Interpreter& interpreter;
    const Text& text;
    bool markup;
    const CallArgs& args;
    std::string_view name;

    Meter& meter() const { return interpreter.meter(); }
    Result<Value> make(Text out) const { return interpreter.make_string(std::move(out), markup); }
};

Result<Value> split_space(const MethodCall& call, std::int64_t limit) {
    const std::string& bytes = call.text.bytes();
    std::vector<Value> parts;
    std::size_t position = skip_space(bytes, 0);
    while (position < bytes.size()) {
        std::size_t end = position;
        if (limit >= 0 && static_cast<std::int64_t>(parts.size()) >= limit) {
            end = bytes.size();  // the rest, with its trailing space
        } else {
            while (end < bytes.size()) {
                const Character c = character_at(bytes, end);
                if (is_space(c.code)) break;
                end += c.size_bytes;
            }
        }
        FR_ASSIGN(Value part, call.make(call.text.slice(position, end)));
        parts.push_back(std::move(part));
        position = skip_space(bytes, end);
    }
    return call.interpreter.make_list(std::move(parts));
}

// From the right, with a limit that leaves the rest of the words together.
Result<Value> rsplit_space(const MethodCall& call, std::int64_t limit) {
    const std::string& bytes = call.text.bytes();
    std::vector<Value> parts;
    std::size_t end = trim_space_end(bytes, 0, bytes.size());
    while (end > 0) {
        std::size_t begin = end;
        if (static_cast<std::int64_t>(parts.size()) >= limit) {
            begin = 0;  // the rest, with its leading space
        } else {
            while (begin > 0 && trim_space_end(bytes, 0, begin) == begin) --begin;
        }
        FR_ASSIGN(Value part, call.make(call.text.slice(begin, end)));
        parts.push_back(std::move(part));
        if (static_cast<std::int64_t>(parts.size()) > limit) break;
        end = trim_space_end(bytes, 0, begin);
    }
    std::reverse(parts.begin(), parts.end());
    return call.interpreter.make_list(std::move(parts));
}

// Non-overlapping occurrences counted from the right, positions ascending.
Result<std::vector<std::size_t>> find_from_right(Meter& meter, std::string_view bytes, std::string_view needle,
                                                 std::int64_t limit) {
    FR_TRY(meter.allocate(bytes.size() + needle.size()));
    const std::string reversed(bytes.rbegin(), bytes.rend());
    const std::string reversed_needle(needle.rbegin(), needle.rend());
    std::vector<std::size_t> found;
    for (std::size_t at = find_bytes(reversed, reversed_needle, 0);
         at != std::string::npos && (limit < 0 || static_cast<std::int64_t>(found.size()) < limit);
         at = find_bytes(reversed, reversed_needle, at + needle.size())) {
        FR_TRY(meter.allocate(sizeof(std::size_t)));
        found.push_back(bytes.size() - at - needle.size());
    }
    std::reverse(found.begin(), found.end());
    return found;
}

Result<Value> split(const MethodCall& call) {
    FR_ASSIGN(const BoundArgs bound, bind(call.name, call.args, {"sep", "maxsplit"}));
    std::int64_t limit = -1;
    if (bound.given[1]) {
        FR_ASSIGN(limit, to_integer(bound.values[1], call.name));
    }
    const bool from_right = call.name == "rsplit";
    if (!bound.given[0] || bound.values[0].is(Kind::kNone)) {
        return from_right && limit >= 0 ? rsplit_space(call, limit) : split_space(call, limit);
    }
    FR_ASSIGN(const Text* separator, to_string_argument(bound.values[0], call.name));
    if (separator->empty()) return bad_input("{}: the separator is empty", call.name);
    const std::string& bytes = call.text.bytes();
    FR_TRY(call.meter().scan(bytes.size() + separator->size()));
    std::vector<std::size_t> cuts;
    if (from_right && limit >= 0) {
        FR_ASSIGN(cuts, find_from_right(call.meter(), bytes, separator->bytes(), limit));
    } else {
        for (std::size_t at = find_bytes(bytes, separator->bytes(), 0);
             at != std::string::npos && (limit < 0 || static_cast<std::int64_t>(cuts.size()) < limit);
             at = find_bytes(bytes, separator->bytes(), at + separator->size())) {
            FR_TRY(call.meter().allocate(sizeof(Value)));
            cuts.push_back(at);
        }
    }
    std::vector<Value> parts;
    std::size_t position = 0;
    for (const std::size_t cut : cuts) {
        FR_ASSIGN(Value part, call.make(call.text.slice(position, cut)));
        parts.push_back(std::move(part));
        position = cut + separator->size();
    }
    FR_ASSIGN(Value rest, call.make(call.text.slice(position, bytes.size())));
    parts.push_back(std::move(rest));
    return call.interpreter.make_list(std::move(parts));
}

Result<Value> splitlines(const MethodCall& call) {
    FR_ASSIGN(const BoundArgs bound, bind(call.name, call.args, {"keepends"}));
    const bool keep_ends = bound.given[0] && truthy(bound.values[0]);
    const std::string& bytes = call.text.bytes();
    const auto ends_line = [](std::int32_t code) {
        return (code >= 0x0A && code <= 0x0D) || (code >= 0x1C && code <= 0x1E) || code == 0x85 || code == 0x2028 ||
               code == 0x2029;
    };
    std::vector<Value> lines;
    std::size_t begin = 0;
    while (begin < bytes.size()) {
        std::size_t end = begin;
        std::size_t next = bytes.size();
        for (std::size_t i = begin; i < bytes.size();) {
            const Character c = character_at(bytes, i);
            end = i + c.size_bytes;
            if (ends_line(c.code)) {
                next = end;
                if (c.code == '\r' && next < bytes.size() && bytes[next] == '\n') ++next;
                end = keep_ends ? next : i;
                break;
            }
            i = end;
        }
        FR_ASSIGN(Value line, call.make(call.text.slice(begin, end)));
        lines.push_back(std::move(line));
        begin = next;
    }
    return call.interpreter.make_list(std::move(lines));
}

Result<Value> partition(const MethodCall& call) {
    FR_ASSIGN(const BoundArgs bound, bind(call.name, call.args, {"sep"}, 1));
    FR_ASSIGN(const Text* separator, to_string_argument(bound.values[0], call.name));
    if (separator->empty()) return bad_input("{}: the separator is empty", call.name);
    const std::string& bytes = call.text.bytes();
    FR_TRY(call.meter().scan(bytes.size() + separator->size()));
    std::size_t at = find_bytes(bytes, separator->bytes(), 0);
    const bool from_right = call.name == "rpartition";
    if (from_right) {
        FR_ASSIGN(const auto found, find_from_right(call.meter(), bytes, separator->bytes(), 1));
        at = found.empty() ? std::string::npos : found[0];
    }
    Text parts[3];
    if (at == std::string::npos) {
        parts[from_right ? 2 : 0] = call.text;
    } else {
        parts[0] = call.text.slice(0, at);
        parts[1] = *separator;
        parts[2] = call.text.slice(at + separator->size(), bytes.size());
    }
    std::vector<Value> items;
    for (Text& part : parts) {
        FR_ASSIGN(Value item, call.make(std::move(part)));
        items.push_back(std::move(item));
    }
    return make_sequence(call.meter(), Kind::kTuple, std::move(items));
}

// Byte bounds of the optional start and end arguments, which count characters.
Result<std::pair<std::size_t, std::size_t>> bounds(const MethodCall& call, const Value* start, const Value* end) {
    const std::string& bytes = call.text.bytes();
    std::pair<std::size_t, std::size_t> out{0, bytes.size()};
    if (start == nullptr && end == nullptr) return out;
    FR_TRY(call.meter().scan(bytes.size()));
    const auto size = static_cast<std::int64_t>(count_characters(bytes));
    const auto resolve = [&](const Value* value, std::int64_t absent) -> Result<std::int64_t> {
        if (value == nullptr || value->is(Kind::kNone)) return absent;
        FR_ASSIGN(const std::int64_t index, to_integer(*value, call.name));
        return index < 0 ? std::max<std::int64_t>(std::max(index, -size) + size, 0) : index;
    };
    FR_ASSIGN(const std::int64_t first, resolve(start, 0));
    FR_ASSIGN(const std::int64_t last, resolve(end, size));
    out.first = first > size ? std::string::npos : offset_of_character(bytes, static_cast<std::size_t>(first));
    out.second = offset_of_character(bytes, static_cast<std::size_t>(std::min(last, size)));
    return out;
}

Result<Value> starts_or_ends(const MethodCall& call) {
    FR_ASSIGN(const BoundArgs bound, bind(call.name, call.args, {"prefix", "start", "end"}, 1));
    FR_ASSIGN(const auto range, bounds(call, bound.find(1), bound.find(2)));
    std::vector<Value> candidates = {bound.values[0]};
    if (bound.values[0].is(Kind::kTuple)) candidates = bound.values[0].sequence().items;
    for (const Value& candidate : candidates) {
        FR_ASSIGN(const Text* affix, to_string_argument(candidate, call.name));
        FR_TRY(call.meter().scan(affix->size()));
        if (range.first == std::string::npos || range.first > range.second) continue;
        const std::string_view view =
            std::string_view(call.text.bytes()).substr(range.first, range.second - range.first);
        if (call.name == "startswith" ? view.starts_with(affix->bytes()) : view.ends_with(affix->bytes())) {
            return Value::boolean(true);
        }
    }
    return Value::boolean(false);
}

Result<Value> find(const MethodCall& call) {
    FR_ASSIGN(const BoundArgs bound, bind(call.name, call.args, {"sub", "start", "end"}, 1));
    FR_ASSIGN(const Text* needle, to_string_argument(bound.values[0], call.name));
    FR_ASSIGN(const auto range, bounds(call, bound.find(1), bound.find(2)));
    FR_TRY(call.meter().scan(call.text.size() + needle->size()));
    const bool is_count = call.name == "count";
    std::size_t at = std::string::npos;
    std::int64_t count = 0;
    if (range.first != std::string::npos && range.first <= range.second) {
        const std::string_view view =
            std::string_view(call.text.bytes()).substr(range.first, range.second - range.first);
        if (is_count && needle->empty()) {
            count = static_cast<std::int64_t>(count_characters(view)) + 1;
        } else if (is_count) {
            for (std::size_t i = find_bytes(view, needle->bytes(), 0); i != std::string::npos;
                 i = find_bytes(view, needle->bytes(), i + needle->size())) {
                ++count;
            }
        } else if (call.name.starts_with("r")) {
            FR_ASSIGN(const auto found, find_from_right(call.meter(), view, needle->bytes(), 1));
            if (!found.empty()) at = range.first + found[0];
        } else {
            at = find_bytes(view, needle->bytes(), 0);
            if (at != std::string::npos) at += range.first;
        }
    }
    if (is_count) return Value::integer(count);
    if (at == std::string::npos) {
        if (call.name.ends_with("index")) return bad_input("{}: the substring is not there", call.name);
        return Value::integer(-1);
    }
    const auto characters = count_characters(std::string_view(call.text.bytes()).substr(0, at));
    return Value::integer(static_cast<std::int64_t>(characters));
}

Result<Value> replace(const MethodCall& call) {
    FR_ASSIGN(const BoundArgs bound, bind(call.name, call.args, {"old", "new", "count"}, 2));
    Text parts[2];
    for (std::size_t i = 0; i < 2; ++i) {
        FR_ASSIGN(const Text* part, to_string_argument(bound.values[i], call.name));
        parts[i] = *part;
        if (call.markup) {
            FR_ASSIGN(parts[i], escape_html(call.interpreter, bound.values[i]));
        }
    }
    std::int64_t count = -1;
    if (bound.given[2]) {
        FR_ASSIGN(count, to_integer(bound.values[2], call.name));
    }
    FR_ASSIGN(Text out, replace_text(call.interpreter, call.text, parts[0], parts[1], count));
    return call.make(std::move(out));
}

Result<Value> join(const MethodCall& call) {
    FR_ASSIGN(const BoundArgs bound, bind(call.name, call.args, {"iterable"}, 1));
    FR_ASSIGN(const auto items, call.interpreter.iterate(bound.values[0]));
    Text out;
    bool first = true;
    for (const Value& item : items->items) {
        FR_ASSIGN(const Text* text, to_string_argument(item, "join"));
        if (!first) out.append(call.text);
        first = false;
        if (call.markup) {
            FR_ASSIGN(const Text escaped, escape_html(call.interpreter, item));
            out.append(escaped);
        } else {
            out.append(*text);
        }
        FR_TRY(call.meter().scan(call.text.cost_bytes() + text->cost_bytes()));
        FR_TRY(call.meter().check_string(out.cost_bytes()));
    }
    return call.make(std::move(out));
}

// isdigit and its like: true if the text is not empty and every character passes.
Result<Value> all_characters(const MethodCall& call, bool (*passes)(std::int32_t)) {
    FR_TRY(bind(call.name, call.args, {}));
    FR_TRY(call.meter().scan(call.text.size()));
    const std::string& bytes = call.text.bytes();
    for (std::size_t i = 0; i < bytes.size();) {
        const Character c = character_at(bytes, i);
        if (!passes(c.code)) return Value::boolean(false);
        i += c.size_bytes;
    }
    return Value::boolean(!bytes.empty());
}

// isupper, islower: at least one cased character and none of the other case.
Result<Value> is_all_case(const MethodCall& call, bool upper) {
    FR_TRY(bind(call.name, call.args, {}));
    FR_TRY(call.meter().scan(call.text.size()));
    bool any = false;
    const std::string& bytes = call.text.bytes();
    for (std::size_t i = 0; i < bytes.size();) {
        const Character c = character_at(bytes, i);
        if (is_cased(c.code)) {
            if (upper ? !is_upper(c.code) : !is_lower(c.code)) return Value::boolean(false);
            any = true;
        }
        i += c.size_bytes;
    }
    return Value::boolean(any);
}

Result<Value> pad(const MethodCall& call) {
    FR_ASSIGN(const BoundArgs bound, bind(call.name, call.args, {"width", "fillchar"}, 1));
    FR_ASSIGN(std::int64_t width, to_integer(bound.values[0], call.name));
    width = std::max<std::int64_t>(width, 0);
    if (width > kMaxFieldWidth) return bad_input("{}: the width {} is above {}", call.name, width, kMaxFieldWidth);
    Text fill(call.name == "zfill" ? "0" : " ");
    if (bound.given[1]) {
        FR_ASSIGN(const Text* given, to_string_argument(bound.values[1], call.name));
        if (count_characters(given->bytes()) != 1) return bad_input("{}: the fill is not one character", call.name);
        fill = *given;
    }
    FR_TRY(call.meter().scan(call.text.size()));
    const auto size = static_cast<std::int64_t>(count_characters(call.text.bytes()));
    const std::int64_t missing = std::max<std::int64_t>(width - size, 0);
    // center: the odd space goes left if the width is odd.
    std::int64_t left = missing / 2 + (missing & width & 1);
    if (call.name == "ljust") left = 0;
    if (call.name == "rjust" || call.name == "zfill") left = missing;
    Text out;
    std::size_t body = 0;
    const std::string& bytes = call.text.bytes();
    if (call.name == "zfill" && !bytes.empty() && (bytes[0] == '-' || bytes[0] == '+')) body = 1;
    out.append_slice(call.text, 0, body);
    for (std::int64_t i = 0; i < left; ++i) out.append(fill);
    out.append_slice(call.text, body, bytes.size());
    for (std::int64_t i = left; i < missing; ++i) out.append(fill);
    return call.make(std::move(out));
}

Result<Value> remove_affix(const MethodCall& call) {
    FR_ASSIGN(const BoundArgs bound, bind(call.name, call.args, {"affix"}, 1));
    FR_ASSIGN(const Text* affix, to_string_argument(bound.values[0], call.name));
    const std::string& bytes = call.text.bytes();
    if (call.name == "removeprefix" && bytes.starts_with(affix->bytes())) {
        return call.make(call.text.slice(affix->size(), bytes.size()));
    }
    if (call.name == "removesuffix" && bytes.ends_with(affix->bytes())) {
        return call.make(call.text.slice(0, bytes.size() - affix->size()));
    }
    return call.make(call.text);
}

Result<Value> recase(const MethodCall& call) {
    FR_TRY(bind(call.name, call.args, {}));
    const Casing casing = call.name == "upper"        ? Casing::kUpper
                          : call.name == "title"      ? Casing::kTitle
                          : call.name == "capitalize" ? Casing::kCapitalize
                          : call.name == "swapcase"   ? Casing::kSwap
                                                      : Casing::kLower;
    return change_case(call.interpreter, call.text, casing, call.markup);
}

Result<Value> strip(const MethodCall& call) {
    FR_ASSIGN(const BoundArgs bound, bind(call.name, call.args, {"chars"}));
    return strip_text(call.interpreter, call.text, bound.find(0), call.name != "rstrip", call.name != "lstrip",
                      call.markup);
}

Result<Value> classify(const MethodCall& call) {
    if (call.name == "isalpha") return all_characters(call, is_letter);
    if (call.name == "isspace") return all_characters(call, is_space);
    if (call.name == "isupper" || call.name == "islower") return is_all_case(call, call.name == "isupper");
    if (call.name == "isalnum") {
        return all_characters(call, [](std::int32_t code) { return code != '_' && is_word_character(code); });
    }
    return all_characters(call, is_decimal_digit);
}

using TextMethod = Result<Value> (*)(const MethodCall&);
constexpr std::pair<std::string_view, TextMethod> kTextMethods[] = {
    {"strip", strip},         {"lstrip", strip},
    {"rstrip", strip},        {"split", split},
    {"rsplit", split},        {"splitlines", splitlines},
    {"partition", partition}, {"rpartition", partition},
    {"replace", replace},     {"startswith", starts_or_ends},
    {"join", join},           {"endswith", starts_or_ends},
    {"find", find},           {"rfind", find},
    {"index", find},          {"rindex", find},
    {"count", find},          {"upper", recase},
    {"lower", recase},        {"title", recase},
    {"capitalize", recase},   {"swapcase", recase},
    {"casefold", recase},     {"isdigit", classify},
    {"isdecimal", classify},  {"isnumeric", classify},
    {"isalpha", classify},    {"isalnum", classify},
    {"isspace", classify},    {"isupper", classify},
    {"islower", classify},    {"center", pad},
    {"ljust", pad},           {"rjust", pad},
    {"zfill", pad},           {"removeprefix", remove_affix},
    {"format", nullptr},      {"removesuffix", remove_affix},
};

const std::pair<std::string_view, TextMethod>* find_text_method(std::string_view name) {
    return std::find_if(std::begin(kTextMethods), std::end(kTextMethods),
                        [name](const auto& entry) { return entry.first == name; });
}

}  // namespace

bool has_text_method(std::string_view name) {
    return find_text_method(name) != std::end(kTextMethods);
}

Result<Value> call_text_method(Interpreter& interpreter, const Value& self, std::string_view name,
                               const CallArgs& args) {
    if (name == "format") return format_braces(interpreter, self, args);
    const auto* entry = find_text_method(name);
    if (entry == std::end(kTextMethods)) return bad_input("str has no method '{}'", name);
    return entry->second({interpreter, self.text(), self.markup(), args, name});
}

}  // namespace frontier::jinja

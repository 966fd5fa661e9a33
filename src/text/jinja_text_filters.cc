// Filters that make text, and those that convert between text and numbers.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <span>

#include "text/jinja_builtins.h"

namespace frontier::jinja {

namespace {

bool is_markup(const Value& value) {
    return value.is(Kind::kString) && value.markup();
}

Result<Value> upper(Interpreter& interpreter, const Value& subject, const CallArgs& args) {
    FR_TRY(bind("upper", args, {}));
    FR_ASSIGN(const Text text, interpreter.to_text(subject));
    return change_case(interpreter, text, Casing::kUpper, is_markup(subject));
}

Result<Value> lower(Interpreter& interpreter, const Value& subject, const CallArgs& args) {
    FR_TRY(bind("lower", args, {}));
    FR_ASSIGN(const Text text, interpreter.to_text(subject));
    return change_case(interpreter, text, Casing::kLower, is_markup(subject));
}

Result<Value> capitalize(Interpreter& interpreter, const Value& subject, const CallArgs& args) {
    FR_TRY(bind("capitalize", args, {}));
    FR_ASSIGN(const Text text, interpreter.to_text(subject));
    return change_case(interpreter, text, Casing::kCapitalize, is_markup(subject));
}

// Jinja's own title case: a word begins after white space, '-', '(', '{', '[' or '<', not after an apostrophe. The
// first character is mapped to upper case, not to title case.
Result<Value> title(Interpreter& interpreter, const Value& subject, const CallArgs& args) {
    FR_TRY(bind("title", args, {}));
    FR_ASSIGN(const Text text, interpreter.to_text(subject));
    Text out;
    TaintCursor taint(text);
    bool begins_word = true;
    std::string piece;
    for (std::size_t i = 0; i < text.size();) {
        const Character c = character_at(text.bytes(), i);
        piece.clear();
        append_mapped(piece, std::string_view(text.bytes()).substr(i, c.size_bytes), c,
                      begins_word ? CaseMapping::kUpper : CaseMapping::kLower);
        out.append(piece, taint.at(i));
        begins_word =
            is_space(c.code) || c.code == '-' || c.code == '(' || c.code == '{' || c.code == '[' || c.code == '<';
        i += c.size_bytes;
    }
    return interpreter.make_string(std::move(out));
}

Result<Value> trim(Interpreter& interpreter, const Value& subject, const CallArgs& args) {
    FR_ASSIGN(const BoundArgs bound, bind("trim", args, {"chars"}));
    FR_ASSIGN(const Text text, interpreter.to_text(subject));
    return strip_text(interpreter, text, bound.find(0), true, true, is_markup(subject));
}

Result<Value> string(Interpreter& interpreter, const Value& subject, const CallArgs& args) {
    FR_TRY(bind("string", args, {}));
    if (subject.is(Kind::kString)) return subject;
    FR_ASSIGN(Text text, interpreter.to_text(subject));
    return interpreter.make_string(std::move(text));
}

Result<Value> replace(Interpreter& interpreter, const Value& subject, const CallArgs& args) {
    FR_ASSIGN(const BoundArgs bound, bind("replace", args, {"old", "new", "count"}, 2));
    std::int64_t count = -1;
    if (bound.given[2] && !bound.values[2].is(Kind::kNone)) {
        FR_ASSIGN(count, to_integer(bound.values[2], "replace"));
    }
    FR_ASSIGN(const Text text, interpreter.to_text(subject));
    FR_ASSIGN(const Text from, interpreter.to_text(bound.values[0]));
    FR_ASSIGN(const Text to, interpreter.to_text(bound.values[1]));
    FR_ASSIGN(Text out, replace_text(interpreter, text, from, to, count));
    return interpreter.make_string(std::move(out));
}

Result<Value> safe(Interpreter& interpreter, const Value& subject, const CallArgs& args) {
    FR_TRY(bind("safe", args, {}));
    FR_ASSIGN(Text text, interpreter.to_text(subject));
    return interpreter.make_string(std::move(text), true);
}

Result<Value> escape(Interpreter& interpreter, const Value& subject, const CallArgs& args) {
    FR_TRY(bind("escape", args, {}));
    FR_ASSIGN(Text text, escape_html(interpreter, subject));
    return interpreter.make_string(std::move(text), true);
}

Result<Value> force_escape(Interpreter& interpreter, const Value& subject, const CallArgs& args) {
    FR_TRY(bind("forceescape", args, {}));
    FR_ASSIGN(Text text, interpreter.to_text(subject));
    FR_ASSIGN(Text escaped, escape_html(interpreter, Value::string(std::move(text))));
    return interpreter.make_string(std::move(escaped), true);
}

// indent(width=4, first=False, blank=False): width is a number of spaces or the prefix itself.
Result<Value> indent(Interpreter& interpreter, const Value& subject, const CallArgs& args) {
    FR_ASSIGN(const BoundArgs bound, bind("indent", args, {"width", "first", "blank"}));
    Text prefix(std::string(4, ' '));
    if (bound.given[0] && bound.values[0].is(Kind::kString)) {
        prefix = bound.values[0].text();
    } else if (bound.given[0]) {
        FR_ASSIGN(const std::int64_t width, to_integer(bound.values[0], "indent"));
        if (width > kMaxFieldWidth) return bad_input("indent: the width {} is above {}", width, kMaxFieldWidth);
        prefix = Text(std::string(static_cast<std::size_t>(std::max<std::int64_t>(width, 0)), ' '));
    }
    const bool first = bound.given[1] && truthy(bound.values[1]);
    const bool blank = bound.given[2] && truthy(bound.values[2]);
    if (!subject.is(Kind::kString)) return bad_input("indent needs a string, not {}", type_name(subject));
    const Text& text = subject.text();
    FR_TRY(interpreter.meter().scan(text.size()));
    Text out;
    for (std::size_t begin = 0; begin <= text.size();) {
        const std::size_t newline = std::min(text.bytes().find('\n', begin), text.size());
        if (begin == 0 ? first : (blank || newline > begin)) {
            FR_TRY(interpreter.meter().scan(prefix.cost_bytes()));
            FR_TRY(interpreter.meter().check_string(out.size() + prefix.size()));
            out.append(prefix);
        }
        out.append_slice(text, begin, std::min(newline + 1, text.size()));
        begin = newline + 1;
    }
    return interpreter.make_string(std::move(out), subject.markup());
}

Result<Value> center(Interpreter& interpreter, const Value& subject, const CallArgs& args) {
    FR_ASSIGN(const BoundArgs bound, bind("center", args, {"width"}));
    FR_ASSIGN(Text text, interpreter.to_text(subject));
    CallArgs width;
    width.positional.push_back(bound.given[0] ? bound.values[0] : Value::integer(80));
    return call_text_method(interpreter, Value::string(std::move(text)), "center", width);
}

Result<Value> wordcount(Interpreter& interpreter, const Value& subject, const CallArgs& args) {
    FR_TRY(bind("wordcount", args, {}));
    FR_ASSIGN(const Text text, interpreter.to_text(subject));
    std::int64_t count = 0;
    bool in_word = false;
    for (std::size_t i = 0; i < text.size();) {
        const Character c = character_at(text.bytes(), i);
        const bool is_word = is_word_character(c.code);
        if (is_word && !in_word) ++count;
        in_word = is_word;
        i += c.size_bytes;
    }
    return Value::integer(count);
}

// truncate(length=255, killwords=False, end='...', leeway=5)
Result<Value> truncate(Interpreter& interpreter, const Value& subject, const CallArgs& args) {
    FR_ASSIGN(const BoundArgs bound, bind("truncate", args, {"length", "killwords", "end", "leeway"}));
    std::int64_t length = 255;
    std::int64_t leeway = 5;
    Text end("...");
    if (bound.given[0]) {
        FR_ASSIGN(length, to_integer(bound.values[0], "truncate"));
    }
    if (bound.given[2]) {
        FR_ASSIGN(const Text* given, to_string_argument(bound.values[2], "truncate"));
        end = *given;
    }
    if (bound.given[3] && !bound.values[3].is(Kind::kNone)) {
        FR_ASSIGN(leeway, to_integer(bound.values[3], "truncate"));
    }
    const auto end_size = static_cast<std::int64_t>(count_characters(end.bytes()));
    if (length < end_size || leeway < 0) return bad_input("truncate: length {} or leeway {} too small", length, leeway);
    FR_ASSIGN(const Text* text, to_string_argument(subject, "truncate"));
    FR_TRY(interpreter.meter().scan(text->size()));
    const auto size = static_cast<std::int64_t>(count_characters(text->bytes()));
    if (size - leeway <= length) return subject;
    const std::size_t cut = offset_of_character(text->bytes(), static_cast<std::size_t>(length - end_size));
    Text out = text->slice(0, cut);
    if (!bound.given[1] || !truthy(bound.values[1])) {
        const std::size_t space = out.bytes().rfind(' ');
        if (space != std::string::npos) out = out.slice(0, space);
    }
    out.append(end);
    return interpreter.make_string(std::move(out));
}

// tojson as Hugging Face defines it: json.dumps without HTML escapes.
Result<Value> tojson(Interpreter& interpreter, const Value& subject, const CallArgs& args) {
    FR_ASSIGN(const BoundArgs bound, bind("tojson", args, {"ensure_ascii", "indent", "separators", "sort_keys"}));
    JsonStyle style;
    bool untrusted_style = false;
    style.ensure_ascii = bound.given[0] && truthy(bound.values[0]);
    style.sort_keys = bound.given[3] && truthy(bound.values[3]);
    if (bound.given[1] && !bound.values[1].is(Kind::kNone)) {
        if (bound.values[1].is(Kind::kString)) {
            style.indent = bound.values[1].bytes();
            untrusted_style |= bound.values[1].text().any_untrusted();
        } else {
            FR_ASSIGN(const std::int64_t width, to_integer(bound.values[1], "tojson"));
            if (width > kMaxFieldWidth) return bad_input("tojson: the indent {} is above {}", width, kMaxFieldWidth);
            style.indent = std::string(static_cast<std::size_t>(std::max<std::int64_t>(width, 0)), ' ');
        }
        style.item_separator = ",";
    }
    if (bound.given[2] && !bound.values[2].is(Kind::kNone)) {
        const Value& pair = bound.values[2];
        const bool is_pair = (pair.is(Kind::kTuple) || pair.is(Kind::kList)) && pair.sequence().items.size() == 2 &&
                             pair.sequence().items[0].is(Kind::kString) && pair.sequence().items[1].is(Kind::kString);
        if (!is_pair) return bad_input("tojson: separators are two strings");
        style.item_separator = pair.sequence().items[0].bytes();
        style.key_separator = pair.sequence().items[1].bytes();
        for (const Value& item : pair.sequence().items) untrusted_style |= item.text().any_untrusted();
    }
    Text out;
    FR_TRY(append_json(interpreter.meter(), out, subject, style));
    if (untrusted_style) out.distrust();
    return interpreter.make_string(std::move(out));
}

Result<Value> format(Interpreter& interpreter, const Value& subject, const CallArgs& args) {
    if (!args.positional.empty() && !args.named.empty()) {
        return bad_input("format takes positional or keyword arguments, not both");
    }
    FR_ASSIGN(Text text, interpreter.to_text(subject));
    const Value format_string = Value::string(std::move(text));
    if (!args.named.empty()) {
        std::vector<std::pair<Value, Value>> entries;
        entries.reserve(args.named.size());
        for (const auto& [name, value] : args.named) entries.emplace_back(Value::string(name), value);
        FR_ASSIGN(const Value dict, make_dict(interpreter.meter(), std::move(entries)));
        return format_percent(interpreter, format_string, dict);
    }
    FR_ASSIGN(const Value tuple, make_sequence(interpreter.meter(), Kind::kTuple, args.positional));
    return format_percent(interpreter, format_string, tuple);
}

constexpr NamedFilter kTextFilters[] = {
    {"upper", upper},
    {"lower", lower},
    {"capitalize", capitalize},
    {"title", title},
    {"trim", trim},
    {"string", string},
    {"replace", replace},
    {"safe", safe},
    {"escape", escape},
    {"e", escape},
    {"forceescape", force_escape},
    {"indent", indent},
    {"center", center},
    {"wordcount", wordcount},
    {"truncate", truncate},
    {"tojson", tojson},
    {"format", format},
};

// Numbers as int() and float() read them: white space around, underscores between digits.
std::string clean_number(std::string_view text) {
    const std::size_t begin = skip_space(text, 0);
    const std::size_t end = trim_space_end(text, begin, text.size());
    std::string out;
    for (std::size_t i = begin; i < end; ++i) {
        const bool between = i > begin && i + 1 < end && text[i - 1] >= '0' && text[i - 1] <= '9' &&
                             text[i + 1] >= '0' && text[i + 1] <= '9';
        if (text[i] == '_' && between) continue;
        out += text[i];
    }
    if (out.starts_with('+') && out.size() > 1 && out[1] != '-') out = out.substr(1);
    return out;
}

std::optional<double> parse_double(std::string_view text) {
    const std::string number = clean_number(text);
    double value = 0;
    const auto parsed = std::from_chars(number.data(), number.data() + number.size(), value);
    if (parsed.ptr != number.data() + number.size() || number.empty()) return std::nullopt;
    if (number.find('(') != std::string::npos) return std::nullopt;  // nan(...) is C, not Python
    if (parsed.ec == std::errc::result_out_of_range) {
        const bool tiny = number.find("e-") != std::string::npos || number.find("E-") != std::string::npos;
        const double magnitude = tiny ? 0.0 : std::numeric_limits<double>::infinity();
        return number[0] == '-' ? -magnitude : magnitude;
    }
    if (parsed.ec != std::errc()) return std::nullopt;
    return value;
}

std::optional<std::int64_t> parse_integer(std::string_view text, int base) {
    std::string number = clean_number(text);
    const std::size_t sign = number.starts_with('-') ? 1 : 0;
    if (base != 10 && number.size() > sign + 2 && number[sign] == '0') {
        const char letter = static_cast<char>(number[sign + 1] | 0x20);
        const int prefixed = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 0;
        if (prefixed == base || (base == 0 && prefixed != 0)) {
            number = number.substr(0, sign) + number.substr(sign + 2);
            base = prefixed;
        }
    }
    if (base == 0) base = 10;
    std::int64_t value = 0;
    const auto parsed = std::from_chars(number.data(), number.data() + number.size(), value, base);
    if (parsed.ec != std::errc() || parsed.ptr != number.data() + number.size()) return std::nullopt;
    return value;
}

bool fits_int64(double value) {
    return value >= -0x1p63 && value < 0x1p63;
}

Result<Value> to_int(Interpreter& interpreter, const Value& subject, const CallArgs& args) {
    FR_ASSIGN(const BoundArgs bound, bind("int", args, {"default", "base"}));
    Value fallback = bound.given[0] ? bound.values[0] : Value::integer(0);
    std::int64_t base = 10;
    if (bound.given[1]) {
        FR_ASSIGN(base, to_integer(bound.values[1], "int"));
    }
    if (base != 0 && (base < 2 || base > 36)) return fallback;
    if (subject.is(Kind::kUndefined)) return bad_input("{}", subject.undefined_message());
    if (subject.is_integral()) return Value::integer(subject.as_int(), subject.untrusted());
    if (subject.is(Kind::kFloat)) {
        const double value = std::trunc(subject.as_double());
        if (std::isnan(value)) return fallback;
        if (!fits_int64(value)) return bad_input("int: {} does not fit 64 bits", format_double(value));
        return Value::integer(static_cast<std::int64_t>(value), subject.untrusted());
    }
    if (!subject.is(Kind::kString)) return fallback;
    FR_TRY(interpreter.meter().scan(subject.bytes().size()));
    const bool untrusted = subject.text().any_untrusted();
    if (const auto value = parse_integer(subject.bytes(), static_cast<int>(base))) {
        return Value::integer(*value, untrusted);
    }
    const auto real = parse_double(subject.bytes());
    if (!real || !std::isfinite(*real)) return fallback;
    if (!fits_int64(*real)) return bad_input("int: {} does not fit 64 bits", format_double(*real));
    return Value::integer(static_cast<std::int64_t>(*real), untrusted);
}

Result<Value> to_float(Interpreter& interpreter, const Value& subject, const CallArgs& args) {
    FR_ASSIGN(const BoundArgs bound, bind("float", args, {"default"}));
    Value fallback = bound.given[0] ? bound.values[0] : Value::real(0.0);
    if (subject.is(Kind::kUndefined)) return bad_input("{}", subject.undefined_message());
    if (subject.is_number()) return Value::real(subject.as_double(), subject.untrusted());
    if (!subject.is(Kind::kString)) return fallback;
    FR_TRY(interpreter.meter().scan(subject.bytes().size()));
    const auto value = parse_double(subject.bytes());
    return value ? Value::real(*value, subject.text().any_untrusted()) : fallback;
}

Result<Value> absolute(Interpreter&, const Value& subject, const CallArgs& args) {
    FR_TRY(bind("abs", args, {}));
    if (subject.is(Kind::kUndefined)) return bad_input("{}", subject.undefined_message());
    if (!subject.is_number()) return bad_input("abs needs a number, not {}", type_name(subject));
    if (subject.is(Kind::kFloat)) return Value::real(std::fabs(subject.as_double()), subject.untrusted());
    if (subject.as_int() >= 0) return Value::integer(subject.as_int(), subject.untrusted());
    return negate(subject, true);
}

// round(precision=0, method='common'|'ceil'|'floor')
Result<Value> round(Interpreter&, const Value& subject, const CallArgs& args) {
    FR_ASSIGN(const BoundArgs bound, bind("round", args, {"precision", "method"}));
    std::int64_t precision = 0;
    if (bound.given[0]) {
        FR_ASSIGN(precision, to_integer(bound.values[0], "round"));
    }
    std::string method = "common";
    if (bound.given[1]) {
        FR_ASSIGN(const Text* given, to_string_argument(bound.values[1], "round"));
        method = given->bytes();
    }
    if (method != "common" && method != "ceil" && method != "floor") {
        return bad_input("round: method must be common, ceil or floor");
    }
    if (subject.is(Kind::kUndefined)) return bad_input("{}", subject.undefined_message());
    if (!subject.is_number()) return bad_input("round needs a number, not {}", type_name(subject));
    // Doubles have no more than 324 places either side of the point.
    if (precision < -324 || precision > 324) return bad_input("round: precision {} is out of range", precision);
    const double value = subject.as_double();
    if (method != "common") {
        const double scale = std::pow(10.0, static_cast<double>(precision));
        const double scaled = method == "ceil" ? std::ceil(value * scale) : std::floor(value * scale);
        return Value::real(scaled / scale, subject.untrusted());
    }
    if (subject.is_integral() && precision >= 0) return Value::integer(subject.as_int(), subject.untrusted());
    double rounded = value;
    if (precision < 0) {
        const double scale = std::pow(10.0, static_cast<double>(-precision));
        rounded = std::nearbyint(value / scale) * scale;
    } else if (std::isfinite(value)) {
        // Correctly rounded decimal digits, half to even on the exact binary value: what Python's round does.
        rounded = *parse_double(fmt::format("{:.{}f}", value, static_cast<int>(precision)));
    }
    if (subject.is_integral()) {
        if (!fits_int64(rounded)) return bad_input("round: the result does not fit 64 bits");
        return Value::integer(static_cast<std::int64_t>(rounded), subject.untrusted());
    }
    return Value::real(rounded, subject.untrusted());
}

constexpr NamedFilter kNumberFilters[] = {{"int", to_int}, {"float", to_float}, {"abs", absolute}, {"round", round}};

}  // namespace

std::span<const NamedFilter> text_filters() {
    return kTextFilters;
}
std::span<const NamedFilter> number_filters() {
    return kNumberFilters;
}

}  // namespace frontier::jinja

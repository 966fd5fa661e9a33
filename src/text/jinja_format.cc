// "..." % value and "...".format(...): the conversions that templates use; others are errors that name them.
#include <algorithm>
#include <cmath>

#include "text/jinja_builtins.h"

namespace frontier::jinja {

namespace {

struct Spec {
    Text fill{" "};
    char align = '\0';  // '<', '>', '^' or '=' (after the sign)
    char sign = '-';
    bool alternate = false;
    bool grouping = false;
    std::int64_t width = 0;
    std::int64_t precision = -1;
    char type = '\0';
};

Result<std::int64_t> read_number(std::string_view text, std::size_t& position) {
    std::int64_t value = 0;
    while (position < text.size() && text[position] >= '0' && text[position] <= '9') {
        value = value * 10 + (text[position++] - '0');
        if (value > kMaxFieldWidth) return bad_input("a width or precision above {} in a format", kMaxFieldWidth);
    }
    return value;
}

Text pad(Text body, const Spec& spec, char default_align) {
    const auto size = static_cast<std::int64_t>(count_characters(body.bytes()));
    if (size >= spec.width) return body;
    const std::int64_t missing = spec.width - size;
    const char align = spec.align != '\0' ? spec.align : default_align;
    std::int64_t left = align == '<' ? 0 : align == '^' ? missing / 2 : missing;
    std::size_t sign_bytes = 0;
    const std::string& bytes = body.bytes();
    if (align == '=' && !bytes.empty() && (bytes[0] == '-' || bytes[0] == '+' || bytes[0] == ' ')) sign_bytes = 1;
    Text out = body.slice(0, sign_bytes);
    for (std::int64_t i = 0; i < left; ++i) out.append(spec.fill);
    out.append_slice(body, sign_bytes, body.size());
    for (std::int64_t i = left; i < missing; ++i) out.append(spec.fill);
    return out;
}

std::string group_thousands(const std::string& digits) {
    const std::size_t begin = digits.starts_with('-') ? 1 : 0;
    const std::size_t end = std::min(digits.find_first_not_of("0123456789", begin), digits.size());
    std::string out = digits.substr(0, begin);
    for (std::size_t i = begin; i < end; ++i) {
        if (i > begin && (end - i) % 3 == 0) out += ',';
        out += digits[i];
    }
    return out + digits.substr(end);
}

Result<std::string> format_number(const Value& value, const Spec& spec) {
    const char type = spec.type;
    std::string out;
    if (type == 'd' || type == 'x' || type == 'X' || type == 'o' || type == 'b') {
        std::int64_t number = value.as_int();
        if (value.is(Kind::kFloat)) {
            if (!(std::fabs(value.as_double()) < 0x1p63)) return bad_input("{} is no integer", value.as_double());
            number = static_cast<std::int64_t>(value.as_double());
        }
        const char* prefix = !spec.alternate ? "" : type == 'x' ? "0x" : type == 'X' ? "0X" : type == 'o' ? "0o" : "0b";
        if (type == 'd') prefix = "";
        const std::uint64_t magnitude =
            number < 0 ? std::uint64_t{0} - static_cast<std::uint64_t>(number) : static_cast<std::uint64_t>(number);
        std::string digits = type == 'd'   ? fmt::format("{}", magnitude)
                             : type == 'x' ? fmt::format("{:x}", magnitude)
                             : type == 'X' ? fmt::format("{:X}", magnitude)
                             : type == 'o' ? fmt::format("{:o}", magnitude)
                                           : fmt::format("{:b}", magnitude);
        out = fmt::format("{}{}{}", number < 0 ? "-" : "", prefix, digits);
    } else {
        const double number = type == '%' ? value.as_double() * 100 : value.as_double();
        // More digits than a double can tell apart, few enough for the C library.
        const int precision = static_cast<int>(spec.precision < 0 ? 6 : std::min<std::int64_t>(spec.precision, 400));
        if (!std::isfinite(number)) {
            out = format_double(number);
        } else if (type == 'e' || type == 'E') {
            out = type == 'e' ? fmt::format("{:.{}e}", number, precision) : fmt::format("{:.{}E}", number, precision);
        } else if (type == 'g' || type == 'G') {
            out = type == 'g' ? fmt::format("{:.{}g}", number, precision) : fmt::format("{:.{}G}", number, precision);
        } else {
            out = fmt::format("{:.{}f}", number, precision);
        }
        if (type == '%') out += '%';
    }
    if (spec.grouping) out = group_thousands(out);
    if (spec.sign != '-' && !out.starts_with('-')) out = fmt::format("{}{}", spec.sign, out);
    return out;
}

void truncate_characters(Text& text, std::int64_t precision) {
    if (precision < 0) return;
    text = text.slice(0, offset_of_character(text.bytes(), static_cast<std::size_t>(precision)));
}

// One conversion of a % format, at the character after the %.
struct PercentParser {
    Interpreter& interpreter;
    std::string_view format;
    const Value& arguments;
    std::size_t position = 0;
    std::size_t next_argument = 0;

    Result<Value> take() {
        if (arguments.is(Kind::kTuple)) {
            const auto& items = arguments.sequence().items;
            if (next_argument >= items.size()) return bad_input("not enough arguments for the format string");
            return items[next_argument++];
        }
        if (next_argument++ > 0) return bad_input("not enough arguments for the format string");
        return arguments;
    }

    Result<Value> argument() {
        if (position >= format.size() || format[position] != '(') return Value();
        const std::size_t close = format.find(')', position);
        if (close == std::string_view::npos) return bad_input("a format with '%(' but without ')'");
        if (!arguments.is(Kind::kDict)) return bad_input("a format with names needs a dict");
        const std::string_view key = format.substr(position + 1, close - position - 1);
        const Value* found = arguments.dict().find(key);
        if (found == nullptr) return bad_input("the format names '{}', which is not given", key.substr(0, 100));
        position = close + 1;
        named = true;
        return *found;
    }
    bool named = false;

    Result<Text> convert() {
        named = false;
        FR_ASSIGN(Value value, argument());
        Spec spec;
        for (; position < format.size(); ++position) {
            const char flag = format[position];
            if (flag == '-') {
                spec.align = '<';
            } else if (flag == '0') {
                spec.fill = Text("0");
            } else if (flag == '+' || (flag == ' ' && spec.sign != '+')) {
                spec.sign = flag;
            } else if (flag == '#') {
                spec.alternate = true;
            } else if (flag != ' ') {
                break;
            }
        }
        FR_ASSIGN(spec.width, read_number(format, position));
        if (position < format.size() && format[position] == '.') {
            ++position;
            FR_ASSIGN(spec.precision, read_number(format, position));
        }
        if (position >= format.size()) return bad_input("incomplete format");
        spec.type = format[position++];
        if (spec.type == '%') return Text("%");
        if (!named) {
            FR_ASSIGN(value, take());
        }
        if (spec.type == 's' || spec.type == 'r') {
            Text body;
            FR_TRY(spec.type == 's' ? append_str(interpreter.meter(), body, value)
                                    : append_repr(interpreter.meter(), body, value));
            truncate_characters(body, spec.precision);
            spec.fill = Text(" ");
            return pad(std::move(body), spec, '>');
        }
        if (spec.type == 'i' || spec.type == 'u') spec.type = 'd';
        static constexpr std::string_view kSupported = "dxXoeEfFgG";
        if (kSupported.find(spec.type) == std::string_view::npos) {
            return bad_input("unsupported format character '{}'", spec.type);
        }
        if (!value.is_number()) return bad_input("%{} needs a number, not {}", spec.type, type_name(value));
        FR_ASSIGN(std::string digits, format_number(value, spec));
        if (spec.align != '<' && spec.fill.bytes() == "0") {
            spec.align = '=';
        } else {
            spec.fill = Text(" ");
        }
        return pad(Text(std::move(digits), value.untrusted()), spec, '>');
    }
};

}  // namespace

Result<Value> format_percent(Interpreter& interpreter, const Value& format, const Value& value) {
    const Text& text = format.text();
    const std::string& bytes = text.bytes();
    PercentParser parser{interpreter, bytes, value};
    Text out;
    std::size_t begin = 0;
    for (std::size_t at = bytes.find('%'); at != std::string::npos; at = bytes.find('%', begin)) {
        out.append_slice(text, begin, at);
        parser.position = at + 1;
        FR_ASSIGN(Text piece, parser.convert());
        if (text.any_untrusted_in(at, parser.position)) piece.distrust();  // flags and widths were the caller's
        FR_TRY(interpreter.meter().scan(piece.cost_bytes()));
        FR_TRY(interpreter.meter().check_string(out.size() + piece.size()));
        out.append(piece);
        begin = parser.position;
    }
    out.append_slice(text, begin, bytes.size());
    const bool left_over = value.is(Kind::kTuple)
                               ? parser.next_argument < value.sequence().items.size()
                               : parser.next_argument == 0 && !value.is(Kind::kDict) && !value.is(Kind::kList);
    if (left_over) return bad_input("not all arguments were converted by the format string");
    return interpreter.make_string(std::move(out), format.markup());
}

namespace {

Result<Spec> parse_spec(std::string_view text) {
    Spec spec;
    std::size_t position = 0;
    const auto is_align = [](char c) { return c == '<' || c == '>' || c == '^' || c == '='; };
    if (!text.empty()) {
        const std::size_t first = character_at(text, 0).size_bytes;
        if (first < text.size() && is_align(text[first])) {
            spec.fill = Text(std::string(text.substr(0, first)));
            spec.align = text[first];
            position = first + 1;
        } else if (is_align(text[0])) {
            spec.align = text[0];
            position = 1;
        }
    }
    if (position < text.size() && (text[position] == '+' || text[position] == '-' || text[position] == ' ')) {
        spec.sign = text[position++];
    }
    if (position < text.size() && text[position] == '#') {
        spec.alternate = true;
        ++position;
    }
    if (position < text.size() && text[position] == '0') {
        if (spec.align == '\0') {
            spec.fill = Text("0");
            spec.align = '=';
        }
        ++position;
    }
    FR_ASSIGN(spec.width, read_number(text, position));
    if (position < text.size() && text[position] == ',') {
        spec.grouping = true;
        ++position;
    }
    if (position < text.size() && text[position] == '.') {
        ++position;
        FR_ASSIGN(spec.precision, read_number(text, position));
    }
    if (position < text.size()) spec.type = text[position++];
    if (position != text.size()) return bad_input("unsupported format specification '{}'", text.substr(0, 40));
    return spec;
}

Result<Text> format_value(Interpreter& interpreter, const Value& value, std::string_view spec_text) {
    Text body;
    if (spec_text.empty()) {
        FR_TRY(append_str(interpreter.meter(), body, value));
        return body;
    }
    FR_ASSIGN(Spec spec, parse_spec(spec_text));
    if (value.is(Kind::kString) || value.is(Kind::kUndefined)) {
        if ((spec.type != '\0' && spec.type != 's') || spec.grouping) {
            return bad_input("the format code '{}' is not for a string", spec_text.substr(0, 40));
        }
        FR_TRY(append_str(interpreter.meter(), body, value));
        truncate_characters(body, spec.precision);
        if (spec.align == '=') spec.align = '<';
        return pad(std::move(body), spec, '<');
    }
    static constexpr std::string_view kTypes = "dxXobeEfFgG%";
    if (!value.is_number()) return bad_input("a format code is not for a {}", type_name(value));
    if (spec.type == '\0' && value.is_integral() && !value.is(Kind::kBool)) spec.type = 'd';
    if (spec.type == '\0' && value.is(Kind::kFloat) && spec.precision < 0) {
        return pad(Text(format_double(value.as_double()), value.untrusted()), spec, '>');
    }
    const bool is_real_as_integer =
        value.is(Kind::kFloat) && std::string_view("dxXob").find(spec.type) != std::string_view::npos;
    if (spec.type == '\0' || kTypes.find(spec.type) == std::string_view::npos || is_real_as_integer) {
        return bad_input("unsupported format code '{}' for a {}", spec_text.substr(0, 40), type_name(value));
    }
    FR_ASSIGN(std::string digits, format_number(value, spec));
    return pad(Text(std::move(digits), value.untrusted()), spec, '>');
}

// A field's name: an index, a keyword, and .attribute or [item] after it.
Result<Value> resolve_field(std::string_view field, const CallArgs& args, std::size_t& next_index) {
    const std::size_t head_end = std::min(field.find_first_of(".["), field.size());
    const std::string_view head = field.substr(0, head_end);
    const bool is_index = head.find_first_not_of("0123456789") == std::string_view::npos;
    Value value;
    if (is_index) {
        std::size_t position = 0;
        std::int64_t index = 0;
        if (head.empty()) {
            index = static_cast<std::int64_t>(next_index++);
        } else {
            FR_ASSIGN(index, read_number(head, position));
        }
        if (static_cast<std::size_t>(index) >= args.positional.size()) {
            return bad_input("format: there is no argument {}", index);
        }
        value = args.positional[static_cast<std::size_t>(index)];
    } else {
        const auto found = std::find_if(args.named.begin(), args.named.end(),
                                        [head](const auto& named) { return named.first == head; });
        if (found == args.named.end()) return bad_input("format: there is no argument '{}'", head.substr(0, 100));
        value = found->second;
    }
    if (head_end != field.size()) {
        return bad_input("format: attributes and items in fields ('{}') are not supported", field.substr(0, 100));
    }
    return value;
}

}  // namespace

Result<Value> format_braces(Interpreter& interpreter, const Value& format, const CallArgs& args) {
    const Text& text = format.text();
    const std::string& bytes = text.bytes();
    FR_TRY(interpreter.meter().scan(bytes.size()));
    Text out;
    std::size_t next_index = 0;
    for (std::size_t i = 0; i < bytes.size();) {
        if (bytes[i] != '{' && bytes[i] != '}') {
            const std::size_t end = std::min(bytes.find_first_of("{}", i), bytes.size());
            out.append_slice(text, i, end);
            i = end;
            continue;
        }
        if (i + 1 < bytes.size() && bytes[i + 1] == bytes[i]) {
            out.append_slice(text, i, i + 1);
            i += 2;
            continue;
        }
        const std::size_t close = bytes.find_first_of("{}", i + 1);
        if (bytes[i] == '}' || close == std::string::npos) return bad_input("format: a single '{}'", bytes[i]);
        if (bytes[close] == '{') return bad_input("format: fields within fields are not supported");
        const std::string_view field = std::string_view(bytes).substr(i + 1, close - i - 1);
        const std::size_t colon = std::min(field.find(':'), field.size());
        const std::size_t bang = std::min(field.find('!'), colon);
        FR_ASSIGN(Value value, resolve_field(field.substr(0, bang), args, next_index));
        if (bang < colon) {
            const std::string_view conversion = field.substr(bang + 1, colon - bang - 1);
            Text converted;
            if (conversion == "r") {
                FR_TRY(append_repr(interpreter.meter(), converted, value));
            } else if (conversion == "s") {
                FR_TRY(append_str(interpreter.meter(), converted, value));
            } else {
                return bad_input("format: unsupported conversion '{}'", conversion.substr(0, 40));
            }
            FR_ASSIGN(value, interpreter.make_string(std::move(converted)));
        }
        FR_ASSIGN(Text piece, format_value(interpreter, value, colon < field.size() ? field.substr(colon + 1) : ""));
        if (text.any_untrusted_in(i, close)) piece.distrust();  // fill and width were the caller's
        FR_TRY(interpreter.meter().scan(piece.cost_bytes()));
        FR_TRY(interpreter.meter().check_string(out.size() + piece.size()));
        out.append(piece);
        i = close + 1;
    }
    return interpreter.make_string(std::move(out), format.markup());
}

}  // namespace frontier::jinja

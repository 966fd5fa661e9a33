#include "base/json.h"

#include <cmath>
#include <vector>

namespace frontier {
namespace {

// Bounds that hold before the parser builds anything: "" or what is wrong with the text.
std::string check_bounds(std::string_view text, int max_depth) {
    if (text.find('\0') != std::string_view::npos) return "holds a zero byte";
    std::vector<int> members;  // per open object or array
    bool in_string = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (in_string) {
            if (c == '\\') {
                ++i;
            } else if (c == '"') {
                in_string = false;
            }
        } else if (c == '"') {
            in_string = true;
        } else if (c == '{' || c == '[') {
            members.push_back(0);
            if (std::ssize(members) > max_depth) return fmt::format("JSON is nested deeper than {} levels", max_depth);
        } else if (c == '}' || c == ']') {
            if (!members.empty()) members.pop_back();
        } else if (c == ':' && !members.empty() && ++members.back() > kMaxJsonMembers) {
            return fmt::format("a JSON object has more than {} members", kMaxJsonMembers);
        }
    }
    return {};
}

// The library's message without its identifier in brackets, and short and printable although it quotes the input.
std::string readable(std::string_view message) {
    if (const auto end = message.find("] "); end != std::string_view::npos) message.remove_prefix(end + 2);
    constexpr std::size_t kMostBytes = 160;
    std::string text(message.substr(0, kMostBytes));
    for (char& c : text)
        if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) > 0x7E) c = '?';
    return message.size() > kMostBytes ? text + "..." : text;
}

std::unexpected<Error> wrong_type(const Json& value, std::string_view field, std::string_view where,
                                  std::string_view expected) {
    std::string shown = dump_json(value);
    if (shown.size() > 60) shown = shown.substr(0, 57) + "...";
    return bad_input("{}: field '{}': expected {}, got {} ({})", where, field, expected, value.type_name(), shown);
}

// The member, or nullptr when it is absent or null.
Result<const Json*> find_field(const Json& object, std::string_view field, std::string_view where) {
    if (!object.is_object()) return bad_input("{}: expected a JSON object, got {}", where, object.type_name());
    const auto it = object.find(field);
    return it == object.end() || it->is_null() ? nullptr : &*it;
}

Result<const Json*> require_field(const Json& object, std::string_view field, std::string_view where) {
    FR_ASSIGN(const Json* value, find_field(object, field, where));
    if (value == nullptr) return bad_input("{}: field '{}' is missing", where, field);
    return value;
}

Result<std::int64_t> to_int(const Json& value, std::string_view field, std::string_view where) {
    if (value.is_number_unsigned()) {
        const auto number = value.get<std::uint64_t>();
        if (number > static_cast<std::uint64_t>(INT64_MAX)) return wrong_type(value, field, where, "a 64-bit integer");
        return static_cast<std::int64_t>(number);
    }
    if (value.is_number_integer()) return value.get<std::int64_t>();
    // Some exporters write counts as 4096.0.
    if (value.is_number_float()) {
        const double number = value.get<double>();
        if (std::abs(number) < 9e15 && number == std::floor(number)) return static_cast<std::int64_t>(number);
    }
    return wrong_type(value, field, where, "an integer");
}

Result<double> to_number(const Json& value, std::string_view field, std::string_view where) {
    if (!value.is_number()) return wrong_type(value, field, where, "a number");
    const double number = value.get<double>();
    if (!std::isfinite(number)) return wrong_type(value, field, where, "a finite number");
    return number;
}

Result<std::string> to_string(const Json& value, std::string_view field, std::string_view where) {
    if (!value.is_string()) return wrong_type(value, field, where, "a string");
    return value.get<std::string>();
}

}  // namespace

Result<Json> parse_json(std::string_view text, std::string_view where, int max_depth) {
    if (const std::string problem = check_bounds(text, max_depth); !problem.empty())
        return bad_input("{}: {}", where, problem);
    try {
        return Json::parse(text);
    } catch (const std::exception& e) {  // syntax, or memory
        return bad_input("{}: invalid JSON: {}", where, readable(e.what()));
    }
}

Result<std::int64_t> json_int(const Json& object, std::string_view field, std::string_view where) {
    FR_ASSIGN(const Json* value, require_field(object, field, where));
    return to_int(*value, field, where);
}

Result<std::int64_t> json_int_or(const Json& object, std::string_view field, std::int64_t fallback,
                                 std::string_view where) {
    FR_ASSIGN(const Json* value, find_field(object, field, where));
    if (value == nullptr) return fallback;
    return to_int(*value, field, where);
}

Result<double> json_number(const Json& object, std::string_view field, std::string_view where) {
    FR_ASSIGN(const Json* value, require_field(object, field, where));
    return to_number(*value, field, where);
}

Result<double> json_number_or(const Json& object, std::string_view field, double fallback, std::string_view where) {
    FR_ASSIGN(const Json* value, find_field(object, field, where));
    if (value == nullptr) return fallback;
    return to_number(*value, field, where);
}

Result<bool> json_bool_or(const Json& object, std::string_view field, bool fallback, std::string_view where) {
    FR_ASSIGN(const Json* value, find_field(object, field, where));
    if (value == nullptr) return fallback;
    if (!value->is_boolean()) return wrong_type(*value, field, where, "true or false");
    return value->get<bool>();
}

Result<std::string> json_string(const Json& object, std::string_view field, std::string_view where) {
    FR_ASSIGN(const Json* value, require_field(object, field, where));
    return to_string(*value, field, where);
}

Result<std::string> json_string_or(const Json& object, std::string_view field, std::string_view fallback,
                                   std::string_view where) {
    FR_ASSIGN(const Json* value, find_field(object, field, where));
    if (value == nullptr) return std::string(fallback);
    return to_string(*value, field, where);
}

std::string dump_json(const Json& value) {
    return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace frontier

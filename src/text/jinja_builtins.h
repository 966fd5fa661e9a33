// The filters, tests, methods and functions of the language.
#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "text/jinja_eval.h"

namespace frontier::jinja {

using Filter = Result<Value> (*)(Interpreter&, const Value& subject, const CallArgs& args);
struct NamedFilter {
    std::string_view name;
    Filter filter;
};

bool has_filter(std::string_view name);
bool has_test(std::string_view name);
Filter find_filter(std::string_view name);  // null if there is none

// One table per source file.
std::span<const NamedFilter> text_filters();
std::span<const NamedFilter> number_filters();
std::span<const NamedFilter> sequence_filters();
std::span<const NamedFilter> selection_filters();

// Attributes that values have besides their items: methods, loop variables. Null optional: there is none.
Result<std::optional<Value>> find_attribute(Interpreter& interpreter, const Value& object, std::string_view name);
Result<Value> call_method(Interpreter& interpreter, const MethodObject& method, const CallArgs& args);
Result<Value> call_text_method(Interpreter& interpreter, const Value& self, std::string_view name,
                               const CallArgs& args);
bool has_text_method(std::string_view name);

// "..." % value and "...".format(...).
Result<Value> format_percent(Interpreter& interpreter, const Value& format, const Value& value);
Result<Value> format_braces(Interpreter& interpreter, const Value& format, const CallArgs& args);

// Helpers that filters and methods share.
Result<std::int64_t> to_integer(const Value& value, std::string_view what);  // int or bool
Result<const Text*> to_string_argument(const Value& value, std::string_view what);
enum class Casing : std::uint8_t { kUpper, kLower, kTitle, kCapitalize, kSwap };
// Text with every character mapped, tainted as its source.
Result<Value> change_case(Interpreter& interpreter, const Text& text, Casing casing, bool markup);
Result<Value> strip_text(Interpreter& interpreter, const Text& text, const Value* characters, bool left, bool right,
                         bool markup);
Result<Text> replace_text(Interpreter& interpreter, const Text& text, const Text& from, const Text& to,
                          std::int64_t count);
// &, <, >, ' and " as HTML entities; text that is marked safe already stays.
Result<Text> escape_html(Interpreter& interpreter, const Value& value);
// `path` of map(attribute=...) and its like: names and indices separated by dots.
Result<Value> get_path(Interpreter& interpreter, const Value& object, const Value& path);
// Stable; fails when two items cannot be ordered.
Status sort_by_keys(Interpreter& interpreter, std::vector<std::pair<Value, Value>>& keyed, bool reverse);
Result<Value> fold_case(Interpreter& interpreter, const Value& value);  // strings to lower case

}  // namespace frontier::jinja

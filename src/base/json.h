// JSON glue over nlohmann-json: parsing of hostile text with a depth limit, typed field access with named errors.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "base/result.h"

namespace frontier {

using Json = nlohmann::ordered_json;

// Far deeper than any real configuration file, far shallower than what overflows the parser's or our stack.
inline constexpr int kMaxJsonDepth = 200;

// Members of one object: the ordered object type inserts in linear time, so the cost grows with the square (0.2 s
// here).
inline constexpr int kMaxJsonMembers = 10'000;

// Parses `text`; `where` (a file name, "request body") starts the error line. Nesting beyond
// `max_depth`, objects with more than kMaxJsonMembers members and zero bytes are errors.
Result<Json> parse_json(std::string_view text, std::string_view where, int max_depth = kMaxJsonDepth);

// Typed access: the error names `where`, the field, what was expected and what was there.
// `object` must be a JSON object, otherwise an error. Absent and null fields give `fallback` in the *_or forms.
Result<std::int64_t> json_int(const Json& object, std::string_view field, std::string_view where);
Result<std::int64_t> json_int_or(const Json& object, std::string_view field, std::int64_t fallback,
                                 std::string_view where);
Result<double> json_number(const Json& object, std::string_view field, std::string_view where);
Result<double> json_number_or(const Json& object, std::string_view field, double fallback, std::string_view where);
Result<bool> json_bool_or(const Json& object, std::string_view field, bool fallback, std::string_view where);
Result<std::string> json_string(const Json& object, std::string_view field, std::string_view where);
Result<std::string> json_string_or(const Json& object, std::string_view field, std::string_view fallback,
                                   std::string_view where);

// Serialises on one line; invalid UTF-8 is replaced by U+FFFD, never thrown on.
std::string dump_json(const Json& value);

}  // namespace frontier

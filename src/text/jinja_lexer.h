// Splits a template into text and tokens, with Jinja's white space rules as Hugging Face sets them
// (trim_blocks, lstrip_blocks, no trailing newline).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace frontier::jinja {

enum class TokenKind : std::uint8_t {
    kText,  // outside of tags
    kBlockBegin,
    kBlockEnd,
    kVariableBegin,
    kVariableEnd,
    kName,
    kString,
    kInteger,
    kFloat,
    kOperator,  // text is the operator
    kEnd
};

struct Token {
    TokenKind kind = TokenKind::kEnd;
    int line = 1;
    std::string text;  // names, strings (unescaped), operators, digits without underscores
};

// The last token is kEnd. Errors name the line but not the template.
Result<std::vector<Token>> lex(std::string_view source);

}  // namespace frontier::jinja

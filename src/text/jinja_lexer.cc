#include "text/jinja_lexer.h"

#include <algorithm>
#include <array>

#include "text/jinja_limits.h"
#include "text/jinja_text.h"

namespace frontier::jinja {

namespace {

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

// All line ends become \n, and one at the very end is dropped.
std::string normalise_newlines(std::string_view source) {
    std::string out;
    out.reserve(source.size());
    for (std::size_t i = 0; i < source.size(); ++i) {
        if (source[i] != '\r') {
            out += source[i];
            continue;
        }
        out += '\n';
        if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    }
    if (!out.empty() && out.back() == '\n') out.pop_back();
    return out;
}

class Lexer {
public:
    explicit Lexer(std::string source) : source_(std::move(source)) {}
    Result<std::vector<Token>> run();

private:
    Status lex_outside();
    Status lex_comment(std::size_t begin);
    Status lex_raw(std::size_t begin, std::size_t body);
    Status lex_tag(bool is_block);
    Status lex_token();
    Status lex_string(char quote);
    void lex_number();
    Result<std::string> unescape(std::string_view body) const;
    Result<std::int32_t> hex_escape(std::string_view digits, std::size_t count) const;

    void emit(TokenKind kind, std::string text = {}) { tokens_.push_back({kind, line_, std::move(text)}); }
    void emit_text(std::string_view text) {
        if (!text.empty()) emit(TokenKind::kText, std::string(text));
    }
    std::string_view rest() const { return std::string_view(source_).substr(position_); }
    bool starts_with(std::string_view prefix) const { return rest().starts_with(prefix); }
    // Moves on, counting lines; the next tag may be the first of its line if the text passed ends one.
    void advance_to(std::size_t position) {
        line_ += static_cast<int>(std::count(source_.begin() + static_cast<std::ptrdiff_t>(position_),
                                             source_.begin() + static_cast<std::ptrdiff_t>(position), '\n'));
        if (position > position_) line_starting_ = source_[position - 1] == '\n';
        position_ = position;
    }
    std::string_view text_before_tag(std::string_view text, char sign, bool is_variable) const;
    std::size_t match_raw(std::size_t position, std::string_view word, std::size_t* sign_position) const;

    std::string source_;
    std::size_t position_ = 0;
    int line_ = 1;
    bool line_starting_ = true;
    std::vector<Token> tokens_;
};

// White space control on the left of a tag: '-' eats all space before it; without '+', lstrip_blocks removes the
// indentation of a block or comment that is first on its line.
std::string_view Lexer::text_before_tag(std::string_view text, char sign, bool is_variable) const {
    if (sign == '-') return text.substr(0, trim_space_end(text, 0, text.size()));
    if (sign == '+' || is_variable) return text;
    const std::size_t newline = text.rfind('\n');
    const std::size_t line_begin = newline == std::string_view::npos ? 0 : newline + 1;
    if (line_begin == 0 && !line_starting_) return text;
    const bool only_space = trim_space_end(text, line_begin, text.size()) == line_begin;
    return only_space ? text.substr(0, line_begin) : text;
}

char sign_at(std::string_view text, std::size_t position) {
    return position < text.size() && (text[position] == '-' || text[position] == '+') ? text[position] : '\0';
}

// Matches {%[-+] WORD [-]%} at `position` and returns the end, npos otherwise. For `raw` the end takes no newline along
// (as the reference), for `endraw` it does.
std::size_t Lexer::match_raw(std::size_t position, std::string_view word, std::size_t* sign_position) const {
    const std::string_view source = source_;
    std::size_t i = position + 2;
    *sign_position = i;
    if (sign_at(source, i) != '\0') ++i;
    i = skip_space(source, i);
    if (!source.substr(i).starts_with(word)) return std::string::npos;
    i = skip_space(source, i + word.size());
    const std::string_view rest = source.substr(std::min(i, source.size()));
    if (rest.starts_with("-%}")) return skip_space(source, i + 3);
    if (word == "raw") return rest.starts_with("%}") ? i + 2 : std::string::npos;
    if (rest.starts_with("+%}")) return i + 3;
    if (!rest.starts_with("%}")) return std::string::npos;
    return i + 2 < source.size() && source[i + 2] == '\n' ? i + 3 : i + 2;
}

Result<std::vector<Token>> Lexer::run() {
    while (position_ < source_.size()) FR_TRY(lex_outside());
    emit(TokenKind::kEnd);
    return std::move(tokens_);
}

Status Lexer::lex_outside() {
    const std::string_view source = source_;
    std::size_t tag = position_;
    for (;; ++tag) {
        tag = source.find('{', tag);
        if (tag == std::string_view::npos || tag + 1 >= source.size()) {
            emit_text(rest());
            advance_to(source.size());
            return {};
        }
        if (source[tag + 1] == '%' || source[tag + 1] == '{' || source[tag + 1] == '#') break;
    }
    const char type = source[tag + 1];
    const char sign = sign_at(source, tag + 2);
    emit_text(text_before_tag(source.substr(position_, tag - position_), sign, type == '{'));
    advance_to(tag);
    const std::size_t inside = tag + 2 + (sign != '\0' ? 1 : 0);
    if (type == '#') return lex_comment(inside);
    if (type == '%') {
        std::size_t sign_position = 0;
        const std::size_t body = match_raw(tag, "raw", &sign_position);
        if (body != std::string::npos) return lex_raw(tag, body);
    }
    advance_to(inside);
    emit(type == '%' ? TokenKind::kBlockBegin : TokenKind::kVariableBegin);
    return lex_tag(type == '%');
}

Status Lexer::lex_comment(std::size_t begin) {
    const std::string_view source = source_;
    const std::size_t close = source.find("#}", begin);
    if (close == std::string_view::npos) return bad_input("line {}: a comment is not closed", line_);
    std::size_t end = close + 2;
    // "{#-#}": the sign of the beginning is not that of the end.
    const char sign = close > begin ? source[close - 1] : '\0';
    if (sign == '-') {
        end = skip_space(source, end);
    } else if (sign != '+' && end < source.size() && source[end] == '\n') {
        ++end;
    }
    advance_to(end);
    return {};
}

Status Lexer::lex_raw(std::size_t begin, std::size_t body) {
    const std::string_view source = source_;
    advance_to(body);
    for (std::size_t tag = source.find("{%", body); tag != std::string_view::npos; tag = source.find("{%", tag + 1)) {
        std::size_t sign_position = 0;
        const std::size_t end = match_raw(tag, "endraw", &sign_position);
        if (end == std::string::npos) continue;
        emit_text(text_before_tag(source.substr(body, tag - body), sign_at(source, sign_position), false));
        advance_to(end);
        return {};
    }
    const auto line = 1 + std::count(source.begin(), source.begin() + static_cast<std::ptrdiff_t>(begin), '\n');
    return bad_input("line {}: a raw block has no endraw", line);
}

Status Lexer::lex_tag(bool is_block) {
    const std::string_view close = is_block ? "%}" : "}}";
    std::vector<char> brackets;
    while (true) {
        advance_to(skip_space(source_, position_));
        if (position_ >= source_.size()) return bad_input("line {}: unexpected end of template in a tag", line_);
        if (brackets.empty()) {
            const char sign = sign_at(source_, position_);
            const std::size_t at = position_ + (sign == '-' || (sign == '+' && is_block) ? 1 : 0);
            if (std::string_view(source_).substr(at).starts_with(close)) {
                std::size_t end = at + 2;
                if (sign == '-') {
                    end = skip_space(source_, end);
                } else if (is_block && sign != '+' && end < source_.size() && source_[end] == '\n') {
                    ++end;
                }
                emit(is_block ? TokenKind::kBlockEnd : TokenKind::kVariableEnd);
                advance_to(end);
                return {};
            }
        }
        const std::size_t before = tokens_.size();
        FR_TRY(lex_token());
        if (tokens_.size() == before || tokens_.back().kind != TokenKind::kOperator) continue;
        const std::string& op = tokens_.back().text;
        if (op == "(" || op == "[" || op == "{") {
            brackets.push_back(op == "(" ? ')' : op == "[" ? ']' : '}');
        } else if (op == ")" || op == "]" || op == "}") {
            if (brackets.empty()) return bad_input("line {}: unexpected '{}'", line_, op);
            if (brackets.back() != op[0]) {
                return bad_input("line {}: unexpected '{}', expected '{}'", line_, op, brackets.back());
            }
            brackets.pop_back();
        }
    }
}

Status Lexer::lex_token() {
    const char c = source_[position_];
    if (c == '\'' || c == '"') return lex_string(c);
    if (is_digit(c)) {
        lex_number();
        return {};
    }
    const Character first = character_at(source_, position_);
    if (c == '_' || is_letter(first.code)) {
        std::size_t end = position_;
        while (end < source_.size()) {
            const Character next = character_at(source_, end);
            if (!is_word_character(next.code)) break;
            end += next.size_bytes;
        }
        emit(TokenKind::kName, source_.substr(position_, end - position_));
        advance_to(end);
        return {};
    }
    // Longest first.
    static constexpr std::array<std::string_view, 25> kOperators = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/",
                                                                    "*",  "%",  "~",  "[",  "]",  "(",  ")", "{", "}",
                                                                    ">",  "<",  "=",  ".",  ":",  "|",  ","};
    for (const std::string_view op : kOperators) {
        if (!starts_with(op)) continue;
        emit(TokenKind::kOperator, std::string(op));
        advance_to(position_ + op.size());
        return {};
    }
    const std::string shown = first.code < 0x20 ? fmt::format("byte 0x{:02x}", static_cast<unsigned char>(c))
                                                : source_.substr(position_, first.size_bytes);
    return bad_input("line {}: unexpected character '{}'", line_, shown);
}

// Digits with single underscores between them, the first at `position`; returns the end.
template <typename IsDigit>
std::size_t digits_end(std::string_view text, std::size_t position, IsDigit is_valid) {
    while (position < text.size()) {
        if (is_valid(text[position])) {
            ++position;
        } else if (text[position] == '_' && position + 1 < text.size() && is_valid(text[position + 1])) {
            position += 2;
        } else {
            break;
        }
    }
    return position;
}

void Lexer::lex_number() {
    const std::string_view source = source_;
    const auto is_hex = [](char c) { return is_digit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f'); };
    std::size_t end = digits_end(source, position_, is_digit);
    TokenKind kind = TokenKind::kInteger;
    // After a dot ("x.0.1") digits are indices, not fractions.
    if (position_ == 0 || source[position_ - 1] != '.') {
        if (end + 1 < source.size() && source[end] == '.' && is_digit(source[end + 1])) {
            end = digits_end(source, end + 1, is_digit);
            kind = TokenKind::kFloat;
        }
        if (end < source.size() && (source[end] | 0x20) == 'e') {
            const std::size_t digits = end + 1 + (sign_at(source, end + 1) != '\0' ? 1 : 0);
            if (digits < source.size() && is_digit(source[digits])) {
                end = digits_end(source, digits, is_digit);
                kind = TokenKind::kFloat;
            }
        }
    }
    if (kind == TokenKind::kInteger && source[position_] == '0') {
        const char base = position_ + 1 < source.size() ? static_cast<char>(source[position_ + 1] | 0x20) : '\0';
        const std::size_t body = position_ + 2;
        std::size_t based_end = body;
        if (base == 'x') based_end = digits_end(source, body, is_hex);
        if (base == 'o') based_end = digits_end(source, body, [](char c) { return c >= '0' && c <= '7'; });
        if (base == 'b') based_end = digits_end(source, body, [](char c) { return c == '0' || c == '1'; });
        // A decimal does not begin with 0, so "007" is two numbers, and an error one step later.
        end = based_end > body ? based_end : digits_end(source, position_, [](char c) { return c == '0'; });
    }
    std::string digits(source.substr(position_, end - position_));
    std::erase(digits, '_');
    emit(kind, std::move(digits));
    advance_to(end);
}

Status Lexer::lex_string(char quote) {
    std::size_t end = position_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) return bad_input("line {}: a string is not closed", line_);
    FR_ASSIGN(std::string text, unescape(std::string_view(source_).substr(position_ + 1, end - position_ - 1)));
    emit(TokenKind::kString, std::move(text));
    advance_to(end + 1);
    return {};
}

Result<std::int32_t> Lexer::hex_escape(std::string_view digits, std::size_t count) const {
    std::int64_t code = 0;
    for (std::size_t i = 0; i < count; ++i) {
        const char c = i < digits.size() ? static_cast<char>(digits[i] | 0x20) : '?';
        if (is_digit(i < digits.size() ? digits[i] : '?')) {
            code = code * 16 + (digits[i] - '0');
        } else if (c >= 'a' && c <= 'f') {
            code = code * 16 + (c - 'a' + 10);
        } else {
            return bad_input("line {}: an escape in a string needs {} hexadecimal digits", line_, count);
        }
    }
    if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) {
        return bad_input("line {}: the escape U+{:04X} in a string is no character", line_, code);
    }
    return static_cast<std::int32_t>(code);
}

// Python's escapes; unknown ones keep their backslash.
Result<std::string> Lexer::unescape(std::string_view body) const {
    std::string out;
    for (std::size_t i = 0; i < body.size(); ++i) {
        if (body[i] != '\\' || i + 1 >= body.size()) {
            out += body[i];
            continue;
        }
        const char c = body[++i];
        static constexpr std::string_view kFrom = "abfnrtv\\'\"";
        static constexpr std::string_view kTo = "\a\b\f\n\r\t\v\\'\"";
        if (const std::size_t simple = kFrom.find(c); simple != std::string_view::npos) {
            out += kTo[simple];
        } else if (c == '\n') {
            // a line continued
        } else if (c >= '0' && c <= '7') {
            std::int32_t code = 0;
            std::size_t digits = 0;
            for (; digits < 3 && i + digits < body.size() && body[i + digits] >= '0' && body[i + digits] <= '7';
                 ++digits) {
                code = code * 8 + (body[i + digits] - '0');
            }
            i += digits - 1;
            append_utf8(out, code);
        } else if (c == 'x' || c == 'u' || c == 'U') {
            const std::size_t count = c == 'x' ? 2 : c == 'u' ? 4 : 8;
            FR_ASSIGN(const std::int32_t code, hex_escape(body.substr(i + 1), count));
            append_utf8(out, code);
            i += count;
        } else if (c == 'N') {
            return bad_input("line {}: named characters (\\N) in strings are not supported", line_);
        } else {
            out += '\\';
            out += c;
        }
    }
    return out;
}

}  // namespace

Result<std::vector<Token>> lex(std::string_view source) {
    if (source.size() > kMaxSourceBytes) {
        return bad_input("the template has {} bytes, allowed are {}", source.size(), kMaxSourceBytes);
    }
    return Lexer(normalise_newlines(source)).run();
}

}  // namespace frontier::jinja

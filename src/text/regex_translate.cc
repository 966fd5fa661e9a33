// Oniguruma syntax to PCRE2 syntax.
#include <vector>

#include "text/regex.h"

namespace frontier {
namespace {

// White_Space, written as class members. PCRE2's own \s counts U+180E too.
constexpr std::string_view kSpaceMembers =
    R"(\x09-\x0D\x20\x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})";
// Below U+0100 Oniguruma goes by ISO 8859-1, where superscripts and fractions are word characters.
constexpr std::string_view kWordMembers = R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{B2}\x{B3}\x{B9}\x{BC}-\x{BE})";
constexpr std::string_view kHexMembers = "0-9a-fA-F";
// Classes inside classes inside ...; real patterns have two levels.
constexpr int kMaxClassDepth = 16;

class Translator {
public:
    Translator(std::string_view pattern, std::string_view where) : pattern_(pattern), where_(where) {}

    Result<std::string> run() {
        std::string out;
        while (at_ < pattern_.size()) {
            if (pattern_[at_] == '[') {
                FR_ASSIGN(const std::string text, read_class(0));
                out += text;
            } else if (pattern_[at_] == '\\') {
                out += escape(false);
            } else {
                out += pattern_[at_++];
            }
        }
        return out;
    }

private:
    // The escape at at_, consumed. Inside a class only members are possible.
    std::string escape(bool in_class) {
        if (at_ + 1 >= pattern_.size()) return std::string(pattern_.substr(at_++));
        const char kind = pattern_[at_ + 1];
        const auto members = [&](std::string_view set, bool negated) {
            at_ += 2;
            if (in_class) return std::string(set);
            return fmt::format("[{}{}]", negated ? "^" : "", set);
        };
        switch (kind) {
            case 's':
                return members(kSpaceMembers, false);
            case 'w':
                return members(kWordMembers, false);
            case 'h':
                return members(kHexMembers, false);
            case 'b':
            case 'B':
                // PCRE2 would decide by its own idea of \w.
                if (in_class) break;
                at_ += 2;
                if (kind == 'b') return fmt::format("(?:(?<=[{0}])(?![{0}])|(?<![{0}])(?=[{0}]))", kWordMembers);
                return fmt::format("(?:(?<=[{0}])(?=[{0}])|(?<![{0}])(?![{0}]))", kWordMembers);
            case 'S':
                if (!in_class) return members(kSpaceMembers, true);
                break;
            case 'W':
                if (!in_class) return members(kWordMembers, true);
                break;
            case 'H':
                if (!in_class) return members(kHexMembers, true);
                break;
            case 'u': {
                const std::string_view digits = pattern_.substr(at_ + 2, 4);
                if (digits.size() == 4 &&
                    digits.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos) {
                    at_ += 6;
                    return fmt::format("\\x{{{}}}", digits);
                }
                break;
            }
            default:
                break;
        }
        std::string out(pattern_.substr(at_, 2));
        at_ += 2;
        // \p{...} and \x{...} stay whole, so that their braces are nobody else's.
        if ((kind == 'p' || kind == 'P' || kind == 'x') && at_ < pattern_.size() && pattern_[at_] == '{') {
            const std::size_t close = pattern_.find('}', at_);
            if (close != std::string_view::npos) {
                out += pattern_.substr(at_, close + 1 - at_);
                at_ = close + 1;
            }
        }
        return out;
    }

    // A class from its bracket on. Plain ones stay classes; (?:[ab]|[cd]) for a union with an inner class,
    // (?:(?=B)A) for A&&B, (?:(?!X)[\s\S]) for the negation of such.
    Result<std::string> read_class(int depth) {
        if (depth > kMaxClassDepth) return bad_input("{}: pattern '{}': classes are nested too deep", where_, pattern_);
        ++at_;
        bool negated = false;
        if (at_ < pattern_.size() && pattern_[at_] == '^') {
            negated = true;
            ++at_;
        }
        std::vector<std::string> operands;  // of &&
        std::string members;                // of the current operand
        std::vector<std::string> nested;
        bool first = true;
        for (;; first = false) {
            if (at_ >= pattern_.size()) return bad_input("{}: pattern '{}': a class is not closed", where_, pattern_);
            const char c = pattern_[at_];
            if (c == ']' && !first) {
                ++at_;
                break;
            }
            if (c == '[' && pattern_.substr(at_, 2) == "[:") {
                const std::size_t close = pattern_.find(":]", at_ + 2);
                if (close != std::string_view::npos) {
                    members += pattern_.substr(at_, close + 2 - at_);
                    at_ = close + 2;
                    continue;
                }
            }
            if (c == '[') {
                FR_ASSIGN(std::string inner, read_class(depth + 1));
                nested.push_back(std::move(inner));
            } else if (c == '&' && pattern_.substr(at_, 2) == "&&") {
                at_ += 2;
                operands.push_back(unite(members, nested));
            } else if (c == '\\') {
                members += escape(true);
            } else {
                members += c;
                ++at_;
            }
        }
        if (operands.empty() && nested.empty()) return fmt::format("[{}{}]", negated ? "^" : "", members);
        operands.push_back(unite(members, nested));
        std::string all;
        for (std::size_t i = 1; i < operands.size(); ++i) all += fmt::format("(?={})", operands[i]);
        all += operands[0];
        return negated ? fmt::format("(?:(?!{})[\\s\\S])", all) : fmt::format("(?:{})", all);
    }

    static std::string unite(std::string& members, std::vector<std::string>& nested) {
        std::string out = members.empty() ? "" : fmt::format("[{}]", members);
        for (const std::string& inner : nested) out += (out.empty() ? "" : "|") + inner;
        if (nested.size() + (members.empty() ? 0 : 1) > 1) out = fmt::format("(?:{})", out);
        members.clear();
        nested.clear();
        return out;
    }

    std::string_view pattern_;
    std::string_view where_;
    std::size_t at_ = 0;
};

}  // namespace

Result<std::string> translate_pattern(std::string_view pattern, std::string_view where) {
    // The same matches, but only the first place of a run of spaces is tried: otherwise a long run in mid-text costs
    // its length squared. (A run that ends a line: the longest match from its first place takes all its line ends, so
    // nothing is left to find from a later place.)
    if (pattern == R"(\s+$)") pattern = R"((?<!\s)\s+$)";
    return Translator(pattern, where).run();
}

}  // namespace frontier

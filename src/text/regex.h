// Patterns of pre-tokenisers and normalisers. Files write them for Oniguruma (or Rust's regex), we run them with PCRE2:
// the syntax is translated where the two differ.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace frontier {

// The pattern as PCRE2 wants it:  \s and \w get Unicode's meaning, \h is a hex digit, \uHHHH a code point, and classes
// with && or a class inside become groups with lookaheads. `where` and the pattern appear in errors.
Result<std::string> translate_pattern(std::string_view pattern, std::string_view where);

class Regex {
public:
    static Result<Regex> compile(std::string_view pattern, std::string_view where);
    ~Regex();
    Regex(Regex&&) noexcept;
    Regex& operator=(Regex&&) noexcept;

    // One scan over texts of `text_bytes` together; not shared between threads. The whole scan is linear in them: a
    // pattern that looks far ahead from every place, or backtracks without end, runs out of its budget and fails.
    class Matcher {
    public:
        Matcher(const Regex& regex, std::size_t text_bytes);
        ~Matcher();
        Matcher(const Matcher&) = delete;
        Matcher& operator=(const Matcher&) = delete;
        // The first match in `text` that begins at or after `from`; false when there is none, or when the budget is
        // used up: then status() says so from then on. `text` is valid UTF-8.
        bool find(std::string_view text, std::size_t from);
        const Status& status() const { return status_; }
        std::size_t begin = 0;
        std::size_t end = 0;

    private:
        struct State;
        bool give_up(std::string_view why);
        std::unique_ptr<State> state_;
        Status status_;
    };

private:
    struct Code;
    explicit Regex(std::unique_ptr<Code> code);
    std::unique_ptr<Code> code_;
};

}  // namespace frontier

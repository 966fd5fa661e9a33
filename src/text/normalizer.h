// Runs the normaliser steps of a tokenizer.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/regex.h"
#include "text/tokenizer_spec.h"

namespace frontier {

// What the steps of a file may make of a text, or of a token when decoding: replacements chained in a file grow it
// exponentially otherwise. Generous: a space that becomes U+2581 grows 3 times, and the worst character of NFKC,
// U+FDFA, 13 times with that; the constant is for a prefix before a short text.
std::size_t max_grown_bytes(std::size_t bytes);

class Normalizer {
public:
    static Result<Normalizer> create(const std::vector<NormalizerStep>& steps, std::string_view where);
    bool empty() const { return steps_.empty(); }
    // `text` is valid UTF-8, and so is the result. `first`: a prefix may be put before it. Fails where the result would
    // exceed max_grown_bytes, or a pattern needs far more work than the text is long.
    Result<std::string> apply(std::string_view text, bool first) const;

private:
    struct Step {
        NormalizerStep spec;
        std::optional<Regex> regex;
    };
    std::vector<Step> steps_;
    std::string where_;
};

}  // namespace frontier

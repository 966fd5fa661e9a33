// Runs the normaliser steps of a tokenizer.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/regex.h"
#include "text/tokenizer_spec.h"

namespace frontier {

class Normalizer {
public:
    static Result<Normalizer> create(const std::vector<NormalizerStep>& steps, std::string_view where);
    bool empty() const { return steps_.empty(); }
    // `text` is valid UTF-8, and so is the result. `first`: a prefix may be put before it.
    std::string apply(std::string_view text, bool first) const;

private:
    struct Step {
        NormalizerStep spec;
        std::optional<Regex> regex;
    };
    std::vector<Step> steps_;
};

}  // namespace frontier

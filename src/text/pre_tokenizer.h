// Cuts text into the words inside which tokens are merged.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/regex.h"
#include "text/tokenizer_spec.h"

namespace frontier {

// The steps behind a GGUF name such as "llama-bpe"; empty for an unknown name.
std::vector<SplitStep> gguf_split_steps(std::string_view name);
// What tokenizer.json calls ByteLevel with use_regex.
extern const std::string_view kGpt2Pattern;

// A text and its words, in order. Steps that change the text own it.
struct Words {
    struct Range {
        std::size_t begin = 0;
        std::size_t end = 0;
    };
    std::string_view text;
    std::vector<Range> ranges;
    bool byte_level = false;  // `text` is in the gpt-2 alphabet
    std::string owned;

    std::string_view word(Range range) const { return text.substr(range.begin, range.end - range.begin); }
};

class PreTokenizer {
public:
    static Result<PreTokenizer> create(const std::vector<SplitStep>& steps, std::string_view where);
    // `text` is valid UTF-8 and outlives `words`. `first`: it begins the whole text. Fails where
    // a pattern of the file needs far more work than the text is long.
    Status split(std::string_view text, bool first, Words& words) const;

private:
    struct Step {
        SplitStep spec;
        std::optional<Regex> regex;
    };
    std::vector<Step> steps_;
};

}  // namespace frontier

#include "text/pre_tokenizer.h"

#include <algorithm>

#include "text/unicode.h"

namespace frontier {
namespace {

using Range = Words::Range;

struct Segment {
    Range range;
    bool is_match = false;
};

// Applies a behaviour to the segments of one word, which cover it without gaps.
void place(const std::vector<Segment>& segments, SplitBehavior behavior, std::vector<Range>& out) {
    const std::size_t first = out.size();
    switch (behavior) {
        case SplitBehavior::kIsolated:
            for (const Segment& s : segments) out.push_back(s.range);
            break;
        case SplitBehavior::kRemoved:
            for (const Segment& s : segments)
                if (!s.is_match) out.push_back(s.range);
            break;
        case SplitBehavior::kContiguous:
            for (std::size_t i = 0; i < segments.size(); ++i) {
                if (i > 0 && segments[i].is_match == segments[i - 1].is_match)
                    out.back().end = segments[i].range.end;
                else
                    out.push_back(segments[i].range);
            }
            break;
        case SplitBehavior::kMergedWithPrevious:
            for (std::size_t i = 0; i < segments.size(); ++i) {
                if (i > 0 && segments[i].is_match && !segments[i - 1].is_match)
                    out.back().end = segments[i].range.end;
                else
                    out.push_back(segments[i].range);
            }
            break;
        case SplitBehavior::kMergedWithNext:
            for (std::size_t i = segments.size(); i-- > 0;) {
                if (i + 1 < segments.size() && segments[i].is_match && !segments[i + 1].is_match)
                    out.back().begin = segments[i].range.begin;
                else
                    out.push_back(segments[i].range);
            }
            std::reverse(out.begin() + static_cast<std::ptrdiff_t>(first), out.end());
            break;
    }
}

// `find(from)` gives the next match in the word or nothing.
template <typename Find>
void segment(Range word, bool invert, const Find& find, std::vector<Segment>& out) {
    out.clear();
    const auto add = [&](std::size_t begin, std::size_t end, bool is_match) {
        if (end > begin) out.push_back({{begin, end}, is_match != invert});
    };
    std::size_t done = word.begin, from = word.begin;
    while (from <= word.end) {
        const std::optional<Range> match = find(from);
        if (!match) break;
        add(done, match->begin, false);
        add(match->begin, match->end, true);
        done = match->end;
        from = match->end;
        if (match->end == match->begin) {
            // An empty match only marks a border; go on behind the next character.
            if (from >= word.end) break;
            ++from;
            while (from < word.end && find.continues(from)) ++from;
        }
    }
    add(done, word.end, false);
}

struct RegexFind {
    Regex::Matcher& matcher;
    std::string_view text;
    Range word;
    std::optional<Range> operator()(std::size_t from) const {
        const std::string_view subject = text.substr(word.begin, word.end - word.begin);
        if (!matcher.find(subject, from - word.begin)) return std::nullopt;
        return Range{word.begin + matcher.begin, word.begin + matcher.end};
    }
    bool continues(std::size_t at) const { return (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80; }
};

struct LiteralFind {
    std::string_view text;
    Range word;
    std::string_view literal;
    std::optional<Range> operator()(std::size_t from) const {
        const std::size_t at = text.substr(0, word.end).find(literal, from);
        if (at == std::string_view::npos) return std::nullopt;
        return Range{at, at + literal.size()};
    }
    bool continues(std::size_t) const { return false; }
};

// Rewrites every word with `write(word, is_first, text)`.
template <typename Write>
void rewrite(Words& words, const Write& write) {
    std::string text;
    text.reserve(words.text.size() + words.text.size() / 2 + 8);
    bool first = true;
    for (Range& range : words.ranges) {
        const std::size_t begin = text.size();
        write(words.word(range), first, text);
        range = {begin, text.size()};
        first = false;
    }
    words.owned = std::move(text);
    words.text = words.owned;
}

Status apply_regex(const SplitStep& step, const Regex& regex, Words& words) {
    Regex::Matcher matcher(regex, words.text.size());
    std::vector<Range> out;
    out.reserve(words.ranges.size() + words.text.size() / 4);
    std::vector<Segment> segments;
    for (const Range word : words.ranges) {
        segment(word, step.invert, RegexFind{matcher, words.text, word}, segments);
        place(segments, step.behavior, out);
        FR_TRY(matcher.status());
    }
    words.ranges = std::move(out);
    return {};
}

void apply_literal(std::string_view literal, SplitBehavior behavior, bool invert, Words& words) {
    if (literal.empty()) return;
    std::vector<Range> out;
    std::vector<Segment> segments;
    for (const Range word : words.ranges) {
        segment(word, invert, LiteralFind{words.text, word, literal}, segments);
        place(segments, behavior, out);
    }
    words.ranges = std::move(out);
}

void apply_metaspace(const SplitStep& step, bool first_text, Words& words) {
    rewrite(words, [&](std::string_view word, bool first, std::string& out) {
        const std::string_view mark = step.pattern;
        const bool wanted = step.prefix == SplitStep::Prefix::kAlways ||
                            (step.prefix == SplitStep::Prefix::kFirst && first && first_text);
        if (wanted && !word.starts_with(mark) && !word.starts_with(' ')) out += mark;
        for (const char c : word) {
            if (c == ' ')
                out += mark;
            else
                out += c;
        }
    });
    if (step.split) apply_literal(step.pattern, SplitBehavior::kMergedWithNext, false, words);
}

void add_prefix_spaces(Words& words) {
    rewrite(words, [](std::string_view word, bool, std::string& out) {
        if (!word.starts_with(' ')) out += ' ';
        out += word;
    });
}

void apply_byte_level(Words& words) {
    rewrite(words, [](std::string_view word, bool, std::string& out) { append_byte_level(out, word); });
    words.byte_level = true;
}

}  // namespace

Result<PreTokenizer> PreTokenizer::create(const std::vector<SplitStep>& steps, std::string_view where) {
    PreTokenizer result;
    for (const SplitStep& spec : steps) {
        Step step{spec, std::nullopt};
        if (spec.op == SplitStep::Op::kRegex) {
            FR_ASSIGN(step.regex, Regex::compile(spec.pattern, where));
        }
        result.steps_.push_back(std::move(step));
    }
    return result;
}

Status PreTokenizer::split(std::string_view text, bool first, Words& words) const {
    words.text = text;
    words.ranges.assign(1, {0, text.size()});
    words.byte_level = false;
    if (text.empty()) words.ranges.clear();
    for (std::size_t i = 0; i < steps_.size(); ++i) {
        const SplitStep& step = steps_[i].spec;
        switch (step.op) {
            case SplitStep::Op::kRegex:
                FR_TRY(apply_regex(step, *steps_[i].regex, words));
                break;
            case SplitStep::Op::kLiteral:
                apply_literal(step.pattern, step.behavior, step.invert, words);
                break;
            case SplitStep::Op::kMetaspace:
                apply_metaspace(step, first, words);
                break;
            case SplitStep::Op::kPrefixSpace:
                add_prefix_spaces(words);
                break;
            case SplitStep::Op::kByteLevel:
                // At the end the alphabet would only be another name for the bytes; earlier, later patterns see it.
                if (i + 1 < steps_.size() && !words.byte_level) apply_byte_level(words);
                break;
        }
    }
    return {};
}

}  // namespace frontier

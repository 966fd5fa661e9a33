#include "text/tokenizer_json_steps.h"

#include <utility>

#include "text/pre_tokenizer.h"
#include "text/unicode.h"

namespace frontier {
namespace {

using Status = frontier::Status;

// "tokenizer.json: pre_tokenizer.pretokenizers[0]", the prefix of errors about it.
std::string place(const TokenizerSpec& spec, const std::string& path) {
    return fmt::format("{}: {}", spec.where, path);
}

// Runs `read` on each element of a Sequence.
template <typename Read>
Status read_sequence(const Json& value, std::string_view member, const std::string& path, TokenizerSpec& spec,
                     const Read& read) {
    FR_ASSIGN(const Json* steps, json_array(value, member, place(spec, path)));
    for (std::size_t i = 0; i < steps->size(); ++i)
        FR_TRY(read((*steps)[i], fmt::format("{}.{}[{}]", path, member, i), spec));
    return {};
}

struct Pattern {
    std::string text;
    bool is_regex = false;
};

// {"String": "..."} or {"Regex": "..."}, in old files a plain string.
Result<Pattern> read_pattern(const Json& value, const std::string& where) {
    const Json& pattern = json_member(value, "pattern");
    if (pattern.is_string()) return Pattern{pattern.get<std::string>(), false};
    if (!pattern.is_object())
        return bad_input("{}: field 'pattern': expected an object, got {}", where, pattern.type_name());
    if (pattern.contains("Regex")) {
        FR_ASSIGN(std::string text, json_string(pattern, "Regex", where + ".pattern"));
        return Pattern{std::move(text), true};
    }
    FR_ASSIGN(std::string text, json_string(pattern, "String", where + ".pattern"));
    return Pattern{std::move(text), false};
}

Result<SplitBehavior> read_behavior(const Json& value, std::string_view fallback, const std::string& where) {
    constexpr std::pair<std::string_view, SplitBehavior> kNames[] = {
        {"Removed", SplitBehavior::kRemoved},
        {"Isolated", SplitBehavior::kIsolated},
        {"MergedWithPrevious", SplitBehavior::kMergedWithPrevious},
        {"MergedWithNext", SplitBehavior::kMergedWithNext},
        {"Contiguous", SplitBehavior::kContiguous}};
    FR_ASSIGN(const std::string name, json_string_or(value, "behavior", fallback, where));
    for (const auto& [known, behavior] : kNames)
        if (known == name) return behavior;
    return bad_input(
        "{}: field 'behavior': expected Removed, Isolated, MergedWithPrevious, MergedWithNext or "
        "Contiguous, got '{}'",
        where, name);
}

SplitStep regex_step(std::string_view pattern, SplitBehavior behavior = SplitBehavior::kIsolated, bool invert = false) {
    SplitStep step;
    step.pattern = std::string(pattern);
    step.behavior = behavior;
    step.invert = invert;
    return step;
}

Status read_byte_level(const Json& value, const std::string& where, TokenizerSpec& spec) {
    FR_ASSIGN(const bool prefix, json_bool_or(value, "add_prefix_space", true, where));
    FR_ASSIGN(const bool use_regex, json_bool_or(value, "use_regex", true, where));
    if (prefix) {
        SplitStep step;
        step.op = SplitStep::Op::kPrefixSpace;
        spec.split_steps.push_back(std::move(step));
    }
    if (use_regex) spec.split_steps.push_back(regex_step(kGpt2Pattern));
    SplitStep step;
    step.op = SplitStep::Op::kByteLevel;
    spec.split_steps.push_back(std::move(step));
    spec.kind = TokenizerKind::kByteLevelBpe;
    return {};
}

struct Metaspace {
    std::string mark;
    SplitStep::Prefix prefix = SplitStep::Prefix::kAlways;
};

// Old files have add_prefix_space, new ones prepend_scheme.
Result<Metaspace> read_metaspace(const Json& value, const std::string& where) {
    Metaspace result;
    FR_ASSIGN(result.mark, json_string_or(value, "replacement", kSpaceMark, where));
    if (result.mark.empty() || static_cast<std::size_t>(next_utf8(result.mark).size_bytes) != result.mark.size())
        return bad_input("{}: field 'replacement': expected one character, got '{}'", where, result.mark);
    FR_ASSIGN(const bool add_prefix, json_bool_or(value, "add_prefix_space", true, where));
    FR_ASSIGN(const std::string scheme,
              json_string_or(value, "prepend_scheme", add_prefix ? "always" : "never", where));
    if (scheme == "first")
        result.prefix = SplitStep::Prefix::kFirst;
    else if (scheme == "never")
        result.prefix = SplitStep::Prefix::kNever;
    else if (scheme != "always")
        return bad_input("{}: field 'prepend_scheme': expected always, first or never, got '{}'", where, scheme);
    return result;
}

Status read_split(const Json& value, const std::string& where, TokenizerSpec& spec) {
    FR_ASSIGN(Pattern pattern, read_pattern(value, where));
    SplitStep step;
    step.op = pattern.is_regex ? SplitStep::Op::kRegex : SplitStep::Op::kLiteral;
    step.pattern = std::move(pattern.text);
    FR_ASSIGN(step.behavior, read_behavior(value, "Isolated", where));
    FR_ASSIGN(step.invert, json_bool_or(value, "invert", false, where));
    spec.split_steps.push_back(std::move(step));
    return {};
}

}  // namespace

const Json& json_member(const Json& object, std::string_view name) {
    static const Json none;
    if (!object.is_object()) return none;
    const auto it = object.find(name);
    return it == object.end() ? none : *it;
}

Result<const Json*> json_array(const Json& object, std::string_view name, const std::string& where) {
    const Json& value = json_member(object, name);
    if (!value.is_array())
        return bad_input("{}: field '{}': expected an array, got {}", where, name, value.type_name());
    return &value;
}

Status read_normalizer(const Json& value, const std::string& path, TokenizerSpec& spec) {
    using Op = NormalizerStep::Op;
    if (value.is_null()) return {};
    const std::string where = place(spec, path);
    FR_ASSIGN(const std::string type, json_string(value, "type", where));
    if (type == "Sequence") return read_sequence(value, "normalizers", path, spec, read_normalizer);
    constexpr std::pair<std::string_view, Op> kPlain[] = {{"NFC", Op::kNfc},
                                                          {"NFD", Op::kNfd},
                                                          {"NFKC", Op::kNfkc},
                                                          {"NFKD", Op::kNfkd},
                                                          {"Lowercase", Op::kLowercase},
                                                          {"StripAccents", Op::kStripAccents}};
    NormalizerStep step;
    for (const auto& [name, op] : kPlain) {
        if (type != name) continue;
        step.op = op;
        spec.normalizer.push_back(std::move(step));
        return {};
    }
    if (type == "Prepend") {
        step.op = Op::kPrepend;
        FR_ASSIGN(step.content, json_string(value, "prepend", where));
    } else if (type == "Replace") {
        step.op = Op::kReplace;
        FR_ASSIGN(Pattern pattern, read_pattern(value, where));
        step.pattern = std::move(pattern.text);
        step.pattern_is_regex = pattern.is_regex;
        FR_ASSIGN(step.content, json_string(value, "content", where));
    } else if (type == "Strip") {
        step.op = Op::kStrip;
        FR_ASSIGN(step.strip_left, json_bool_or(value, "strip_left", true, where));
        FR_ASSIGN(step.strip_right, json_bool_or(value, "strip_right", true, where));
    } else {
        return bad_input("{}: normalizer type '{}' is not supported", where, type);
    }
    spec.normalizer.push_back(std::move(step));
    return {};
}

Status read_pre_tokenizer(const Json& value, const std::string& path, TokenizerSpec& spec) {
    if (value.is_null()) return {};
    const std::string where = place(spec, path);
    FR_ASSIGN(const std::string type, json_string(value, "type", where));
    if (type == "Sequence") return read_sequence(value, "pretokenizers", path, spec, read_pre_tokenizer);
    if (type == "ByteLevel") return read_byte_level(value, where, spec);
    if (type == "Split") return read_split(value, where, spec);
    if (type == "Digits") {
        FR_ASSIGN(const bool single, json_bool_or(value, "individual_digits", false, where));
        spec.split_steps.push_back(regex_step(single ? R"(\p{N})" : R"(\p{N}+)"));
    } else if (type == "Whitespace") {
        // \w+|[^\w\s]+ with \w as Rust's regex has it, which the reference uses here and nowhere else.
        constexpr std::string_view kWord = R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{200C}\x{200D})";
        spec.split_steps.push_back(regex_step(fmt::format("[{0}]+|[^{0}\\s]+", kWord), SplitBehavior::kRemoved, true));
    } else if (type == "WhitespaceSplit") {
        spec.split_steps.push_back(regex_step(R"(\s)", SplitBehavior::kRemoved));
    } else if (type == "Punctuation") {
        FR_ASSIGN(const SplitBehavior behavior, read_behavior(value, "Isolated", where));
        spec.split_steps.push_back(regex_step(R"([\p{P}$+<=>^`|~])", behavior));
    } else if (type == "CharDelimiterSplit") {
        SplitStep step;
        step.op = SplitStep::Op::kLiteral;
        step.behavior = SplitBehavior::kRemoved;
        FR_ASSIGN(step.pattern, json_string(value, "delimiter", where));
        spec.split_steps.push_back(std::move(step));
    } else if (type == "Metaspace") {
        FR_ASSIGN(Metaspace metaspace, read_metaspace(value, where));
        SplitStep step;
        step.op = SplitStep::Op::kMetaspace;
        step.pattern = std::move(metaspace.mark);
        step.prefix = metaspace.prefix;
        FR_ASSIGN(step.split, json_bool_or(value, "split", true, where));
        spec.split_steps.push_back(std::move(step));
    } else {
        return bad_input("{}: pre_tokenizer type '{}' is not supported", where, type);
    }
    return {};
}

namespace {

// What decoders of one document have in common.
struct DecoderReader {
    bool& fused;

    Status operator()(const Json& value, const std::string& path, TokenizerSpec& spec) const {
        const std::string where = place(spec, path);
        FR_ASSIGN(const std::string type, json_string(value, "type", where));
        if (type == "Sequence") return read_sequence(value, "decoders", path, spec, *this);
        if (type == "ByteLevel") {
            spec.decode_steps.push_back({.op = DecodeStep::Op::kByteLevel});
        } else if (type == "ByteFallback") {
            spec.decode_steps.push_back({.op = DecodeStep::Op::kByteFallback});
        } else if (type == "Fuse") {
            fused = true;
        } else if (type == "Replace") {
            FR_ASSIGN(Pattern pattern, read_pattern(value, where));
            if (pattern.is_regex) return bad_input("{}: a decoder that replaces a regex is not supported", where);
            DecodeStep step{.op = DecodeStep::Op::kReplace, .pattern = std::move(pattern.text)};
            FR_ASSIGN(step.content, json_string(value, "content", where));
            spec.decode_steps.push_back(std::move(step));
        } else if (type == "Strip") {
            return read_strip(value, where, spec);
        } else if (type == "Metaspace") {
            FR_ASSIGN(Metaspace metaspace, read_metaspace(value, where));
            spec.decode_steps.push_back(
                {.op = DecodeStep::Op::kReplace, .pattern = std::move(metaspace.mark), .content = " "});
            if (metaspace.prefix != SplitStep::Prefix::kNever) spec.strip_first_space = true;
        } else {
            return bad_input("{}: decoder type '{}' is not supported", where, type);
        }
        return {};
    }

    // Only what undoes a space put first can be done token by token.
    Status read_strip(const Json& value, const std::string& where, TokenizerSpec& spec) const {
        FR_ASSIGN(const std::string content, json_string_or(value, "content", " ", where));
        FR_ASSIGN(const std::int64_t start, json_int_or(value, "start", 0, where));
        FR_ASSIGN(const std::int64_t end, json_int_or(value, "stop", 0, where));
        if (start == 0 && end == 0) return {};
        if (content != " " || start != 1 || end != 0 || !fused)
            return bad_input(
                "{}: expected a Strip of one space at the start, after Fuse; got content '{}', start {}, "
                "stop {}",
                where, content, start, end);
        spec.strip_first_space = true;
        return {};
    }
};

}  // namespace

Status read_decoder(const Json& value, const std::string& path, TokenizerSpec& spec) {
    if (value.is_null()) return {};
    bool fused = false;
    return DecoderReader{fused}(value, path, spec);
}

}  // namespace frontier

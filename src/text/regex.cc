#define PCRE2_CODE_UNIT_WIDTH 8
#include "text/regex.h"

#include <pcre2.h>

#include <algorithm>

namespace frontier {
namespace {

// The longest real pattern has about 1,500 bytes.
constexpr std::size_t kMaxPatternBytes = 65536;
// What a match may look at in the first place. Words of real patterns are seldom longer; where a match touches the end
// of its window, it is tried again, at that place only, in one four times as large. So a match costs what it looks at,
// not what text there is.
constexpr std::size_t kWindowBytes = 128;
// Backtracking steps from one place of the text, per byte of the window: a long word that fails in each of a pattern's
// alternatives costs one step per byte and repeat, which real patterns stay far below. Hostile patterns that backtrack
// exponentially end here.
constexpr std::size_t kStepsPerByte = 16;
// Bytes of enlarged windows in one scan. A pattern that keeps what it looks at needs 6 per byte of the text. The
// constant lets published patterns that group digits by a look-ahead to the end of their run pass runs of thousands.
constexpr std::size_t kBudgetPerByte = 64;
constexpr std::size_t kBudgetBytes = std::size_t{4} << 20;
// Characters that a look-behind may go back; real patterns have at most one.
constexpr std::uint32_t kMaxLookBehind = 255;
// Without a stack of its own a JIT match has 32 KB, which patterns that repeat a group outgrow on long words.
constexpr std::size_t kJitStackBytes = std::size_t{64} << 20;

}  // namespace

struct Regex::Code {
    pcre2_code* code = nullptr;
    std::string where;    // for errors
    std::string pattern;  // as the file has it
    ~Code() { pcre2_code_free(code); }
};

Regex::Regex(std::unique_ptr<Code> code) : code_(std::move(code)) {}
Regex::~Regex() = default;
Regex::Regex(Regex&&) noexcept = default;
Regex& Regex::operator=(Regex&&) noexcept = default;

Result<Regex> Regex::compile(std::string_view pattern, std::string_view where) {
    if (pattern.size() > kMaxPatternBytes)
        return bad_input("{}: pattern of {} bytes, at most {} are allowed", where, pattern.size(), kMaxPatternBytes);
    FR_ASSIGN(const std::string translated, translate_pattern(pattern, where));
    int error = 0;
    PCRE2_SIZE offset = 0;
    // In the reference's syntax ^ and $ always work by line.
    const std::uint32_t options = PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C;
    auto code = std::make_unique<Code>();
    code->code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(), options, &error,
                               &offset, nullptr);
    if (code->code == nullptr) {
        PCRE2_UCHAR text[256];
        pcre2_get_error_message(error, text, sizeof text);
        return bad_input("{}: pattern '{}': {}", where, pattern, reinterpret_cast<const char*>(text));
    }
    std::uint32_t look_behind = 0, back_reference = 0;
    pcre2_pattern_info(code->code, PCRE2_INFO_MAXLOOKBEHIND, &look_behind);
    pcre2_pattern_info(code->code, PCRE2_INFO_BACKREFMAX, &back_reference);
    if (look_behind > kMaxLookBehind)
        return bad_input("{}: pattern '{}': looks {} characters back, at most {} are allowed", where, pattern,
                         look_behind, kMaxLookBehind);
    // They compare texts of any length at one step each, so steps would not bound the work.
    if (back_reference > 0) return bad_input("{}: pattern '{}': back-references are not supported", where, pattern);
    pcre2_jit_compile(code->code, PCRE2_JIT_COMPLETE | PCRE2_JIT_PARTIAL_HARD);  // without JIT it is only slower
    code->where = where;
    code->pattern = pattern;
    return Regex(std::move(code));
}

struct Regex::Matcher::State {
    const Code& code;
    pcre2_match_data* data;
    pcre2_match_context* context;
    pcre2_jit_stack* stack = nullptr;
    std::size_t budget;

    State(const Code& from, std::size_t text_bytes)
        : code(from),
          data(pcre2_match_data_create_from_pattern(from.code, nullptr)),
          context(pcre2_match_context_create(nullptr)),
          budget(kBudgetBytes + kBudgetPerByte * text_bytes) {}
    ~State() {
        pcre2_match_data_free(data);
        pcre2_match_context_free(context);
        pcre2_jit_stack_free(stack);
    }
    int match_once(std::string_view text, std::size_t from, std::uint32_t options) {
        return pcre2_match(code.code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from,
                           options | PCRE2_NO_UTF_CHECK, data, context);
    }
    int match(std::string_view text, std::size_t from, std::uint32_t options) {
        const std::size_t steps = kStepsPerByte * (kWindowBytes + text.size() - from);
        pcre2_set_match_limit(context, static_cast<std::uint32_t>(std::min<std::size_t>(steps, UINT32_MAX)));
        const int found = match_once(text, from, options);
        if (found != PCRE2_ERROR_JIT_STACKLIMIT || stack != nullptr) return found;
        stack = pcre2_jit_stack_create(32768, kJitStackBytes, nullptr);
        if (stack == nullptr) return found;
        pcre2_jit_stack_assign(context, nullptr, stack);
        return match_once(text, from, options);
    }
};

Regex::Matcher::Matcher(const Regex& regex, std::size_t text_bytes)
    : state_(std::make_unique<State>(*regex.code_, text_bytes)) {}
Regex::Matcher::~Matcher() = default;

bool Regex::Matcher::give_up(std::string_view why) {
    status_ = bad_input("{}: pattern '{}': {}", state_->code.where, state_->code.pattern, why);
    return false;
}

bool Regex::Matcher::find(std::string_view text, std::size_t from) {
    State& state = *state_;
    if (!status_ || from > text.size()) return false;
    if (state.data == nullptr || state.context == nullptr) return give_up("no memory to match it");
    const PCRE2_SIZE* range = pcre2_get_ovector_pointer(state.data);
    const auto next_char = [&](std::size_t at) {
        do ++at;
        while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80);
        return at;
    };
    // No match begins between `from` and `at`.
    for (std::size_t at = from, window = kWindowBytes;;) {
        const bool grown = window > kWindowBytes;
        const std::size_t window_end = text.size() - at > window ? next_char(at + window - 1) : text.size();
        const bool whole = window_end == text.size();
        if (grown) {
            if (window_end - at > state.budget)
                return give_up("expected work in proportion to the text, it takes far more");
            state.budget -= window_end - at;
        }
        // Anchored where the window is large: else one call could try all its places, each at the cost of the window.
        const int found = state.match(text.substr(0, window_end), at,
                                      (whole ? 0U : PCRE2_PARTIAL_HARD) | (grown ? PCRE2_ANCHORED : 0U));
        if (found >= 0 && (whole || range[0] < window_end)) break;
        if (found == PCRE2_ERROR_PARTIAL) {
            window = (range[0] == at ? window : kWindowBytes) * 4;
            at = range[0];
        } else if (found == PCRE2_ERROR_NOMATCH || found >= 0) {  // an empty match at the border is the next window's
            if (whole && (!grown || at == text.size())) return false;
            at = grown ? next_char(at) : window_end;
            window = kWindowBytes;
        } else {
            PCRE2_UCHAR reason[256];
            pcre2_get_error_message(found, reason, sizeof reason);
            return give_up(reinterpret_cast<const char*>(reason));
        }
    }
    if (range[0] < from || range[1] < range[0] || range[1] > text.size()) return false;  // \K can do such things
    begin = range[0];
    end = range[1];
    return true;
}

}  // namespace frontier

#define PCRE2_CODE_UNIT_WIDTH 8
#include "text/regex.h"

#include <pcre2.h>

#include <algorithm>

namespace frontier {
namespace {

// The longest real pattern has about 1,500 bytes.
constexpr std::size_t kMaxPatternBytes = 65536;
// PCRE2's own default for its count of match attempts. Real patterns stay far below it whatever the text; a hostile one
// that backtracks exponentially gives up here.
constexpr std::uint32_t kMatchLimit = 10'000'000;
// Without a stack of its own a JIT match has 32 KB, which patterns that repeat a group outgrow on long words.
constexpr std::size_t kJitStackBytes = std::size_t{64} << 20;

}  // namespace

struct Regex::Code {
    pcre2_code* code = nullptr;
    bool jit = false;
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
    code->jit = pcre2_jit_compile(code->code, PCRE2_JIT_COMPLETE) == 0;
    return Regex(std::move(code));
}

struct Regex::Matcher::State {
    const pcre2_code* code;
    bool jit;
    pcre2_match_data* data;
    pcre2_match_context* context;
    pcre2_jit_stack* stack = nullptr;

    explicit State(const Code& from)
        : code(from.code),
          jit(from.jit),
          data(pcre2_match_data_create_from_pattern(from.code, nullptr)),
          context(pcre2_match_context_create(nullptr)) {
        if (context != nullptr) pcre2_set_match_limit(context, kMatchLimit);
    }
    ~State() {
        pcre2_match_data_free(data);
        pcre2_match_context_free(context);
        pcre2_jit_stack_free(stack);
    }
    int match(std::string_view text, std::size_t from, std::uint32_t options) {
        return pcre2_match(code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from,
                           options | PCRE2_NO_UTF_CHECK, data, context);
    }
};

Regex::Matcher::Matcher(const Regex& regex) : state_(std::make_unique<State>(*regex.code_)) {}
Regex::Matcher::~Matcher() = default;

bool Regex::Matcher::find(std::string_view text, std::size_t from) {
    State& state = *state_;
    if (state.data == nullptr || state.context == nullptr || from > text.size()) return false;
    int found = state.match(text, from, 0);
    if (found == PCRE2_ERROR_JIT_STACKLIMIT && state.stack == nullptr) {
        state.stack = pcre2_jit_stack_create(32768, kJitStackBytes, nullptr);
        if (state.stack != nullptr) {
            pcre2_jit_stack_assign(state.context, nullptr, state.stack);
            found = state.match(text, from, 0);
        }
    }
    if (found < 0) return false;
    const PCRE2_SIZE* range = pcre2_get_ovector_pointer(state.data);
    if (range[0] < from || range[1] < range[0] || range[1] > text.size()) return false;  // \K can do such things
    begin = range[0];
    end = range[1];
    return true;
}

}  // namespace frontier

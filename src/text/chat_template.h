// Chat templates: a bounded Jinja interpreter that remembers for each output byte whether it came from the user.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace frontier {

struct ChatMessage {
    std::string role;
    std::string content;
    Json fields;  // further keys of the message: tool_calls, name, reasoning_content ...; null = none. They win
};

struct RenderedText {
    std::string text;
    // Half-open byte ranges of `text` that came from the caller (contents, roles and other fields of messages, tools
    // and further variables), ascending and disjoint. Everything else is the template's own, or BOS and EOS, and may
    // hold control tokens.
    struct Range {
        std::size_t begin = 0;
        std::size_t end = 0;
    };
    std::vector<Range> untrusted;
};

struct ChatOptions {
    bool add_generation_prompt = true;
    std::string bos_token;  // trusted; empty if the model has none
    std::string eos_token;
    Json variables;  // further template variables: tools, enable_thinking, date_string ...; null = none
    std::optional<std::int64_t> now_unix_s;  // what strftime_now shows, as local time; without it, the clock
};

class ChatTemplate {
public:
    // `source` is Jinja as Hugging Face runs it: trim_blocks and lstrip_blocks on, the immutable sandbox, `break` and
    // `continue`, tojson without HTML escapes, raise_exception, strftime_now, `generation` blocks. A syntax error is
    // kBadInput with its line; features outside the supported subset (include, import, extends, block, recursive loops)
    // are named. `where` (a file) starts the error lines of parse and render.
    static Result<ChatTemplate> parse(std::string_view source, std::string_view where);
    // The plain form for models without a template: each message is a paragraph that begins with its role,
    //     System: TEXT
    //
    //     User: TEXT
    //
    //     Assistant: TEXT
    // with BOS in front, an empty line between messages, and "Assistant:" at the end when a reply is wanted. Contents
    // are trimmed. Any role is allowed.
    static ChatTemplate fallback();
    ~ChatTemplate();
    ChatTemplate(ChatTemplate&&) noexcept;
    ChatTemplate& operator=(ChatTemplate&&) noexcept;

    // raise_exception in the template is a kBadInput error with its text. Loops, recursion, memory and output are
    // bounded (jinja_limits.h). Thread-safe: a template is not changed by rendering it.
    // The template sees messages, add_generation_prompt, bos_token, eos_token, tools and documents (none unless given)
    // and `options.variables`, which win over these.
    Result<RenderedText> render(const std::vector<ChatMessage>& messages, const ChatOptions& options) const;

private:
    struct Program;
    explicit ChatTemplate(std::unique_ptr<Program> program);
    std::unique_ptr<Program> program_;
};

}  // namespace frontier

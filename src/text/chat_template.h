// Chat templates: a bounded Jinja interpreter that remembers for each output byte whether it came from the user.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace frontier {

struct ChatMessage {
    std::string role;
    std::string content;
};

struct RenderedText {
    std::string text;
    // Half-open byte ranges of `text` that came from message contents, ascending and disjoint. Everything else is the
    // template's own and may hold control tokens.
    struct Range {
        std::size_t begin = 0;
        std::size_t end = 0;
    };
    std::vector<Range> untrusted;
};

struct ChatOptions {
    bool add_generation_prompt = true;
    std::string bos_token;
    std::string eos_token;
    Json variables;  // further template variables: tools, enable_thinking, date_string ...; null = none
};

class ChatTemplate {
public:
    // `source` is Jinja as Hugging Face writes it (trim_blocks and lstrip_blocks on). A syntax error is kBadInput with
    // its line; features outside the supported subset are named.
    static Result<ChatTemplate> parse(std::string_view source, std::string_view where);
    // The documented plain form for models without a template.
    static ChatTemplate fallback();
    ~ChatTemplate();
    ChatTemplate(ChatTemplate&&) noexcept;
    ChatTemplate& operator=(ChatTemplate&&) noexcept;

    // raise_exception in the template is a kBadInput error with its text. Loops, recursion and output are bounded.
    Result<RenderedText> render(const std::vector<ChatMessage>& messages, const ChatOptions& options) const;

private:
    struct Program;
    explicit ChatTemplate(std::unique_ptr<Program> program);
    std::unique_ptr<Program> program_;
};

}  // namespace frontier

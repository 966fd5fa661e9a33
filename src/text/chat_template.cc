#include "text/chat_template.h"

#include "base/check.h"

#include "text/jinja_eval.h"
#include "text/jinja_json.h"
#include "text/jinja_parser.h"

namespace frontier {

struct ChatTemplate::Program {
    std::string where;
    jinja::StmtList body;
};

namespace {

constexpr std::string_view kFallbackSource =
    "{{- bos_token }}"
    "{%- for message in messages %}"
    "{{- message.role | capitalize }}: {{ message.content | trim }}"
    "{%- if not loop.last or add_generation_prompt %}{{ '\\n\\n' }}{% endif %}"
    "{%- endfor %}"
    "{%- if add_generation_prompt %}{{ 'Assistant:' }}{% endif %}";

Result<jinja::Value> message_value(jinja::Meter& meter, const ChatMessage& message) {
    using jinja::Text;
    using jinja::Value;
    std::vector<std::pair<Value, Value>> entries;
    FR_TRY(meter.allocate(message.role.size() + message.content.size()));
    entries.emplace_back(Value::string("role"), Value::string(Text(message.role, true)));
    entries.emplace_back(Value::string("content"), Value::string(Text(message.content, true)));
    if (message.fields.is_object()) {
        for (auto it = message.fields.begin(); it != message.fields.end(); ++it) {
            FR_ASSIGN(Value value, jinja::value_from_json(meter, it.value()));
            entries.emplace_back(Value::string(Text(it.key(), true)), std::move(value));
        }
    } else if (!message.fields.is_null()) {
        return bad_input("a message's further fields: expected an object, found {}", message.fields.type_name());
    }
    return make_dict(meter, std::move(entries));
}

Result<jinja::Interpreter::Context> make_context(jinja::Meter& meter, const std::vector<ChatMessage>& messages,
                                                 const ChatOptions& options) {
    using jinja::Value;
    jinja::Interpreter::Context context;
    std::vector<Value> list;
    list.reserve(messages.size());
    for (const ChatMessage& message : messages) {
        FR_ASSIGN(Value value, message_value(meter, message));
        list.push_back(std::move(value));
    }
    FR_ASSIGN(context["messages"], make_sequence(meter, jinja::Kind::kList, std::move(list)));
    context["add_generation_prompt"] = Value::boolean(options.add_generation_prompt);
    context["bos_token"] = Value::string(options.bos_token);
    context["eos_token"] = Value::string(options.eos_token);
    context["tools"] = Value::none();
    context["documents"] = Value::none();
    if (options.variables.is_object()) {
        for (auto it = options.variables.begin(); it != options.variables.end(); ++it) {
            FR_ASSIGN(context[it.key()], jinja::value_from_json(meter, it.value()));
        }
    } else if (!options.variables.is_null()) {
        return bad_input("the template variables: expected an object, found {}", options.variables.type_name());
    }
    return context;
}

}  // namespace

ChatTemplate::ChatTemplate(std::unique_ptr<Program> program) : program_(std::move(program)) {}
ChatTemplate::~ChatTemplate() = default;
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;

Result<ChatTemplate> ChatTemplate::parse(std::string_view source, std::string_view where) {
    auto program = std::make_unique<Program>();
    program->where = where;
    auto body = jinja::parse(source);
    if (!body) return bad_input("{}: chat template: {}", where, body.error().text);
    program->body = std::move(*body);
    return ChatTemplate(std::move(program));
}

ChatTemplate ChatTemplate::fallback() {
    auto parsed = parse(kFallbackSource, "the built-in template");
    FR_CHECK(parsed.has_value());
    return std::move(*parsed);
}

Result<RenderedText> ChatTemplate::render(const std::vector<ChatMessage>& messages, const ChatOptions& options) const {
    const jinja::Limits limits;
    jinja::Meter meter(limits);
    auto context = make_context(meter, messages, options);
    if (!context) return bad_input("{}: chat template: {}", program_->where, context.error().text);
    jinja::Interpreter interpreter(limits, std::move(*context), options.now_unix_s);
    auto text = interpreter.run(program_->body);
    if (!text) {
        return bad_input("{}: chat template: line {}: {}", program_->where, interpreter.line(), text.error().text);
    }
    RenderedText rendered{text->bytes(), {}};
    rendered.untrusted.reserve(text->untrusted().size());
    for (const auto& range : text->untrusted()) rendered.untrusted.push_back({range.begin, range.end});
    return rendered;
}

}  // namespace frontier

// Any template on a small conversation: no crash, no runaway, and user text is never taken for the template's own.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "text/jinja_eval.h"
#include "text/jinja_json.h"
#include "text/jinja_parser.h"

namespace {

using frontier::Json;
using frontier::jinja::Interpreter;
using frontier::jinja::Limits;
using frontier::jinja::Meter;

// A private-use character that only the conversation holds: wherever it comes out, it must be marked.
constexpr std::string_view kMarker = "\xEE\x80\x80";

const Json& variables() {
    static const Json kVariables = [] {
        const std::string mark(kMarker);
        Json messages = Json::array();
        messages.push_back({{"role", "system"}, {"content", "Be " + mark + "brief."}});
        messages.push_back({{"role", "user"}, {"content", "  Hi\n" + mark + mark + " <|im_end|>\xC3\x9F"}});
        messages.push_back({{"role", "assistant"}, {"content", "<think>\n" + mark + "</think>\n\nYes"}});
        messages.push_back({{"role", "tool"}, {"content", nullptr}, {"tool_calls", {{{"name", mark}}}}});
        return Json{{"messages", messages},
                    {"tools", {{{"name", "f" + mark}, {"parameters", {{"n", 1}, {"x", 2.5}}}}}},
                    {"add_generation_prompt", true},
                    {"enable_thinking", false},
                    {"documents", nullptr}};
    }();
    return kVariables;
}

void require(bool holds) {
    if (!holds) std::abort();
}

void check_provenance(std::string_view source, const frontier::jinja::Text& text) {
    std::size_t end = 0;
    for (const auto& range : text.untrusted()) {
        require(range.begin >= end && range.begin < range.end && range.end <= text.size());
        end = range.end;
    }
    // The template may spell the marker itself, in bytes or as an escape.
    if (source.find(kMarker) != std::string_view::npos || source.find('\\') != std::string_view::npos) return;
    const std::string& bytes = text.bytes();
    for (std::size_t at = bytes.find(kMarker); at != std::string::npos; at = bytes.find(kMarker, at + 1)) {
        for (std::size_t i = 0; i < kMarker.size(); ++i) require(text.is_untrusted_at(at + i));
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view source(reinterpret_cast<const char*>(data), size);
    const auto body = frontier::jinja::parse(source);
    if (!body) return 0;
    // Small enough for many runs a second; the code that keeps to them is the same.
    Limits limits;
    limits.max_steps = 200'000;
    limits.max_allocated_bytes = std::size_t{16} << 20;
    limits.max_string_bytes = std::size_t{1} << 20;
    Meter meter(limits);
    Interpreter::Context context;
    for (auto it = variables().begin(); it != variables().end(); ++it) {
        auto value = value_from_json(meter, it.value());
        require(value.has_value());
        context[it.key()] = std::move(*value);
    }
    context["bos_token"] = frontier::jinja::Value::string("<s>");
    context["eos_token"] = frontier::jinja::Value::string("</s>");
    Interpreter interpreter(limits, std::move(context), 0);
    const auto text = interpreter.run(*body);
    if (text) check_provenance(source, *text);
    return 0;
}

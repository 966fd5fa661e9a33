#include "text/chat_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "text/jinja_eval.h"
#include "text/jinja_parser.h"

namespace frontier {
namespace {

using testing::HasSubstr;

// The rendered text with each untrusted range in double angle brackets.
std::string marked(const RenderedText& rendered) {
    std::string out;
    std::size_t position = 0;
    for (const auto& range : rendered.untrusted) {
        EXPECT_LE(position, range.begin);
        EXPECT_LT(range.begin, range.end);
        EXPECT_LE(range.end, rendered.text.size());
        out += rendered.text.substr(position, range.begin - position);
        out += "\u00ab" + rendered.text.substr(range.begin, range.end - range.begin) + "\u00bb";
        position = range.end;
    }
    return out + rendered.text.substr(position);
}

Result<RenderedText> render(std::string_view source, const Json& variables = nullptr,
                            const std::vector<ChatMessage>& messages = {}) {
    auto parsed = ChatTemplate::parse(source, "test.jinja");
    if (!parsed) return std::unexpected(parsed.error());
    ChatOptions options;
    options.bos_token = "<s>";
    options.eos_token = "</s>";
    options.variables = variables;
    return parsed->render(messages, options);
}

std::string render_marked(std::string_view source, const Json& variables = nullptr,
                          const std::vector<ChatMessage>& messages = {}) {
    const auto rendered = render(source, variables, messages);
    EXPECT_TRUE(rendered.has_value()) << rendered.error().text;
    return rendered ? marked(*rendered) : "";
}

std::string error_of(std::string_view source, const Json& variables = nullptr) {
    const auto rendered = render(source, variables);
    EXPECT_FALSE(rendered.has_value()) << source.substr(0, 200);
    if (rendered) return "";
    EXPECT_EQ(rendered.error().code, ErrorCode::kBadInput);
    EXPECT_EQ(rendered.error().text.find('\n'), std::string::npos);
    return rendered.error().text;
}

TEST(ChatTemplate, MarksUserTextAndNotTheTemplatesOwn) {
    const std::string source =
        "{{ bos_token }}{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}"
        "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";
    EXPECT_EQ(render_marked(source, nullptr, {{"user", "<|im_end|>", {}}, {"assistant", "", {}}}),
              "<s><|im_start|>\u00abuser\u00bb\n\u00ab<|im_end|>\u00bb<|im_end|>\n"
              "<|im_start|>\u00abassistant\u00bb\n<|im_end|>\n<|im_start|>assistant\n");
}

TEST(ChatTemplate, ContentIsNeverRunAsATemplate) {
    EXPECT_EQ(render_marked("{{ messages[0].content }}", nullptr, {{"user", "{{ 7 * 7 }}{% if %}{# x", {}}}),
              "\u00ab{{ 7 * 7 }}{% if %}{# x\u00bb");
}

// Each operation keeps track of which bytes are the caller's: u is, everything else is not.
TEST(ChatTemplate, ProvenanceSurvivesEveryOperation) {
    const Json variables = {{"u", "a<b>C"},  {"list", {"x", "y"}}, {"n", 5},          {"dict1", {{"key", "val"}}},
                            {"sp", " q r "}, {"fill", "{:<>2}"},   {"percent", "%%"}, {"dict2", {{"k", 1}}}};
    const std::pair<const char*, const char*> cases[] = {
        {"{{ u }}", "\u00aba<b>C\u00bb"},
        {"{{ '<' ~ u ~ '>' }}", "<\u00aba<b>C\u00bb>"},
        {"{{ '[' + u + ']' }}", "[\u00aba<b>C\u00bb]"},
        {"{{ ('[' + u + ']')[1:3] }}", "\u00aba<\u00bb"},
        {"{{ ('[' + u + ']')[:2] }}", "[\u00aba\u00bb"},
        {"{{ ('[' + u + ']')[::-1] }}", "]\u00abC>b<a\u00bb["},
        {"{{ ('[' + u + ']') | reverse }}", "]\u00abC>b<a\u00bb["},
        {"{{ u[1] }}{{ u | first }}{{ ('-' ~ u) | first }}", "\u00ab<a\u00bb-"},
        {"{{ (' ' + u + ' ') | trim }}", "\u00aba<b>C\u00bb"},
        {"{{ ('x' + sp).strip() }}", "x\u00ab q r\u00bb"},
        {"{{ u.replace('b', 'ZZ') }}", "\u00aba<\u00bbZZ\u00ab>C\u00bb"},
        {"{{ 'a-b' | replace('-', u) }}", "a\u00aba<b>C\u00bbb"},
        {"{{ 'xyz'.replace('', u[0]) }}", "\u00aba\u00bbx\u00aba\u00bby\u00aba\u00bbz\u00aba\u00bb"},
        {"{{ ('p' + u + 's').split('<') | join('|') }}", "p\u00aba\u00bb|\u00abb>C\u00bbs"},
        {"{{ u.split('<') | join(u[0]) }}", "\u00abaab>C\u00bb"},
        {"{{ sp.split() | join('-') }}", "\u00abq\u00bb-\u00abr\u00bb"},
        {"{{ ('1' ~ u).partition('<') | join(',') }}", "1\u00aba\u00bb,<,\u00abb>C\u00bb"},
        {"{{ ('k' ~ u) | upper }}{{ ('k' ~ u) | lower }}{{ u | capitalize }}",
         "K\u00abA<B>C\u00bbk\u00aba<b>cA<b>c\u00bb"},
        {"{{ ('k' ~ u) | title }}{{ u.swapcase() }}", "K\u00aba<B>cA<B>c\u00bb"},
        {"{{ '%s-%s' % (u, 1) }}{{ '%-7s|' % u }}", "\u00aba<b>C\u00bb-1\u00aba<b>C\u00bb  |"},
        {"{{ u % () }}", "\u00aba<b>C\u00bb"},
        {"{{ '{}{x}'.format(u, x='t') }}{{ '{:>7}'.format(u) }}", "\u00aba<b>C\u00bbt  \u00aba<b>C\u00bb"},
        {"{{ 'v=%d' | format(n) }}", "v=\u00ab5\u00bb"},
        {"{{ [u, 't'] | join(', ') }}{{ ', '.join([u, 't']) }}", "\u00aba<b>C\u00bb, t\u00aba<b>C\u00bb, t"},
        {"{{ [u, 't'] }}", "['\u00aba<b>C\u00bb', 't']"},
        {"{{ {'k': u} | tojson }}", "{\"k\": \"\u00aba<b>C\u00bb\"}"},
        {"{{ dict1 | tojson }}", "{\"\u00abkey\u00bb\": \"\u00abval\u00bb\"}"},
        {"{{ [n, true] | tojson }}", "[\u00ab5\u00bb, true]"},
        {"{{ dict1 }}", "{'\u00abkey\u00bb': '\u00abval\u00bb'}"},
        {"{% for k, v in dict1.items() %}{{ k }}={{ v }}{% endfor %}", "\u00abkey\u00bb=\u00abval\u00bb"},
        {"{{ n }}{{ n + 1 }}{{ n | string }}{{ '7' | int }}{{ u | length }}", "\u00ab565\u00bb75"},
        {"{{ u * 2 }}", "\u00aba<b>Ca<b>C\u00bb"},
        {"{{ ('t' + u[0]) * 2 }}", "t\u00aba\u00bbt\u00aba\u00bb"},
        {"{{ u | e }}", "\u00aba&lt;b&gt;C\u00bb"},
        {"{{ u | list | join('.') }}", "\u00aba\u00bb.\u00ab<\u00bb.\u00abb\u00bb.\u00ab>\u00bb.\u00abC\u00bb"},
        {"{% for c in 'x' ~ u[0] %}{{ c }};{% endfor %}", "x;\u00aba\u00bb;"},
        {"{{ list | map('upper') | join }}{{ list | sort(reverse=true) | join(',') }}",
         "\u00abXYy\u00bb,\u00abx\u00bb"},
        {"{{ (u ~ '\n' ~ 't') | indent(2, true) }}", "  \u00aba<b>C\u00bb\n  t"},
        {"{{ u | truncate(4, true, '..', 0) }}", "\u00aba<\u00bb.."},
        {"{{ u.center(7, '*') }}{{ u | center(7) }}", "*\u00aba<b>C\u00bb* \u00aba<b>C\u00bb "},
        {"{% set x %}[{{ u }}]{% endset %}{{ x }}{{ x | length }}", "[\u00aba<b>C\u00bb]7"},
        {"{% macro m(x) %}({{ x }}){% endmacro %}{{ m(u) }}", "(\u00aba<b>C\u00bb)"},
        {"{% filter upper %}t{{ u }}{% endfilter %}", "T\u00abA<B>C\u00bb"},
        {"{% set ns = namespace(t='') %}{% set ns.t = ns.t ~ u ~ '.' %}{{ ns.t }}", "\u00aba<b>C\u00bb."},
        {"{{ u | default('d') }}{{ missing | default(u) }}{{ missing | default('d') }}", "\u00aba<b>Ca<b>C\u00bbd"},
        {"{{ u.removeprefix('a') }}{{ u.ljust(6) }}|", "\u00ab<b>Ca<b>C\u00bb |"},
        {"{{ ('a\n' ~ u).splitlines() | join('/') }}", "a/\u00aba<b>C\u00bb"},
        {"{{ strftime_now('%%') }}{{ strftime_now(u) }}", "%\u00aba<b>C\u00bb"},
        {"{{ bos_token }}{{ eos_token }}", "<s></s>"},
        // Bytes that the caller chose by way of a format, a style or a name.
        {"{{ fill.format('') }}{{ percent % () }}", "\u00ab<<%\u00bb"},
        {"{{ '{:<2}'.format('') }}|{{ [1] | tojson(indent=u[0]) }}", "  |\u00ab[\na1\n]\u00bb"},
        {"{{ dict(**dict2) }}{{ namespace(**dict2) }}",
         "{'\u00abk\u00bb': \u00ab1\u00bb}<Namespace {'\u00abk\u00bb': \u00ab1\u00bb}>"},
        {"{% macro m() %}{{ kwargs | first }}{% endmacro %}{{ m(**dict2) }}", "\u00abk\u00bb"},
        {"{{ u if true else 't' }}{{ u or 't' }}{{ u and 't' }}", "\u00aba<b>Ca<b>C\u00bbt"},
    };
    for (const auto& [source, expected] : cases) EXPECT_EQ(render_marked(source, variables), expected) << source;
}

TEST(ChatTemplate, MessagesCarryFurtherFields) {
    ChatMessage message{"assistant", "text", Json{{"tool_calls", {{{"name", "f"}}}}, {"content", nullptr}}};
    EXPECT_EQ(
        render_marked("{{ messages[0].tool_calls[0].name }}|{{ messages[0].content is none }}", nullptr, {message}),
        "\u00abf\u00bb|True");
    message.fields = Json::array({1});
    EXPECT_FALSE(render("x", nullptr, {message}).has_value());
    EXPECT_THAT(error_of("x", Json::array({1})), HasSubstr("expected an object, found array"));
}

TEST(ChatTemplate, InvalidUtf8PassesThrough) {
    EXPECT_EQ(render_marked("{{ messages[0].content | upper }}{{ messages[0].content | length }}", nullptr,
                            {{"user", "a\xff\xe6\x97", {}}}),
              "\u00abA\xff\xe6\x97\u00bb"
              "4");
    EXPECT_EQ(render_marked("{{ messages[0].content | tojson(true) }}", nullptr, {{"user", "\xff", {}}}),
              "\"\u00ab\\ufffd\u00bb\"");
}

TEST(ChatTemplate, FallbackNamesTheRoles) {
    const ChatTemplate fallback = ChatTemplate::fallback();
    ChatOptions options;
    options.bos_token = "<s>";
    const std::vector<ChatMessage> messages = {{"system", "Be brief.\n", {}}, {"user", " Hi <s> ", {}}};
    const auto rendered = fallback.render(messages, options);
    ASSERT_TRUE(rendered.has_value()) << rendered.error().text;
    EXPECT_EQ(marked(*rendered),
              "<s>\u00abSystem\u00bb: \u00abBe brief.\u00bb\n\n\u00abUser\u00bb: \u00abHi <s>\u00bb\n\nAssistant:");
    options.add_generation_prompt = false;
    EXPECT_EQ(fallback.render(messages, options)->text, "<s>System: Be brief.\n\nUser: Hi <s>");
    EXPECT_EQ(fallback.render({}, options)->text, "<s>");
    options.add_generation_prompt = true;
    EXPECT_EQ(fallback.render({}, options)->text, "<s>Assistant:");
}

TEST(ChatTemplate, ErrorsNameFileLineAndFeature) {
    EXPECT_EQ(error_of("a\n{% include 'x' %}"),
              "test.jinja: chat template: line 2: the statement 'include' is not supported in chat templates");
    EXPECT_EQ(error_of("\n\n{{ x | nosuch }}"), "test.jinja: chat template: line 3: no filter named 'nosuch'");
    EXPECT_EQ(error_of("{{ x is nosuch }}"), "test.jinja: chat template: line 1: no test named 'nosuch'");
    EXPECT_EQ(error_of("{% for i in x recursive %}{% endfor %}"),
              "test.jinja: chat template: line 1: recursive loops are not supported in chat templates");
    EXPECT_EQ(error_of("\n{{ raise_exception('bad\nroles') }}"),
              "test.jinja: chat template: line 2: the template refuses the conversation: bad roles");
    EXPECT_EQ(error_of("a\nb{{ missing.x }}"), "test.jinja: chat template: line 2: 'missing' is undefined");
    EXPECT_THAT(error_of("{% if x %}\n\n"), HasSubstr("line 2: expected 'endif', found the end of the template"));
    EXPECT_THAT(error_of("{{ 99999999999999999999 }}"), HasSubstr("does not fit 64 bits"));
    EXPECT_THAT(error_of("{{ 9223372036854775807 + 1 }}"), HasSubstr("does not fit a 64-bit integer"));
    EXPECT_THAT(error_of("{{ 10 ** 20 }}"), HasSubstr("does not fit a 64-bit integer"));
    EXPECT_THAT(error_of("{{ lipsum() }}"), HasSubstr("the function 'lipsum' is not supported"));
    for (const char* statement : {"import", "from", "extends", "block", "autoescape", "trans", "do", "debug"}) {
        EXPECT_THAT(error_of(std::string("{% ") + statement + " x %}"), HasSubstr(statement));
    }
}

std::string repeat(std::string_view text, std::size_t count) {
    std::string out;
    for (std::size_t i = 0; i < count; ++i) out += text;
    return out;
}

// The error under limits that are small enough for a test under sanitizers; the code that keeps to them is the same.
std::string limited_error_of(std::string_view source, std::uint64_t max_steps = 1'000'000) {
    jinja::Limits limits;
    limits.max_steps = max_steps;
    limits.max_allocated_bytes = 8 << 20;
    limits.max_string_bytes = 1 << 20;
    const auto body = jinja::parse(source);
    EXPECT_TRUE(body.has_value()) << source.substr(0, 200);
    if (!body) return "";
    jinja::Interpreter interpreter(limits, {});
    const auto text = interpreter.run(*body);
    EXPECT_FALSE(text.has_value()) << source.substr(0, 200);
    return text ? "" : text.error().text;
}

// Each of these would run for ages, exhaust memory or the stack. What ends it is the limit, and the error says so.
TEST(ChatTemplateBounds, Steps) {
    const std::string loops =
        "{% for a in range(100000) %}{% for b in range(100000) %}{% for c in range(100000) %}"
        "{% endfor %}{% endfor %}{% endfor %}";
    EXPECT_THAT(error_of(loops), HasSubstr("more than 20000000 steps"));
    EXPECT_THAT(limited_error_of(loops, 100'000), HasSubstr("more than 100000 steps"));
    EXPECT_THAT(error_of("{{ range(100001) }}"), HasSubstr("allowed are 100000"));
    // Doubling structure without doubling memory: printing and comparing it would take 2^99 steps.
    const std::string doubled =
        "{% set ns = namespace(x=[1], y=[1]) %}{% for i in range(99) %}"
        "{% set ns.x = [ns.x, ns.x] %}{% set ns.y = [ns.y, ns.y] %}{% endfor %}";
    EXPECT_THAT(limited_error_of(doubled + "{{ ns.x }}", 100'000), HasSubstr("steps"));
    EXPECT_THAT(limited_error_of(doubled + "{{ ns.x | tojson }}", 100'000), HasSubstr("steps"));
    EXPECT_THAT(limited_error_of(doubled + "{{ ns.x == ns.y }}"), HasSubstr("steps"));
    // The same with tuples as keys.
    EXPECT_THAT(limited_error_of("{% set ns = namespace(x=(1,), y=(1,)) %}{% for i in range(99) %}"
                                 "{% set ns.x = (ns.x, ns.x) %}{% set ns.y = (ns.y, ns.y) %}{% endfor %}"
                                 "{{ {ns.x: 1, ns.y: 2} }}"),
                HasSubstr("unhashable"));
    // Searching is linear: this haystack and needle take 10^11 comparisons the naive way.
    EXPECT_TRUE(render("{{ ('a' * 600000 ~ 'b') in 'a' * 1200000 }}").has_value());
    EXPECT_TRUE(render("{{ ('a' * 1200000).rfind('b' ~ 'a' * 600000) }}").has_value());
}

TEST(ChatTemplateBounds, Memory) {
    const std::string loop = "{% for i in range(99) %}";
    EXPECT_THAT(
        limited_error_of("{% set ns = namespace(x='ab') %}" + loop + "{% set ns.x = ns.x ~ ns.x %}{% endfor %}"),
        HasSubstr("bytes"));
    EXPECT_THAT(limited_error_of("{% set ns = namespace(x=[1]) %}" + loop + "{% set ns.x = ns.x + ns.x %}{% endfor %}"),
                HasSubstr("bytes"));
    EXPECT_THAT(error_of("{{ 'a' * 9223372036854775807 }}"), HasSubstr("bytes"));
    EXPECT_THAT(error_of("{{ [1] * 9223372036854775807 }}"), HasSubstr("too long"));
    EXPECT_THAT(error_of("{{ '%99999999999d' % 1 }}"), HasSubstr("width"));
    EXPECT_THAT(error_of("{{ 'x'.center(9999999999) }}"), HasSubstr("width"));
    EXPECT_THAT(limited_error_of("{% for i in range(100000) %}{{ 'x' * 10000 }}{% endfor %}"), HasSubstr("bytes"));
    EXPECT_THAT(error_of("{% for i in range(100000) %}{% set x = namespace() %}{% endfor %}{{ namespace() }}"),
                HasSubstr("namespaces"));
    // Each level holds its left part while the right one is made.
    EXPECT_THAT(limited_error_of("{% set s = 'x' * 900000 %}{{ " + repeat("s ~ (", 60) + "s" + repeat(")", 60) + " }}"),
                HasSubstr("bytes"));
    EXPECT_THAT(limited_error_of("{% macro m() %}{{ 'x' * 900000 }}{{ m() }}{% endmacro %}{{ m() }}"),
                HasSubstr("bytes"));
    EXPECT_EQ(
        render_marked("{{ 'aaa'.replace('a', 'b', -9223372036854775807) }}{{ 'a'.center(-9223372036854775807) }}"),
        "bbba");
}

TEST(ChatTemplateBounds, NestingOfSources) {
    constexpr std::size_t kDeep = 100'000;
    EXPECT_THAT(error_of("{{ " + repeat("(", kDeep) + "1" + repeat(")", kDeep) + " }}"), HasSubstr("deeper"));
    EXPECT_THAT(error_of("{{ " + repeat("[", kDeep)), HasSubstr("end of template"));
    EXPECT_THAT(error_of("{{ " + repeat("[", kDeep) + repeat("]", kDeep) + " }}"), HasSubstr("deeper"));
    EXPECT_THAT(error_of("{{ " + repeat("not ", kDeep) + "1 }}"), HasSubstr("deeper"));
    EXPECT_THAT(error_of("{{ " + repeat("-", kDeep) + "1 }}"), HasSubstr("deeper"));
    EXPECT_THAT(error_of("{{ x" + repeat(".y", kDeep) + " }}"), HasSubstr("deeper"));
    EXPECT_THAT(error_of("{{ x" + repeat("|trim", kDeep) + " }}"), HasSubstr("deeper"));
    EXPECT_THAT(error_of("{{ x" + repeat("()", kDeep) + " }}"), HasSubstr("deeper"));
    EXPECT_THAT(error_of("{{ 1" + repeat("+1", kDeep) + " }}"), HasSubstr("deeper"));
    EXPECT_THAT(error_of("{{ 1" + repeat(" if 1 else 1", kDeep / 2) + " }}"), HasSubstr("deeper"));
    EXPECT_THAT(error_of(repeat("{% if 1 %}", kDeep / 2)), HasSubstr("deeper"));
    EXPECT_THAT(error_of("{% if 0 %}" + repeat("{% elif 0 %}", kDeep / 2) + "{% endif %}"), HasSubstr("elif"));
    EXPECT_THAT(error_of(repeat("{% for i in [1] %}", kDeep / 4)), HasSubstr("deeper"));
    EXPECT_THAT(error_of("{% set " + repeat("(", kDeep) + "a" + repeat(")", kDeep) + " = 1 %}"), HasSubstr("deeper"));
    EXPECT_THAT(error_of(repeat("x", (1 << 20) + 1)), HasSubstr("bytes, allowed are"));
    // Long but flat is fine.
    EXPECT_TRUE(render("{{ [" + repeat("1,", kDeep) + "] | length }}").has_value());
    EXPECT_TRUE(render("{{ '" + repeat("x", kDeep) + "' | length }}").has_value());
    EXPECT_TRUE(render("{{ 1" + repeat("~1", kDeep) + " }}").has_value());
    EXPECT_TRUE(render(repeat("{{ 1 }}", kDeep)).has_value());
}

TEST(ChatTemplateBounds, RecursionAndNestingOfValues) {
    EXPECT_THAT(error_of("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"), HasSubstr("deeper"));
    EXPECT_THAT(error_of("{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}{{ a() }}{% endmacro %}{{ a() }}"),
                HasSubstr("deeper"));
    EXPECT_THAT(error_of("{% macro m() %}{% if caller %}{% endif %}{% call m() %}{% endcall %}{% endmacro %}{{ m() }}"),
                HasSubstr("deeper"));
    const std::string head = "{% set ns = namespace(x=[]) %}{% for i in range(1000) %}{% set ns.x = ";
    for (const char* wrapped : {"[ns.x]", "(ns.x,)", "{'a': ns.x}", "[ns.x].copy", "[ns.x] | reverse",
                                "{(1, 2): ns.x}.items()", "joiner(ns.x)", "{ns.x: 1}"}) {
        const std::string text = error_of(head + wrapped + " %}{% endfor %}");
        EXPECT_TRUE(text.find("nest") != std::string::npos || text.find("hash") != std::string::npos ||
                    text.find("cannot be printed") != std::string::npos)
            << wrapped << ": " << text;
    }
    // Cycles are possible through namespaces only; they neither hang nor leak (the leak checker sees to that).
    EXPECT_THAT(error_of("{% set ns = namespace() %}{% set ns.x = [ns] %}{{ ns }}"), HasSubstr("nest"));
    EXPECT_THAT(error_of("{% set a = namespace() %}{% set b = namespace() %}{% set a.x = [a] %}{% set b.x = [b] %}"
                         "{{ [a.x] | tojson }}"),
                HasSubstr("namespace"));
    EXPECT_TRUE(
        render("{% for i in [1, 2] %}{% macro m() %}{{ m }}{% endmacro %}{% set k = m %}{% endfor %}").has_value());
    Json deep = 1;
    for (int i = 0; i < 2000; ++i) deep = Json::array({std::move(deep)});
    EXPECT_THAT(error_of("{{ v }}", Json{{"v", deep}}), HasSubstr("nests deeper"));
}

TEST(ChatTemplate, ManyMessagesAreFine) {
    const std::string source =
        "{% for m in messages %}{{ '<|' ~ m.role ~ '|>' ~ m.content | trim ~ '\\n' }}"
        "{% if loop.last and m.role != 'user' %}{{ raise_exception('x') }}{% endif %}{% endfor %}";
    std::vector<ChatMessage> messages(10'001, ChatMessage{"user", std::string(500, 'y'), {}});
    const auto rendered = render(source, nullptr, messages);
    ASSERT_TRUE(rendered.has_value()) << rendered.error().text;
    EXPECT_EQ(rendered->text.size(), messages.size() * (4 + 4 + 500 + 1));
    EXPECT_EQ(rendered->untrusted.size(), 2 * messages.size());
}

}  // namespace
}  // namespace frontier

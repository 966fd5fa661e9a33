// Everything that the reference (Jinja2 set up as Hugging Face does) has rendered must come out the same here; see
// make_template_goldens.py. Where the reference fails, so must we.
#include <cstdlib>

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "text/chat_template.h"

namespace frontier {
namespace {

std::string read_file(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    EXPECT_TRUE(file.good()) << path;
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

std::filesystem::path source_dir() {
    return FRONTIER_SOURCE_DIR;
}

const Json& goldens() {
    static const Json kGoldens = Json::parse(read_file(source_dir() / "tests/text/data/template_goldens.json"));
    return kGoldens;
}

std::string template_source(const std::string& name) {
    if (!name.ends_with(".jinja")) {
        const Json config = Json::parse(read_file(source_dir() / "models" / name / "tokenizer_config.json"));
        return config.at("chat_template").get<std::string>();
    }
    return read_file(source_dir() / "tests/text/data/templates" / name);
}

std::vector<ChatMessage> messages_of(const Json& list) {
    std::vector<ChatMessage> messages;
    for (const Json& entry : list) {
        ChatMessage message;
        message.fields = Json::object();
        for (auto it = entry.begin(); it != entry.end(); ++it) {
            if (it.key() == "role") {
                message.role = it.value().get<std::string>();
            } else if (it.key() == "content" && it.value().is_string()) {
                message.content = it.value().get<std::string>();
            } else {
                message.fields[it.key()] = it.value();
            }
        }
        messages.push_back(std::move(message));
    }
    return messages;
}

ChatOptions options_of(const Json& variables) {
    ChatOptions options;
    options.bos_token = "<BOS>";
    options.eos_token = "<EOS>";
    options.variables = variables;
    // 2024-07-26 12:00 UTC, as in make_template_goldens.py.
    options.now_unix_s = 1721995200;
    return options;
}

void expect_golden(const Json& golden, const Result<RenderedText>& rendered) {
    if (golden.contains("error")) {
        EXPECT_FALSE(rendered.has_value())
            << "the reference fails: " << golden["error"] << "\nbut here: " << rendered->text;
        if (!rendered.has_value()) {
            EXPECT_EQ(rendered.error().code, ErrorCode::kBadInput);
            EXPECT_EQ(rendered.error().text.find('\n'), std::string::npos) << rendered.error().text;
        }
        return;
    }
    ASSERT_TRUE(rendered.has_value()) << rendered.error().text << "\nreference: " << golden["expected"];
    EXPECT_EQ(rendered->text, golden["expected"].get<std::string>());
}

class JinjaGoldens : public testing::Test {
protected:
    void SetUp() override {
        setenv("TZ", "UTC", 1);
        tzset();
    }
};

TEST_F(JinjaGoldens, PublishedTemplates) {
    ASSERT_GE(goldens()["templates"].size(), 20U);
    for (auto it = goldens()["templates"].begin(); it != goldens()["templates"].end(); ++it) {
        const auto parsed = ChatTemplate::parse(template_source(it.key()), it.key());
        ASSERT_TRUE(parsed.has_value()) << parsed.error().text;
        for (auto result = it.value().begin(); result != it.value().end(); ++result) {
            SCOPED_TRACE(it.key() + " / " + result.key());
            const Json& conversation = goldens()["conversations"][result.key()];
            expect_golden(result.value(),
                          parsed->render(messages_of(conversation["messages"]), options_of(conversation["variables"])));
        }
    }
}

TEST_F(JinjaGoldens, LanguageCases) {
    ASSERT_GE(goldens()["cases"].size(), 200U);
    for (const Json& golden : goldens()["cases"]) {
        const std::string source = golden["source"].get<std::string>();
        SCOPED_TRACE(source);
        const auto parsed = ChatTemplate::parse(source, "case");
        if (!parsed.has_value()) {
            expect_golden(golden, std::unexpected(parsed.error()));
            continue;
        }
        expect_golden(golden, parsed->render({}, options_of(goldens()["context"])));
    }
}

}  // namespace
}  // namespace frontier

// The goldens of the bundled models, from both formats of the same tokenizer.
#include <gtest/gtest.h>

#include "base/json.h"
#include "gguf_spec.h"
#include "text_test_util.h"

namespace frontier::test {
namespace {

const Json& golden() {
    static const Json json = Json::parse(read_file(source_path("tests/golden/golden.json")));
    return json;
}

std::shared_ptr<const Tokenizer> from_gguf(const std::string& name) {
    auto spec = spec_from_gguf(source_path("models/" + name));
    if (!spec) throw std::runtime_error(spec.error().text);
    return make(std::move(*spec));
}

std::shared_ptr<const Tokenizer> from_folder(const std::string& name) {
    const std::string folder = source_path("models/" + name);
    auto spec = parse_tokenizer_json(read_file(folder + "/tokenizer.json"),
                                     read_file(folder + "/tokenizer_config.json"), folder + "/tokenizer.json");
    if (!spec) throw std::runtime_error(spec.error().text);
    return make(std::move(*spec));
}

void check_case(const Tokenizer& tokenizer, const Json& entry, std::string_view text_field) {
    const auto text = entry[text_field].get<std::string>();
    const auto ids = entry["ids"].get<std::vector<TokenId>>();
    EXPECT_EQ(*tokenizer.encode(text, {.add_special = true, .parse_special = true}), ids) << text;
    EXPECT_EQ(tokenizer.decode(ids, true), tokenizer.decode(std::span(ids).first(1), true) + text);
}

class TaleTokens : public testing::TestWithParam<bool> {};

TEST_P(TaleTokens, GoldenCases) {
    const auto tokenizer = GetParam() ? from_gguf("tale-1m-f16.gguf") : from_folder("tale-1m");
    EXPECT_EQ(tokenizer->vocab_size(), 4096);
    EXPECT_EQ(tokenizer->spec().bos, 0);
    EXPECT_EQ(tokenizer->spec().eos, 1);
    EXPECT_TRUE(tokenizer->ends_generation(1));
    EXPECT_TRUE(tokenizer->ends_generation(4));
    EXPECT_FALSE(tokenizer->ends_generation(3));
    ASSERT_GT(golden()["tale_tokenizer_cases"].size(), 5U);
    for (const Json& entry : golden()["tale_tokenizer_cases"]) check_case(*tokenizer, entry, "text");
    for (const Json& prompt : golden()["models"]["tale-1m"]["prompts"]) {
        check_case(*tokenizer, prompt, "prompt");
        const auto continuation = prompt["greedy_ids"].get<std::vector<TokenId>>();
        EXPECT_EQ(tokenizer->decode(continuation), prompt["greedy_text"].get<std::string>());
    }
}

TEST_P(TaleTokens, RenderedTemplates) {
    const auto tokenizer = GetParam() ? from_gguf("tale-7m-f16.gguf") : from_folder("tale-7m");
    for (const Json& entry : golden()["chat_template_cases"]) {
        const auto text = entry["rendered"].get<std::string>();
        const TextSpan span{text, true};
        EXPECT_EQ(*tokenizer->encode_spans(std::span(&span, 1)), entry["ids"].get<std::vector<TokenId>>()) << text;
    }
}

INSTANTIATE_TEST_SUITE_P(Formats, TaleTokens, testing::Bool(),
                         [](const auto& param_info) { return param_info.param ? "gguf" : "tokenizer_json"; });

TEST(StoriesTokens, GoldenPrompts) {
    const auto tokenizer = from_gguf("stories260K-f32.gguf");
    for (const Json& prompt : golden()["models"]["stories260K"]["prompts"]) {
        const auto text = prompt["prompt"].get<std::string>();
        const auto ids = prompt["ids"].get<std::vector<TokenId>>();
        EXPECT_EQ(*tokenizer->encode(text), ids) << text;
        EXPECT_EQ(tokenizer->decode(ids), text);
        // A continuation keeps its first space.
        StreamDecoder decoder(tokenizer);
        std::string continued;
        for (const TokenId id : prompt["greedy_ids"].get<std::vector<TokenId>>()) continued += decoder.push(id);
        EXPECT_EQ(continued + decoder.finish(), prompt["greedy_text"].get<std::string>());
    }
}

}  // namespace
}  // namespace frontier::test

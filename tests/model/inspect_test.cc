#include "model/inspect.h"

#include "test_models.h"

namespace frontier {
namespace {

TEST(Inspect, ABundledModel) {
    auto source = open_model("tale-7m-f16");
    ASSERT_TRUE(source);
    const ModelInspection facts = inspect_model(**source);
    EXPECT_EQ(facts.format, "gguf");
    EXPECT_EQ(facts.architecture, "llama");
    ASSERT_TRUE(facts.config);
    EXPECT_EQ(facts.config->layers, 8);
    EXPECT_EQ(facts.parameters, 7344384);
    EXPECT_EQ(facts.weight_type, "F16");
    EXPECT_EQ(facts.tensors.size(), 2U + 8 * 9);
    ASSERT_EQ(facts.types.size(), 2U);
    EXPECT_EQ(facts.types[0].type, DType::kF16);
    EXPECT_EQ(facts.types[0].tensors, 1 + 8 * 7);
    EXPECT_EQ(facts.types[1].type, DType::kF32);
    EXPECT_EQ(facts.types[1].parameters, 17 * 256);
    EXPECT_EQ(facts.tensor_bytes, facts.types[0].bytes + facts.types[1].bytes);
    EXPECT_GT(facts.file_bytes, facts.tensor_bytes);
    EXPECT_NEAR(facts.bits_per_weight, 16.01, 0.01);
    ASSERT_TRUE(facts.tokenizer) << facts.tokenizer_error;
    EXPECT_EQ(facts.tokenizer->kind, "byte-level bpe");
    EXPECT_EQ(facts.tokenizer->pre_tokenizer, "gpt-2");
    EXPECT_EQ(facts.tokenizer->tokens, 4096);
    EXPECT_EQ(facts.tokenizer->merges, 3835);
    EXPECT_EQ(facts.tokenizer->control_tokens, 5);
    EXPECT_EQ(facts.tokenizer->bos->piece, "<|begin_of_text|>");
    EXPECT_EQ(facts.tokenizer->end_of_generation.size(), 2U);
    EXPECT_TRUE(facts.tokenizer->add_bos);
    EXPECT_FALSE(facts.chat_template.empty());
}

TEST(Inspect, WithoutATokenizerTheWeightsAreStillSeen) {
    TemporaryFolder folder;
    GgufMaker maker = GgufMaker::llama();
    ASSERT_TRUE(maker.write(folder.file("m.gguf")));
    auto source = open_model(folder.file("m.gguf"));
    ASSERT_TRUE(source);
    const ModelInspection facts = inspect_model(**source);
    EXPECT_FALSE(facts.tokenizer);
    EXPECT_THAT(facts.tokenizer_error, testing::HasSubstr("tokenizer.ggml.model"));
    EXPECT_EQ(facts.parameters, 2 * 100 * 64);
}

}  // namespace
}  // namespace frontier

#include "model/config.h"
#include "test_models.h"

namespace frontier {
namespace {

using testing::ElementsAre;

Result<ModelConfig> config_of(const GgufMaker& maker) {
    TemporaryFolder folder;
    const std::string path = folder.file("m.gguf");
    FR_TRY(maker.write(path));
    FR_ASSIGN(const GgufFile file, GgufFile::open(path));
    return config_from_gguf(file);
}

TEST(ConfigGguf, ReadsALlama) {
    const auto config = config_of(GgufMaker::llama());
    ASSERT_TRUE(config) << config.error().text;
    EXPECT_EQ(config->architecture->name, "llama");
    EXPECT_EQ(config->vocab_size, 100);
    EXPECT_EQ(config->hidden_size, 64);
    EXPECT_EQ(config->layers, 2);
    EXPECT_EQ(config->heads, 4);
    EXPECT_EQ(config->kv_heads, 2);
    EXPECT_EQ(config->head_dim, 16);
    EXPECT_EQ(config->ffn_size, 96);
    EXPECT_EQ(config->context_tokens, 128);
    EXPECT_FALSE(config->tied_embeddings);
    EXPECT_FALSE(config->qkv_bias);
    EXPECT_EQ(config->sliding_window_tokens, 0);
    EXPECT_EQ(config->attention_scale, 0.25F);
    EXPECT_TRUE(config->rope.interleaved);
    EXPECT_EQ(config->rope.inv_freq.size(), 8U);
    EXPECT_EQ(config->rope.magnitude, 1.0F);
}

TEST(ConfigGguf, WithoutAHeadTheEmbeddingIsTied) {
    GgufMaker maker = GgufMaker::llama();
    maker.tensors.pop_back();
    EXPECT_TRUE(config_of(maker)->tied_embeddings);
}

TEST(ConfigGguf, ArchitecturesDifferByTheirRow) {
    const auto qwen2 = config_of(GgufMaker::llama("qwen2"));
    ASSERT_TRUE(qwen2);
    EXPECT_TRUE(qwen2->qkv_bias);
    EXPECT_FALSE(qwen2->rope.interleaved);
    const auto qwen3 = config_of(GgufMaker::llama("qwen3"));
    ASSERT_TRUE(qwen3);
    EXPECT_TRUE(qwen3->architecture->qk_norm);
    EXPECT_FALSE(qwen3->qkv_bias);
}

TEST(ConfigGguf, OptionalKeysCount) {
    GgufMaker maker = GgufMaker::llama();
    maker.counts["llama.attention.key_length"] = 32;
    maker.counts["llama.attention.value_length"] = 32;
    maker.counts["llama.rope.dimension_count"] = 32;
    maker.counts["llama.attention.sliding_window"] = 64;
    maker.numbers["llama.attention.scale"] = 0.5F;
    maker.tensors.push_back({"blk.0.attn_q.bias", DType::kF32, {128}});
    maker.tensors.push_back({"blk.0.attn_output.bias", DType::kF32, {64}});
    const auto config = config_of(maker);
    ASSERT_TRUE(config) << config.error().text;
    EXPECT_EQ(config->head_dim, 32);
    EXPECT_EQ(config->sliding_window_tokens, 64);
    EXPECT_EQ(config->attention_scale, 0.5F);
    EXPECT_TRUE(config->qkv_bias);
    EXPECT_TRUE(config->attn_out_bias);
}

TEST(ConfigGguf, PerLayerCountsMustAgree) {
    GgufMaker maker = GgufMaker::llama();
    maker.counts.erase("llama.attention.head_count_kv");
    maker.int_arrays["llama.attention.head_count_kv"] = {2, 2};
    const auto config = config_of(maker);
    ASSERT_TRUE(config) << config.error().text;
    EXPECT_EQ(config->kv_heads, 2);
    maker.int_arrays["llama.attention.head_count_kv"] = {2, 4};
    expect_bad_input(config_of(maker), {"llama.attention.head_count_kv", "every layer", "2", "4"});
    maker.int_arrays["llama.attention.head_count_kv"] = {};
    expect_bad_input(config_of(maker), {"llama.attention.head_count_kv", "empty array"});
}

TEST(ConfigGguf, RopeScalingByTypeAndFactor) {
    GgufMaker maker = GgufMaker::llama();
    const auto plain = config_of(maker);
    maker.texts["llama.rope.scaling.type"] = "linear";
    maker.numbers["llama.rope.scaling.factor"] = 4;
    const auto linear = config_of(maker);
    ASSERT_TRUE(linear) << linear.error().text;
    // Division by 4 is exact.
    for (std::size_t i = 0; i < plain->rope.inv_freq.size(); ++i)
        EXPECT_EQ(linear->rope.inv_freq[i], plain->rope.inv_freq[i] / 4);
    maker.texts["llama.rope.scaling.type"] = "yarn";
    const auto yarn = config_of(maker);
    ASSERT_TRUE(yarn) << yarn.error().text;
    EXPECT_GT(yarn->rope.magnitude, 1.1F);
    maker.texts["llama.rope.scaling.type"] = "longrope";
    expect_bad_input(config_of(maker), {"llama.rope.scaling.type", "linear", "'longrope'"});
}

TEST(ConfigGguf, RopeFactorsDivide) {
    GgufMaker maker = GgufMaker::llama();
    const auto plain = config_of(maker);
    maker.tensors.push_back({"rope_freqs.weight", DType::kF32, {8}});
    TemporaryFolder folder;
    ASSERT_TRUE(maker.write(folder.file("m.gguf"), 2.0F));
    const auto file = GgufFile::open(folder.file("m.gguf"));
    ASSERT_TRUE(file);
    const auto scaled = config_from_gguf(*file);
    ASSERT_TRUE(scaled) << scaled.error().text;
    EXPECT_EQ(scaled->rope.inv_freq[3], plain->rope.inv_freq[3] / 2);
    expect_bad_input(config_of(maker), {"rope_freqs.weight", "got 0"});  // zeros
    maker.tensors.back().shape = {16};
    expect_bad_input(config_of(maker), {"rope_freqs.weight", "[8]", "[16]"});
    maker.tensors.back() = {"rope_freqs.weight", DType::kF16, {8}};
    expect_bad_input(config_of(maker), {"rope_freqs.weight", "F32", "F16"});
}

TEST(ConfigGguf, EveryNumberIsChecked) {
    struct Case {
        const char* key;
        std::uint32_t value;
        std::vector<std::string> error;
    };
    const std::vector<Case> cases = {
        {"llama.block_count", 0, {"llama.block_count", "1..1024", "got 0"}},
        {"llama.block_count", 1025, {"1..1024", "got 1025"}},
        {"llama.block_count", 4294967295U, {"llama.block_count", "4294967295"}},
        {"llama.embedding_length", 0, {"llama.embedding_length", "got 0"}},
        {"llama.embedding_length", 1U << 30, {"llama.embedding_length", "1073741824"}},
        {"llama.embedding_length", 65, {"llama.attention.head_count", "llama.embedding_length = 65"}},
        {"llama.embedding_length", 4, {"head size", "got 1"}},
        {"llama.embedding_length", 12, {"even", "got 3"}},
        {"llama.feed_forward_length", 0, {"llama.feed_forward_length", "got 0"}},
        {"llama.context_length", 0, {"llama.context_length", "got 0"}},
        {"llama.attention.head_count", 0, {"llama.attention.head_count", "got 0"}},
        {"llama.attention.head_count", 5, {"llama.attention.head_count", "divisor", "got 5"}},
        {"llama.attention.head_count_kv", 0, {"llama.attention.head_count_kv", "got 0"}},
        {"llama.attention.head_count_kv", 3, {"llama.attention.head_count_kv", "divisor", "= 4", "got 3"}},
        {"llama.attention.head_count_kv", 8, {"llama.attention.head_count_kv", "divisor", "got 8"}},
        {"llama.attention.key_length", 514, {"llama.attention.key_length", "2..512", "got 514"}},
        {"llama.attention.key_length", 15, {"llama.attention.key_length", "even", "got 15"}},
        {"llama.attention.value_length", 8, {"llama.attention.value_length", "= 16", "got 8"}},
        {"llama.rope.dimension_count", 8, {"llama.rope.dimension_count", "16", "got 8"}},
        {"llama.expert_count", 8, {"llama.expert_count", "got 8"}},
    };
    for (const Case& c : cases) {
        SCOPED_TRACE(testing::Message() << c.key << " = " << c.value);
        GgufMaker maker = GgufMaker::llama();
        maker.counts[c.key] = c.value;
        std::vector<std::string> parts = c.error;
        parts.emplace_back("m.gguf");
        expect_bad_input(config_of(maker), parts);
    }
}

TEST(ConfigGguf, EveryRealIsChecked) {
    const std::vector<std::pair<std::string, float>> cases = {
        {"llama.attention.layer_norm_rms_epsilon", -1e-5F},
        {"llama.attention.layer_norm_rms_epsilon", 2.0F},
        {"llama.attention.layer_norm_rms_epsilon", std::numeric_limits<float>::quiet_NaN()},
        {"llama.rope.freq_base", 0},
        {"llama.rope.freq_base", 1},
        {"llama.rope.freq_base", std::numeric_limits<float>::infinity()},
        {"llama.attention.scale", -1},
        {"llama.rope.scale_linear", 0},
    };
    for (const auto& [key, value] : cases) {
        SCOPED_TRACE(testing::Message() << key << " = " << value);
        GgufMaker maker = GgufMaker::llama();
        maker.numbers[key] = value;
        expect_bad_input(config_of(maker), {key, "m.gguf"});
    }
}

TEST(ConfigGguf, MissingKeysAreNamed) {
    for (const char* key : {"llama.block_count", "llama.embedding_length", "llama.feed_forward_length",
                            "llama.context_length", "llama.attention.head_count"}) {
        GgufMaker maker = GgufMaker::llama();
        maker.counts.erase(key);
        expect_bad_input(config_of(maker), {key, "missing"});
    }
    GgufMaker maker = GgufMaker::llama();
    maker.numbers.clear();
    expect_bad_input(config_of(maker), {"llama.attention.layer_norm_rms_epsilon", "missing"});
    maker = GgufMaker::llama();
    maker.texts.clear();
    expect_bad_input(config_of(maker), {"general.architecture", "missing"});
    maker = GgufMaker::llama();
    maker.tensors.erase(maker.tensors.begin());
    expect_bad_input(config_of(maker), {"token_embd.weight", "missing"});
}

TEST(ConfigGguf, UnknownArchitectureNamesTheSupportedOnes) {
    GgufMaker maker = GgufMaker::llama();
    maker.texts["general.architecture"] = "mamba\n";
    expect_bad_input(config_of(maker), {"m.gguf", "general.architecture", "llama, qwen2, qwen3", "mamba"});
    maker.texts["general.architecture"] = std::string(100000, 'x');
    const auto config = config_of(maker);
    ASSERT_FALSE(config);
    EXPECT_LT(config.error().text.size(), 500U);
}

TEST(ConfigGguf, WrongTypesAreNamed) {
    GgufMaker maker = GgufMaker::llama();
    maker.counts.erase("llama.block_count");
    maker.texts["llama.block_count"] = "two";
    expect_bad_input(config_of(maker), {"llama.block_count"});
    maker = GgufMaker::llama();
    maker.flags["llama.attention.causal"] = false;
    expect_bad_input(config_of(maker), {"llama.attention.causal", "true", "false"});
}

}  // namespace
}  // namespace frontier

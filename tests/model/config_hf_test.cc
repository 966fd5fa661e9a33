#include "model/config.h"
#include "test_models.h"

namespace frontier {
namespace {

Json llama() {
    return Json::parse(R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 100,
        "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "max_position_embeddings": 128, "hidden_act": "silu", "rms_norm_eps": 1e-05})");
}

Json with(Json config, const char* changes) {
    config.update(Json::parse(changes));
    return config;
}

Result<ModelConfig> read(const Json& json) {
    return config_from_hf(json, "dir/config.json");
}

TEST(ConfigHf, ReadsALlama) {
    const auto config = read(llama());
    ASSERT_TRUE(config) << config.error().text;
    EXPECT_EQ(config->architecture->name, "llama");
    EXPECT_EQ(config->head_dim, 16);
    EXPECT_EQ(config->kv_heads, 2);
    EXPECT_EQ(config->context_tokens, 128);
    EXPECT_FALSE(config->tied_embeddings);
    EXPECT_FALSE(config->rope.interleaved);
    EXPECT_EQ(config->rope.inv_freq.size(), 8U);
    EXPECT_EQ(config->rope.inv_freq[0], 1.0F);
}

TEST(ConfigHf, ClassDefaults) {
    Json json = llama();
    json.erase("num_key_value_heads");
    json.erase("rms_norm_eps");
    json.erase("max_position_embeddings");
    json.erase("hidden_act");
    const auto config = read(json);
    ASSERT_TRUE(config) << config.error().text;
    EXPECT_EQ(config->kv_heads, 4);
    EXPECT_EQ(config->rms_norm_eps, 1e-6F);
    EXPECT_EQ(config->context_tokens, 2048);
    const auto qwen3 = read(with(llama(), R"({"architectures": ["Qwen3ForCausalLM"]})"));
    ASSERT_TRUE(qwen3);
    EXPECT_EQ(qwen3->head_dim, 128);  // not hidden / heads
    EXPECT_TRUE(qwen3->architecture->qk_norm);
}

TEST(ConfigHf, FamiliesByClassOrType) {
    EXPECT_EQ(read(with(llama(), R"({"architectures": ["MistralForCausalLM"]})"))->architecture->name, "llama");
    EXPECT_TRUE(read(with(llama(), R"({"architectures": ["Qwen2ForCausalLM"]})"))->qkv_bias);
    Json json = with(llama(), R"({"model_type": "qwen2"})");
    json.erase("architectures");
    EXPECT_EQ(read(json)->architecture->name, "qwen2");
    expect_bad_input(
        read(with(llama(), R"({"architectures": ["MambaForCausalLM"]})")),
        {"dir/config.json", "'architectures'", "LlamaForCausalLM", "Qwen3ForCausalLM", "MambaForCausalLM"});
    expect_bad_input(read(with(llama(), R"({"architectures": []})")), {"'architectures'"});
    expect_bad_input(read(with(llama(), R"({"architectures": "LlamaForCausalLM"})")), {"'architectures'"});
    json["model_type"] = "bert";
    expect_bad_input(read(json), {"'model_type'", "bert"});
}

TEST(ConfigHf, AttentionBias) {
    const auto config = read(with(llama(), R"({"attention_bias": true})"));
    ASSERT_TRUE(config);
    EXPECT_TRUE(config->qkv_bias);
    EXPECT_TRUE(config->attn_out_bias);
    const auto qwen2 = read(with(llama(), R"({"architectures": ["Qwen2ForCausalLM"]})"));
    EXPECT_TRUE(qwen2->qkv_bias);
    EXPECT_FALSE(qwen2->attn_out_bias);
}

TEST(ConfigHf, SlidingWindowIsForAllLayersOrNone) {
    // llama never has one; mistral has it whenever the field is set.
    EXPECT_EQ(read(with(llama(), R"({"sliding_window": 32})"))->sliding_window_tokens, 0);
    const Json mistral = with(llama(), R"({"architectures": ["MistralForCausalLM"]})");
    EXPECT_EQ(read(with(mistral, R"({"sliding_window": 32})"))->sliding_window_tokens, 32);
    EXPECT_EQ(read(with(mistral, R"({"sliding_window": null})"))->sliding_window_tokens, 0);

    const Json qwen = with(llama(), R"({"architectures": ["Qwen2ForCausalLM"], "sliding_window": 32})");
    EXPECT_EQ(read(qwen)->sliding_window_tokens, 0);
    EXPECT_EQ(read(with(qwen, R"({"use_sliding_window": true, "max_window_layers": 2})"))->sliding_window_tokens, 0);
    EXPECT_EQ(read(with(qwen, R"({"use_sliding_window": true, "max_window_layers": 0})"))->sliding_window_tokens, 32);
    EXPECT_EQ(read(with(qwen, R"({"use_sliding_window": true})"))->sliding_window_tokens, 0);  // default 28 of 2 layers
    expect_bad_input(read(with(qwen, R"({"use_sliding_window": true, "max_window_layers": 1})")),
                     {"'max_window_layers'", "2 layers", "got 1"});
    const char* both = R"({"use_sliding_window": true, "layer_types": ["full_attention", "sliding_attention"]})";
    expect_bad_input(read(with(qwen, both)), {"'layer_types'", "1 of 2"});
    const char* all = R"({"use_sliding_window": true, "layer_types": ["sliding_attention", "sliding_attention"]})";
    EXPECT_EQ(read(with(qwen, all))->sliding_window_tokens, 32);
}

TEST(ConfigHf, RopeInEitherForm) {
    const auto plain = read(with(llama(), R"({"rope_theta": 500000.0})"));
    const auto moved = read(with(llama(), R"({"rope_parameters": {"rope_theta": 500000.0, "rope_type": "default"}})"));
    ASSERT_TRUE(plain);
    ASSERT_TRUE(moved) << moved.error().text;
    EXPECT_EQ(plain->rope.inv_freq, moved->rope.inv_freq);

    const char* old_form = R"({"rope_scaling": {"type": "linear", "factor": 2.0}})";
    const char* new_form = R"({"rope_parameters": {"rope_type": "linear", "factor": 2.0, "rope_theta": 10000.0}})";
    EXPECT_EQ(read(with(llama(), old_form))->rope.inv_freq, read(with(llama(), new_form))->rope.inv_freq);
    EXPECT_EQ(read(with(llama(), old_form))->rope.inv_freq[0], 0.5F);
}

TEST(ConfigHf, RopeErrors) {
    const std::vector<std::pair<const char*, std::vector<std::string>>> cases = {
        {R"({"rope_scaling": {"type": "dynamic", "factor": 2}})", {"rope_scaling", "'rope_type'", "llama3", "dynamic"}},
        {R"({"rope_scaling": {"type": "linear"}})", {"rope_scaling", "'factor'", "missing"}},
        {R"({"rope_scaling": {"type": "linear", "factor": 0.5}})", {"'factor'", "got 0.5"}},
        {R"({"rope_scaling": {"type": "linear", "factor": "2"}})", {"'factor'", "string"}},
        {R"({"rope_scaling": "linear"})", {"rope_scaling", "object", "string"}},
        {R"({"rope_theta": 0.5})", {"'rope_theta'", "got 0.5"}},
        {R"({"rope_scaling": {"rope_type": "llama3", "factor": 8, "low_freq_factor": 4, "high_freq_factor": 4}})",
         {"'high_freq_factor'", "got 4"}},
        {R"({"rope_parameters": {"rope_type": "default", "partial_rotary_factor": 0.5}})",
         {"'partial_rotary_factor'", "got 0.5"}},
    };
    for (const auto& [changes, parts] : cases) {
        SCOPED_TRACE(changes);
        expect_bad_input(read(with(llama(), changes)), parts);
    }
}

TEST(ConfigHf, FieldErrors) {
    const std::vector<std::pair<const char*, std::vector<std::string>>> cases = {
        {R"({"vocab_size": 0})", {"'vocab_size'", "got 0"}},
        {R"({"vocab_size": 1e18})", {"'vocab_size'"}},
        {R"({"vocab_size": "100"})", {"'vocab_size'", "integer", "string"}},
        {R"({"hidden_size": -64})", {"'hidden_size'", "got -64"}},
        {R"({"hidden_size": 64.5})", {"'hidden_size'"}},
        {R"({"hidden_size": null})", {"'hidden_size'", "missing"}},
        {R"({"hidden_size": 66})", {"'num_attention_heads'", "66"}},
        {R"({"intermediate_size": 99999999999})", {"'intermediate_size'"}},
        {R"({"num_hidden_layers": 1025})", {"'num_hidden_layers'", "1..1024"}},
        {R"({"num_attention_heads": 0})", {"'num_attention_heads'"}},
        {R"({"num_key_value_heads": 3})", {"num_key_value_heads", "got 3"}},
        {R"({"head_dim": 15})", {"head_dim", "even", "15"}},
        {R"({"head_dim": 1024})", {"'head_dim'", "2..512"}},
        {R"({"max_position_embeddings": 0})", {"'max_position_embeddings'"}},
        {R"({"rms_norm_eps": -1})", {"'rms_norm_eps'"}},
        {R"({"hidden_act": "gelu"})", {"'hidden_act'", "silu", "gelu"}},
        {R"({"mlp_bias": true})", {"'mlp_bias'"}},
        {R"({"attention_bias": "yes"})", {"'attention_bias'"}},
        {R"({"quantization_config": {"quant_method": "gptq"}})", {"'quantization_config'"}},
        {R"({"partial_rotary_factor": 0.5})", {"'partial_rotary_factor'", "got 0.5"}},
    };
    for (const auto& [changes, parts] : cases) {
        SCOPED_TRACE(changes);
        std::vector<std::string> all = parts;
        all.emplace_back("dir/config.json");
        expect_bad_input(read(with(llama(), changes)), all);
    }
    expect_bad_input(read(Json::array()), {"dir/config.json", "object"});
}

}  // namespace
}  // namespace frontier

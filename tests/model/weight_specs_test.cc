#include "model/weight_specs.h"

#include <set>

#include "test_models.h"

namespace frontier {
namespace {

ModelConfig config_of(std::string_view spec) {
    return SyntheticModel::create(spec)->config();
}

// transformers' names, spelled out independently of the table.
std::vector<std::string> hf_names(std::int32_t layers, bool tied, const std::vector<std::string>& per_layer) {
    std::vector<std::string> names = {"model.embed_tokens.weight", "model.norm.weight"};
    if (!tied) names.emplace_back("lm_head.weight");
    for (std::int32_t layer = 0; layer < layers; ++layer)
        for (const std::string& name : per_layer) names.push_back(fmt::format("model.layers.{}.{}", layer, name));
    return names;
}

const std::vector<std::string> kLlamaLayer = {
    "input_layernorm.weight",  "self_attn.q_proj.weight", "self_attn.k_proj.weight",
    "self_attn.v_proj.weight", "self_attn.o_proj.weight", "post_attention_layernorm.weight",
    "mlp.gate_proj.weight",    "mlp.up_proj.weight",      "mlp.down_proj.weight"};

void expect_complete(std::string_view spec, std::vector<std::string> per_layer) {
    SCOPED_TRACE(spec);
    const ModelConfig config = config_of(spec);
    std::set<std::string> translated;
    for (const std::string& name : hf_names(config.layers, config.tied_embeddings, per_layer)) {
        const auto canonical = canonical_from_hf(name);
        ASSERT_TRUE(canonical) << name;
        EXPECT_TRUE(translated.insert(*canonical).second) << name;
    }
    std::set<std::string> wanted;
    for (const WeightSpec& weight : weight_specs(config)) wanted.insert(weight.name);
    EXPECT_EQ(translated, wanted);
}

TEST(WeightSpecs, EveryHuggingFaceNameHasItsPlace) {
    expect_complete("tiny-llama", kLlamaLayer);
    expect_complete("tiny-llama3", kLlamaLayer);  // tied
    std::vector<std::string> qwen2 = kLlamaLayer;
    for (const char* name : {"self_attn.q_proj.bias", "self_attn.k_proj.bias", "self_attn.v_proj.bias"})
        qwen2.emplace_back(name);
    expect_complete("tiny-qwen2", qwen2);
    std::vector<std::string> qwen3 = kLlamaLayer;
    for (const char* name : {"self_attn.q_norm.weight", "self_attn.k_norm.weight"}) qwen3.emplace_back(name);
    expect_complete("tiny-qwen3", qwen3);
}

TEST(WeightSpecs, NamesOfOthersAreNotOurs) {
    EXPECT_EQ(canonical_from_hf("model.layers.3.self_attn.q_proj.weight"), "blk.3.attn_q.weight");
    EXPECT_EQ(canonical_from_hf("layers.12.mlp.down_proj.weight"), "blk.12.ffn_down.weight");
    for (const char* name : {"model.layers.0.self_attn.rotary_emb.inv_freq", "model.layers.x.mlp.up_proj.weight",
                             "model.layers.-1.mlp.up_proj.weight", "model.layers.01.mlp.up_proj.weight",
                             "model.layers.99999999999.mlp.up_proj.weight", "model.layers.1", "model.layers.",
                             "model.layers.1mlp.up_proj.weight", "layers", "", "visual.blocks.0.norm.weight"})
        EXPECT_EQ(canonical_from_hf(name), std::nullopt) << name;
}

TEST(WeightSpecs, ShapesFollowTheConfig) {
    // qwen3: heads * head_dim (8 * 64) differs from hidden (256).
    std::map<std::string, std::vector<std::int64_t>> shapes;
    for (const WeightSpec& spec : weight_specs(config_of("tiny-qwen3"))) shapes[spec.name] = spec.shape;
    using Shape = std::vector<std::int64_t>;
    EXPECT_EQ(shapes["token_embd.weight"], (Shape{1024, 256}));
    EXPECT_FALSE(shapes.contains("output.weight"));
    EXPECT_EQ(shapes["blk.2.attn_q.weight"], (Shape{512, 256}));
    EXPECT_EQ(shapes["blk.2.attn_k.weight"], (Shape{128, 256}));
    EXPECT_EQ(shapes["blk.2.attn_v.weight"], (Shape{128, 256}));
    EXPECT_EQ(shapes["blk.2.attn_q_norm.weight"], (Shape{64}));
    EXPECT_EQ(shapes["blk.2.attn_output.weight"], (Shape{256, 512}));
    EXPECT_EQ(shapes["blk.2.ffn_gate.weight"], (Shape{768, 256}));
    EXPECT_EQ(shapes["blk.2.ffn_down.weight"], (Shape{256, 768}));
    EXPECT_EQ(shapes["output_norm.weight"], (Shape{256}));
    EXPECT_FALSE(shapes.contains("blk.3.attn_q.weight"));
}

}  // namespace
}  // namespace frontier

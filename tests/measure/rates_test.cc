#include "measure/rates.h"

#include <gtest/gtest.h>

#include "engine/loader.h"

namespace frontier {
namespace {

// 10 GB/s, 100 G int8 and 40 G f32 operations per second; a model of 1 GB and 1 GFLOP per token.
TEST(RooflineShare, FollowsTheDefinitions) {
    Roofline roofline;
    roofline.bandwidth = {{1, "DRAM", 1, 10}};
    roofline.arithmetic = {{Isa::kAvx2, "int8_dot", 1, 100}, {Isa::kAvx2, "f32_fma", 1, 40}};
    const StepCost cost{.bytes = 1e9, .flops = 1e9};
    const auto share = [&](const char* test, std::int64_t batch, double rate, const char* compute) {
        return roofline_share_of(roofline, test, batch, rate, cost, Isa::kAvx2, compute, 1);
    };
    EXPECT_DOUBLE_EQ(share("decode", 1, 5, "int8").value(), 0.5);     // of 10 tokens/s
    EXPECT_DOUBLE_EQ(share("decode", 4, 20, "int8").value(), 0.5);    // of 4 * 10
    EXPECT_DOUBLE_EQ(share("decode", 50, 50, "int8").value(), 0.5);   // of 100 by arithmetic, not 500
    EXPECT_DOUBLE_EQ(share("prefill", 1, 25, "int8").value(), 0.25);  // of 100
    EXPECT_DOUBLE_EQ(share("prefill", 1, 10, "f32").value(), 0.25);   // of 40
    EXPECT_DOUBLE_EQ(share("prefill", 1, 10, "bf16").value(), 0.25);  // no bf16 peak here: f32
    EXPECT_DOUBLE_EQ(share("prefill", 1, 25, "int8+f32").value(), 0.25);
    EXPECT_FALSE(roofline_share_of({}, "decode", 1, 5, cost, Isa::kAvx2, "int8", 1).has_value());
    EXPECT_FALSE(roofline_share_of(roofline, "prefill", 1, 5, cost, Isa::kScalar, "int8", 1).has_value());
}

// Steps of 32 tokens and more meet the peak of the tiles, where bf16 is what they computed in; all else that of avx512.
TEST(RooflineShare, OfTiles) {
    Roofline roofline;
    roofline.bandwidth = {{1, "DRAM", 1, 10}};
    roofline.arithmetic = {{Isa::kAvx512, "int8_dot", 1, 100}, {Isa::kAmx, "bf16_tile", 1, 1000}};
    const auto share = [&](const char* test, std::int64_t batch, const char* compute, std::int64_t step_tokens) {
        const StepCost cost{.bytes = 1e6, .flops = 1e9, .step_tokens = step_tokens};
        return roofline_share_of(roofline, test, batch, 25, cost, Isa::kAmx, compute, 1).value();
    };
    EXPECT_DOUBLE_EQ(share("prefill", 1, "int8+bf16", 512), 0.025);
    EXPECT_DOUBLE_EQ(share("prefill", 1, "bf16", 32), 0.025);
    EXPECT_DOUBLE_EQ(share("prefill", 2, "int8+bf16", 16), 0.025);
    EXPECT_DOUBLE_EQ(share("prefill", 1, "int8+bf16", 31), 0.25);
    EXPECT_DOUBLE_EQ(share("prefill", 1, "int8", 512), 0.25);
    EXPECT_DOUBLE_EQ(share("decode", 16, "int8+bf16", 1), 0.25);
    EXPECT_DOUBLE_EQ(share("decode", 64, "int8+bf16", 1), 0.025);
    roofline.arithmetic.pop_back();  // measured before there were tiles: unknown
    const StepCost cost{.bytes = 1e6, .flops = 1e9, .step_tokens = 512};
    EXPECT_FALSE(roofline_share_of(roofline, "prefill", 1, 25, cost, Isa::kAmx, "int8+bf16", 1).has_value());
}

// A count that was not measured has no share, whatever the arithmetic says.
TEST(RooflineShare, IsAbsentWithoutAMeasuredBandwidth) {
    Roofline roofline;
    roofline.bandwidth = {{1, "DRAM", 1, 10}, {4, "DRAM", 1, 30}};
    roofline.arithmetic = {{Isa::kAvx2, "f32_fma", 1, 40}, {Isa::kAvx2, "f32_fma", 4, 160}};
    const StepCost cost{.bytes = 1e9, .flops = 1e9};
    for (const std::int64_t batch : {1, 16})
        EXPECT_FALSE(roofline_share_of(roofline, "decode", batch, 5, cost, Isa::kAvx2, "f32", 3).has_value()) << batch;
    EXPECT_TRUE(roofline_share_of(roofline, "decode", 16, 5, cost, Isa::kAvx2, "f32", 4).has_value());
}

TEST(StepCost, ThePromptPaysTheHeadOnce) {
    const Result<LoadedModel> loaded =
        load_model({.model = "synthetic:tiny-llama", .threads = 1, .context_tokens = 32});
    ASSERT_TRUE(loaded.has_value()) << loaded.error().text;
    const Model& model = loaded->runner->model();
    const double head = 2.0 * model.config().vocab_size * model.config().hidden_size;
    const double all = decode_cost(model).flops;
    EXPECT_GT(all, head);
    EXPECT_DOUBLE_EQ(prefill_cost(model, 1).flops, all);
    EXPECT_NEAR(10 * prefill_cost(model, 10).flops, 10 * all - 9 * head, 1e-9 * all);
    EXPECT_EQ(decode_cost(model).bytes, static_cast<double>(model.decode_bytes()));
}

TEST(MemoryLimit, IsTheDataATenthMoreAnd64MB) {
    EXPECT_EQ(memory_limit_bytes({.weight_bytes = 600'000'000, .weight_file_bytes = 1, .kv_bytes = 400'000'000}),
              1'164'000'000);
}

}  // namespace
}  // namespace frontier

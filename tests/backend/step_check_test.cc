// Each rule of check_step is broken once in an otherwise valid step.
#include "backend/step_check.h"

#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/null_backend.h"

namespace frontier {
namespace {

using testing::HasSubstr;

// One layer: hidden 8, two heads of 4, one KV head, ffn 12, vocabulary 10.
class StepCheckTest : public testing::Test {
protected:
    void SetUp() override {
        table_ = weight(10, 8);
        norm_ = vector(8);
        q_w_ = weight(8, 8);
        k_w_ = weight(4, 8);
        o_w_ = weight(8, 8);
        gate_w_ = weight(12, 8);
        down_w_ = weight(8, 12);
        head_norm_ = vector(4);
        hidden_ = buffer(8);
        normed_ = buffer(8);
        q_ = buffer(8);
        k_ = buffer(4);
        v_ = buffer(4);
        attended_ = buffer(8);
        ffn_ = buffer(12);
        limits_.max_rows = 4;
        limits_.max_logits_rows = 2;
        limits_.kv = {.layers = 2, .kv_heads = 1, .head_dim = 4, .pages = 3};
        limits_.rope_pairs = 2;
        step_.input = {.tokens = {1, 2, 3},
                       .positions = {31, 32, 0},
                       .sequences = {{0, 2, 31, first_pages_}, {2, 1, 0, second_pages_}},
                       .logits_rows = {1, 2}};
        step_.ops.emplace_back(EmbedOp{table_, hidden_});                                      // 0
        step_.ops.emplace_back(RmsNormOp{hidden_, norm_, 1e-5F, normed_});                     // 1
        step_.ops.emplace_back(QkvOp{normed_, q_w_, k_w_, k_w_, {}, {}, {}, q_, k_, v_});      // 2
        step_.ops.emplace_back(RopeKvWriteOp{0, q_, k_, v_, head_norm_, head_norm_, 1e-5F});   // 3
        step_.ops.emplace_back(AttentionOp{0, q_, attended_, 0.5F, 0});                        // 4
        step_.ops.emplace_back(ProjectResidualOp{attended_, o_w_, norm_, hidden_});            // 5
        step_.ops.emplace_back(GateUpOp{hidden_, gate_w_, gate_w_, Activation::kSilu, ffn_});  // 6
        step_.ops.emplace_back(ProjectResidualOp{ffn_, down_w_, {}, hidden_});                 // 7
        step_.ops.emplace_back(LogitsOp{hidden_, norm_, 1e-5F, table_, {}});                   // 8
    }

    WeightId weight(std::int64_t rows, std::int64_t cols) {
        limits_.weights.push_back({rows, cols, false});
        return WeightId{static_cast<std::int32_t>(limits_.weights.size()) - 1};
    }
    WeightId vector(std::int64_t cols) {
        limits_.weights.push_back({1, cols, true});
        return WeightId{static_cast<std::int32_t>(limits_.weights.size()) - 1};
    }
    BufferId buffer(std::int64_t cols) {
        limits_.buffer_cols.push_back(cols);
        return BufferId{static_cast<std::int32_t>(limits_.buffer_cols.size()) - 1};
    }
    template <typename T>
    T& op(std::size_t index) {
        return std::get<T>(step_.ops[index]);
    }
    std::string fault() const { return check_step(limits_, step_); }

    StepLimits limits_;
    Step step_;
    std::vector<PageId> first_pages_ = {2, 0};
    std::vector<PageId> second_pages_ = {1};
    WeightId table_, norm_, q_w_, k_w_, o_w_, gate_w_, down_w_, head_norm_;
    BufferId hidden_, normed_, q_, k_, v_, attended_, ffn_;
};

TEST_F(StepCheckTest, AcceptsAValidStep) {
    EXPECT_EQ(fault(), "");
}

TEST_F(StepCheckTest, Input) {
    const auto expect = [&](const std::function<void(StepInput&)>& change, const std::string& text) {
        const StepInput before = step_.input;
        change(step_.input);
        EXPECT_THAT(fault(), HasSubstr(text));
        step_.input = before;
    };
    expect([](StepInput& in) { in.tokens.assign(5, 1); }, "5 tokens, expected 1..4");
    expect([](StepInput& in) { in.tokens.clear(); }, "0 tokens");
    expect([](StepInput& in) { in.positions.pop_back(); }, "positions do not match");
    expect([](StepInput& in) { in.positions[1] = 33; }, "row 1 has position 33, expected 32");
    expect([](StepInput& in) { in.logits_rows = {0, 1, 2}; }, "3 logits rows, expected at most 2");
    expect([](StepInput& in) { in.logits_rows = {2, 1}; }, "logits row 1");
    expect([](StepInput& in) { in.logits_rows = {3}; }, "logits row 3");
    expect([](StepInput& in) { in.sequences.pop_back(); }, "cover 2 of 3 rows");
    expect([](StepInput& in) { in.sequences[1].first_row = 1; }, "does not follow row 2");
    expect([&](StepInput& in) { in.sequences[0].block_table = second_pages_; }, "block table of 1 pages, expected 2");
    expect([](StepInput& in) { in.tokens[2] = 10; }, "op 0 (EmbedOp): token 10 is outside the vocabulary of 10");
    expect([](StepInput& in) { in.tokens[2] = -1; }, "token -1");
    first_pages_[1] = 3;
    EXPECT_THAT(fault(), HasSubstr("page 3 is outside the cache of 3"));
}

TEST_F(StepCheckTest, Shapes) {
    op<QkvOp>(2).k = q_w_;
    EXPECT_THAT(fault(), HasSubstr("op 2 (QkvOp): k is [8, 8], expected [4, 8]"));
    op<QkvOp>(2).k = k_w_;
    op<QkvOp>(2).q_bias = head_norm_;
    EXPECT_THAT(fault(), HasSubstr("q_bias has 4 elements, expected 8"));
    op<QkvOp>(2).q_bias = table_;
    EXPECT_THAT(fault(), HasSubstr("q_bias is a matrix"));
    op<QkvOp>(2).q_bias = {};
    op<QkvOp>(2).v_out = k_;
    EXPECT_THAT(fault(), HasSubstr("same buffer"));
    op<QkvOp>(2).v_out = v_;
    op<RmsNormOp>(1).gain = head_norm_;
    EXPECT_THAT(fault(), HasSubstr("op 1 (RmsNormOp): gain has 4 elements, expected 8"));
    op<RmsNormOp>(1).gain = WeightId{99};
    EXPECT_THAT(fault(), HasSubstr("gain is not a weight"));
    op<RmsNormOp>(1).gain = norm_;
    op<GateUpOp>(6).up = q_w_;
    EXPECT_THAT(fault(), HasSubstr("op 6 (GateUpOp): up is [8, 8], expected [12, 8]"));
    op<GateUpOp>(6).up = gate_w_;
    op<ProjectResidualOp>(7).weight = o_w_;
    EXPECT_THAT(fault(), HasSubstr("op 7 (ProjectResidualOp): weight is [8, 8], expected [8, 12]"));
    op<ProjectResidualOp>(7).weight = down_w_;
    op<LogitsOp>(8).weight = down_w_;
    EXPECT_THAT(fault(), HasSubstr("op 8 (LogitsOp): weight is [8, 12]"));
    op<LogitsOp>(8).weight = table_;
    op<AttentionOp>(4).out = k_;
    EXPECT_THAT(fault(), HasSubstr("out has 4 columns, expected 8"));
    op<AttentionOp>(4).out = attended_;
    EXPECT_EQ(fault(), "");
    limits_.rope_pairs = 3;
    EXPECT_THAT(fault(), HasSubstr("3 rope pairs in heads of 4"));
}

TEST_F(StepCheckTest, Order) {
    const std::vector<Op> ops = step_.ops;
    const auto expect_without = [&](std::size_t index, const std::string& text) {
        step_.ops = ops;
        step_.ops.erase(step_.ops.begin() + static_cast<std::ptrdiff_t>(index));
        EXPECT_THAT(fault(), HasSubstr(text)) << index;
    };
    expect_without(0, "in is read before it is written");
    expect_without(2, "read before it is written");
    expect_without(3, "keys of layer 0 are not stored yet");
    expect_without(4, "in is read before it is written");
    step_.ops = ops;
    step_.ops.insert(step_.ops.begin() + 4, ops[3]);
    EXPECT_THAT(fault(), HasSubstr("rotated twice"));
    step_.ops = ops;
    std::get<AttentionOp>(step_.ops[4]).layer = 1;
    EXPECT_THAT(fault(), HasSubstr("keys of layer 1 are not stored"));
    step_.ops = ops;
    std::get<RopeKvWriteOp>(step_.ops[3]).layer = 2;
    EXPECT_THAT(fault(), HasSubstr("layer 2 is outside the cache of 2 layers"));
    step_.ops = ops;
    step_.ops.insert(step_.ops.begin() + 8, {ops[2], ops[3], ops[4]});  // layer 0 again
    EXPECT_THAT(fault(), HasSubstr("layer 0 comes after layer 0"));
    step_.ops = ops;
    step_.ops.push_back(ops[1]);
    EXPECT_THAT(fault(), HasSubstr("comes after the logits"));
}

TEST_F(StepCheckTest, ReleasedPagesMustLieBehindTheWindow) {
    first_pages_[0] = -1;
    EXPECT_THAT(fault(), HasSubstr("page 0 of a sequence is visible but released"));
    op<AttentionOp>(4).window_tokens = 1;  // row 0 is at position 31, in page 0
    EXPECT_THAT(fault(), HasSubstr("page 0 of a sequence is visible but released"));
    step_.input.sequences[0].first_position = 32;
    step_.input.positions = {32, 33, 0};
    EXPECT_EQ(fault(), "");
}

TEST(NullBackendTest, RecordsAndRefuses) {
    NullBackend backend;
    const std::vector<std::byte> bytes(10 * 8 * 4);
    const WeightId table = backend.upload_matrix({{"t", DType::kF32, {10, 8}}, bytes}).value();
    const WeightId norm = backend.upload_vector({{"n", DType::kF32, {8}}, std::span(bytes).first(32)}).value();
    EXPECT_FALSE(backend.upload_vector({{"bad", DType::kF32, {9}}, std::span(bytes).first(32)}).has_value());
    const BufferId hidden = backend.create_buffer("hidden", 8);
    ASSERT_TRUE(backend.reserve(4, 4).has_value());
    ASSERT_TRUE(backend.create_kv_cache({.layers = 1, .kv_heads = 1, .head_dim = 4, .pages = 2}).has_value());
    const std::vector<PageId> pages = {1};
    Step step;
    step.input = {.tokens = {3, 9}, .positions = {0, 1}, .sequences = {{0, 2, 0, pages}}, .logits_rows = {0, 1}};
    step.ops = {EmbedOp{table, hidden}, LogitsOp{hidden, norm, 1e-5F, table, {}}};
    ASSERT_TRUE(backend.submit(step).has_value());
    const std::span<float> logits = backend.read_logits().value();
    ASSERT_EQ(logits.size(), 20U);
    EXPECT_EQ(std::max_element(logits.begin(), logits.begin() + 10) - logits.begin(), 4);
    EXPECT_EQ(std::max_element(logits.begin() + 10, logits.end()) - logits.begin(), 10);  // wraps to token 0
    step.ops.pop_back();
    step.ops.emplace_back(RmsNormOp{hidden, table, 1e-5F, hidden});
    const Status refused = backend.submit(step);
    ASSERT_FALSE(refused.has_value());
    EXPECT_THAT(refused.error().text, HasSubstr("gain is a matrix"));
    EXPECT_EQ(backend.steps().size(), 2U);
    EXPECT_EQ(backend.uploads().size(), 2U);
    backend.copy_page(0, 1);
    EXPECT_EQ(backend.page_copies().front().to, 1);
}

}  // namespace
}  // namespace frontier

// Whole steps through the backend against a decoder written in double, and what must not change the bits.
#include <cmath>
#include <cstring>

#include <gtest/gtest.h>

#include "small_decoder.h"

namespace frontier {
namespace {

struct Setting {
    std::string name;
    DType type = DType::kF32;
    ComputeType compute = ComputeType::kAuto;
    KvType kv = KvType::kF32;
    // Largest difference of a logit from the double decoder, relative to the largest logit. One rounding of the
    // activations (f32 2^-24, bf16 2^-9, f16 and the f16 cache 2^-12, int8 about 1/254 of a block's maximum) enters in
    // each of the five operations of the three layers; measured over these decoders such a decoder amplifies it by 12
    // to 30, and the limit is about twice the largest measured value (2e-6, 2.2e-2, 3.4e-3, 1.1e-3, 4.8e-2).
    double tolerance = 0;
};

std::vector<Setting> settings() {
    return {{"f32", DType::kF32, ComputeType::kAuto, KvType::kF32, 5e-6},
            {"f32_f16_cache", DType::kF32, ComputeType::kAuto, KvType::kF16, 2.5e-3},
            {"f16", DType::kF16, ComputeType::kAuto, KvType::kF32, 5e-6},
            {"bf16", DType::kBF16, ComputeType::kAuto, KvType::kF32, 5e-6},
            {"f32_as_f16", DType::kF32, ComputeType::kF16, KvType::kF32, 7e-3},
            {"f32_as_bf16", DType::kF32, ComputeType::kBF16, KvType::kF32, 4.5e-2},
            {"q8_0_reference", DType::kQ8_0, ComputeType::kF32, KvType::kF32, 5e-6},
            {"q4_0_reference", DType::kQ4_0, ComputeType::kF32, KvType::kF32, 5e-6},
            {"q8_0_int8", DType::kQ8_0, ComputeType::kAuto, KvType::kF32, 1e-1},
            {"q4_0_int8", DType::kQ4_0, ComputeType::kAuto, KvType::kF32, 1e-1},
            {"q5_1", DType::kQ5_1, ComputeType::kAuto, KvType::kF32, 5e-6}};
}

class BackendTest : public testing::TestWithParam<Isa> {
protected:
    Isa isa_ = GetParam();
};

// A batch that mixes a prompt, a continued prompt and single tokens, fed over several steps.
std::vector<std::vector<TokenId>> sample_sequences(std::int64_t vocab) {
    RandomStream random(99);
    std::vector<std::vector<TokenId>> sequences;
    for (const std::size_t length : {1U, 33U, 70U, 32U}) {
        std::vector<TokenId> tokens;
        for (std::size_t i = 0; i < length; ++i) {
            tokens.push_back(static_cast<TokenId>(random.next() % static_cast<std::uint64_t>(vocab)));
        }
        sequences.push_back(tokens);
    }
    return sequences;
}

double relative_difference(const std::vector<float>& actual, const std::vector<double>& expected) {
    double largest = 0;
    double difference = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
        largest = std::max(largest, std::abs(expected[i]));
        difference = std::max(difference, std::abs(actual[i] - expected[i]));
        if (std::isnan(actual[i])) return INFINITY;
    }
    return difference / largest;
}

void expect_matches_double_decoder(const DecoderShape& shape, const Setting& setting, Isa isa) {
    SCOPED_TRACE(setting.name + " " + shape.name);
    const DecoderWeights weights = random_decoder(shape, setting.type);
    DecoderRun run(weights, {isa, setting.compute, 2}, setting.kv);
    const std::vector<std::vector<TokenId>> sequences = sample_sequences(shape.vocab);
    std::vector<std::vector<std::vector<double>>> expected;
    for (const std::vector<TokenId>& tokens : sequences) expected.push_back(reference_logits(weights, tokens));
    // Step 1: all of 0, part of 1, 2 and 3; step 2: the rest of 1, more of 2, 3; step 3: what is left.
    const std::vector<std::vector<int>> cuts = {{1, 20, 31, 31}, {0, 13, 2, 1}, {0, 0, 37, 0}};
    std::vector<int> done(sequences.size(), 0);
    for (const std::vector<int>& cut : cuts) {
        std::vector<Chunk> chunks;
        for (int s = 0; s < static_cast<int>(sequences.size()); ++s) {
            if (cut[s] == 0) continue;
            const auto begin = sequences[s].begin() + done[s];
            chunks.push_back({s, done[s], {begin, begin + cut[s]}});
            done[s] += cut[s];
        }
        const std::vector<float> logits = run.forward(chunks);
        ASSERT_EQ(logits.size(), chunks.size() * static_cast<std::size_t>(shape.vocab));
        for (std::size_t row = 0; row < chunks.size(); ++row) {
            const auto first = logits.begin() + static_cast<std::ptrdiff_t>(row) * shape.vocab;
            const int sequence = chunks[row].sequence;
            EXPECT_LT(relative_difference({first, first + shape.vocab}, expected[sequence][done[sequence] - 1]),
                      setting.tolerance)
                << "sequence " << sequence << " after " << done[sequence];
        }
    }
}

TEST_P(BackendTest, MixedBatchesMatchTheDoubleDecoder) {
    for (const Setting& setting : settings()) {
        for (const DecoderShape& shape : {llama_shape(), qwen2_shape(), qwen3_shape(), window_shape()}) {
            expect_matches_double_decoder(shape, setting, isa_);
        }
    }
}

TEST_P(BackendTest, ThreadsDoNotChangeBits) {
    for (const DType type : {DType::kF32, DType::kQ8_0, DType::kBF16}) {
        const DecoderWeights weights = random_decoder(qwen3_shape(), type);
        const auto sequences = sample_sequences(weights.shape.vocab);
        std::vector<float> first;
        for (const int threads : {1, 2, 3, 5}) {
            DecoderRun run(weights, {isa_, ComputeType::kAuto, threads}, KvType::kF16);
            std::vector<float> logits = run.forward({{0, 0, sequences[1]}, {1, 0, sequences[2]}});
            const std::vector<float> next = run.forward({{0, 33, {5}}, {1, 70, {6}}});
            logits.insert(logits.end(), next.begin(), next.end());
            if (threads == 1) first = logits;
            ASSERT_EQ(std::memcmp(first.data(), logits.data(), first.size() * sizeof(float)), 0) << threads;
        }
    }
}

// The same tokens as one batch, one by one, and beside others: equal bits where the products are integers or f64.
TEST_P(BackendTest, BatchingDoesNotChangeIntegerBits) {
    const DecoderWeights weights = random_decoder(qwen2_shape(), DType::kQ8_0);
    const std::vector<TokenId> tokens = sample_sequences(weights.shape.vocab)[2];
    const CpuBackendOptions options{isa_, ComputeType::kAuto, 2};
    DecoderRun whole(weights, options, KvType::kF16);
    const std::vector<float> together = whole.forward({{0, 0, tokens}});
    DecoderRun single(weights, options, KvType::kF16);
    std::vector<float> alone;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        alone = single.forward({{0, static_cast<int>(i), {tokens[i]}}});
    }
    EXPECT_EQ(std::memcmp(together.data(), alone.data(), alone.size() * sizeof(float)), 0);
    DecoderRun beside(weights, options, KvType::kF16);
    const std::vector<float> both = beside.forward({{1, 0, {1, 2, 3}}, {0, 0, tokens}});
    EXPECT_EQ(std::memcmp(together.data(), both.data() + weights.shape.vocab, together.size() * sizeof(float)), 0);
}

TEST_P(BackendTest, BatchingStaysWithinRoundingForFloats) {
    for (const DType type : {DType::kF32, DType::kBF16}) {
        const DecoderWeights weights = random_decoder(llama_shape(), type);
        const std::vector<TokenId> tokens = sample_sequences(weights.shape.vocab)[1];
        DecoderRun whole(weights, {isa_, ComputeType::kAuto, 2}, KvType::kF32);
        const std::vector<float> together = whole.forward({{0, 0, tokens}});
        DecoderRun single(weights, {isa_, ComputeType::kAuto, 2}, KvType::kF32);
        std::vector<float> alone;
        for (std::size_t i = 0; i < tokens.size(); ++i) {
            alone = single.forward({{0, static_cast<int>(i), {tokens[i]}}});
        }
        EXPECT_LT(relative_difference(alone, {together.begin(), together.end()}), 2e-5);
    }
}

// Copy on write: a fork's partial page is copied, both continue on their own.
TEST_P(BackendTest, CopiedPagesContinueIndependently) {
    const DecoderWeights weights = random_decoder(llama_shape(), DType::kF32);
    const std::vector<TokenId> prompt =
        sample_sequences(weights.shape.vocab)[1];  // 33 tokens: one full page, one begun
    DecoderRun run(weights, {isa_, ComputeType::kAuto, 2}, KvType::kF16);
    run.forward({{0, 0, prompt}});
    run.fork(0, 1);
    const std::vector<float> a = run.forward({{0, 33, {7}}});
    const std::vector<float> b = run.forward({{1, 33, {9}}});
    DecoderRun fresh(weights, {isa_, ComputeType::kAuto, 2}, KvType::kF16);
    fresh.forward({{0, 0, prompt}, {1, 0, prompt}});
    const std::vector<float> both = fresh.forward({{0, 33, {7}}, {1, 33, {9}}});
    std::vector<double> expected(both.begin(), both.end());
    std::vector<float> actual = a;
    actual.insert(actual.end(), b.begin(), b.end());
    EXPECT_LT(relative_difference(actual, expected), 2e-5);
    EXPECT_GT(relative_difference(b, {both.begin(), both.begin() + weights.shape.vocab}), 1e-3);
}

TEST_P(BackendTest, LogitsOfAskedRowsInOrder) {
    const DecoderWeights weights = random_decoder(llama_shape(), DType::kQ8_0);
    const std::vector<TokenId> tokens = sample_sequences(weights.shape.vocab)[1];
    const std::int64_t vocab = weights.shape.vocab;
    DecoderRun run(weights, {isa_, ComputeType::kAuto, 2}, KvType::kF16);
    const std::vector<float> some = run.forward({{0, 0, tokens}}, {{0, 5, 31, 32}});
    for (const std::size_t i : {0U, 1U, 2U, 3U}) {
        const std::vector<std::int32_t> rows = {0, 5, 31, 32};
        const std::vector<float> one = run.forward({{0, 0, tokens}}, {{rows[i]}});
        EXPECT_EQ(std::memcmp(one.data(), &some[i * vocab], static_cast<std::size_t>(vocab) * sizeof(float)), 0);
    }
    EXPECT_TRUE(run.forward({{0, 0, tokens}}, std::vector<std::int32_t>{}).empty());
}

TEST_P(BackendTest, ReportsWhatRan) {
    const auto name = [&](DType type, ComputeType compute) {
        const DecoderWeights weights = random_decoder(llama_shape(), type);
        DecoderRun run(weights, {isa_, compute, 1}, KvType::kF16);
        run.forward({{0, 0, {1}}});
        return run.backend().compute_type_name();
    };
    EXPECT_EQ(name(DType::kQ8_0, ComputeType::kAuto), "int8");
    EXPECT_EQ(name(DType::kQ8_0, ComputeType::kF32), "f32");
    EXPECT_EQ(name(DType::kBF16, ComputeType::kAuto), "f32");
    EXPECT_EQ(name(DType::kF32, ComputeType::kBF16), "bf16");
    EXPECT_EQ(name(DType::kF32, ComputeType::kF16), "f16");
}

TEST_P(BackendTest, CountsMemory) {
    const DecoderWeights weights = random_decoder(llama_shape(), DType::kF32);
    DecoderRun run(weights, {isa_, ComputeType::kAuto, 1}, KvType::kF16);
    const BackendMemory memory = run.backend().memory();
    std::int64_t file_bytes = 0;
    for (const TestTensor* tensor : weights.all()) file_bytes += static_cast<std::int64_t>(tensor->bytes.size());
    EXPECT_EQ(memory.weight_file_bytes, file_bytes);
    EXPECT_GE(memory.weight_bytes, file_bytes);  // whole panels
    EXPECT_EQ(memory.kv_bytes, DecoderRun::kPages * kv_page_bytes(run.kv_config()));
    EXPECT_GT(memory.scratch_bytes, 0);
}

INSTANTIATE_TEST_SUITE_P(Isa, BackendTest, testing::ValuesIn(supported_isas()),
                         [](const auto& parameter) { return std::string(isa_name(parameter.param)); });

TEST(BackendKvCache, RefusesWhatDoesNotFitWithBothNumbers) {
    const auto backend = make_cpu_backend({});
    const Status status = backend->create_kv_cache(
        {.layers = 1000, .kv_heads = 1000, .head_dim = 512, .type = KvType::kF32, .pages = 2'000'000'000});
    ASSERT_FALSE(status.has_value());
    EXPECT_EQ(status.error().code, ErrorCode::kDoesNotFit);
    EXPECT_NE(status.error().text.find("needs"), std::string::npos);
    EXPECT_NE(status.error().text.find("available"), std::string::npos);
}

TEST(BackendKvCache, RefusesHeadsItCannotAttend) {
    const auto backend = make_cpu_backend({});
    for (const std::int32_t head_dim : {0, 3, 514, -2}) {
        const Status status = backend->create_kv_cache({.layers = 1, .kv_heads = 1, .head_dim = head_dim, .pages = 1});
        ASSERT_FALSE(status.has_value()) << head_dim;
        EXPECT_EQ(status.error().code, ErrorCode::kBadInput);
    }
}

TEST(BackendDeathTest, ShapesAreChecked) {
    testing::GTEST_FLAG(death_test_style) = "threadsafe";
    const auto backend = make_cpu_backend({});
    const TestTensor table = random_tensor("t", DType::kF32, {10, 32}, 1);
    const WeightId weight = backend->upload_matrix(table.view()).value();
    const BufferId buffer = backend->create_buffer("hidden", 16);
    ASSERT_TRUE(backend->reserve(4, 4).has_value());
    ASSERT_TRUE(backend->create_kv_cache({.layers = 1, .kv_heads = 1, .head_dim = 16, .pages = 1}).has_value());
    const std::vector<PageId> pages = {0};
    Step step;
    step.input = {.tokens = {1}, .positions = {0}, .sequences = {{0, 1, 0, pages}}, .logits_rows = {}};
    step.ops.emplace_back(EmbedOp{weight, buffer});
    EXPECT_DEATH((void)backend->submit(step), "table is .10, 32., expected .-1, 16.");
}

}  // namespace
}  // namespace frontier

#include "measure/engine_bench.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace frontier {
namespace {

using ::testing::HasSubstr;

Result<LoadedModel> load_for(const EngineBenchOptions& options) {
    FR_ASSIGN(const EngineBenchNeeds needs, engine_bench_needs(options));
    return load_model({.model = "synthetic:tiny-llama:Q4_0",
                       .threads = 2,
                       .context_tokens = needs.context_tokens,
                       .sequences = needs.sequences,
                       .max_batch_tokens = needs.max_batch_tokens,
                       .max_logits_rows = needs.max_logits_rows});
}

EngineBenchOptions small_grid() {
    return {.prompt_tokens = 9, .gen_tokens = 2, .batches = {1, 3}, .depths_tokens = {0, 33}, .repeat = 2, .warmup = 1};
}

Result<std::vector<EngineBenchRow>> run(LoadedModel& loaded, const EngineBenchOptions& options,
                                        const std::optional<Roofline>& roofline = {}) {
    std::vector<EngineBenchRow> rows;
    FR_TRY(run_engine_bench(loaded, options, roofline, [&](const EngineBenchRow& row) { rows.push_back(row); }));
    return rows;
}

TEST(EngineBench, OneRowPerTestBatchAndDepth) {
    const EngineBenchOptions options = small_grid();
    Result<LoadedModel> loaded = load_for(options);
    ASSERT_TRUE(loaded.has_value()) << loaded.error().text;
    const auto rows = run(*loaded, options);
    ASSERT_TRUE(rows.has_value()) << rows.error().text;
    ASSERT_EQ(rows->size(), 8U);
    std::size_t i = 0;
    for (const std::int64_t depth : {0, 33}) {
        for (const std::int64_t batch : {1, 3}) {
            for (const char* test : {"prefill", "decode"}) {
                const EngineBenchRow& row = (*rows)[i++];
                EXPECT_EQ(row.test, test);
                EXPECT_EQ(row.batch, batch);
                EXPECT_EQ(row.depth_tokens, depth);
                EXPECT_EQ(row.samples.size(), 2U);
                EXPECT_GT(row.tokens_per_s, 0);
                EXPECT_GT(row.gflops, 0);
                EXPECT_EQ(row.gb_per_s.has_value(), row.test == "decode");
                EXPECT_FALSE(row.roofline_share.has_value());
                EXPECT_EQ(row.logits_hash.size(), 16U);
                EXPECT_EQ(row.isa, isa_name(best_isa()));
                EXPECT_EQ(row.threads, 2);
            }
        }
    }
    // Every page is back.
    EXPECT_EQ(loaded->runner->pages().free_pages(), loaded->runner->pages().total_pages());
    // The same work again gives the same logits; another seed gives others.
    const auto again = run(*loaded, options);
    ASSERT_TRUE(again.has_value());
    for (std::size_t r = 0; r < rows->size(); ++r) EXPECT_EQ((*rows)[r].logits_hash, (*again)[r].logits_hash);
    EngineBenchOptions reseeded = options;
    reseeded.seed = 2;
    EXPECT_NE(run(*loaded, reseeded).value()[0].logits_hash, (*rows)[0].logits_hash);
}

TEST(EngineBench, PromptOrGenerationAloneAndChunkedPrompts) {
    EngineBenchOptions options = {.prompt_tokens = 515, .gen_tokens = 0, .batches = {1}, .repeat = 1, .warmup = 0};
    Result<LoadedModel> loaded = load_for(options);
    ASSERT_TRUE(loaded.has_value()) << loaded.error().text;
    auto rows = run(*loaded, options);
    ASSERT_TRUE(rows.has_value()) << rows.error().text;
    ASSERT_EQ(rows->size(), 1U);
    EXPECT_EQ(rows->front().test, "prefill");
    options = {.prompt_tokens = 0, .gen_tokens = 5, .batches = {1}, .repeat = 1, .warmup = 0};
    rows = run(*loaded, options);
    ASSERT_TRUE(rows.has_value()) << rows.error().text;
    ASSERT_EQ(rows->size(), 1U);
    EXPECT_EQ(rows->front().test, "decode");
}

TEST(EngineBench, JsonHoldsTheContract) {
    const EngineBenchOptions options = {.prompt_tokens = 8, .gen_tokens = 2, .batches = {1}, .repeat = 3, .warmup = 0};
    Result<LoadedModel> loaded = load_for(options);
    ASSERT_TRUE(loaded.has_value()) << loaded.error().text;
    const auto rows = run(*loaded, options);
    ASSERT_TRUE(rows.has_value()) << rows.error().text;
    for (const EngineBenchRow& row : *rows) {
        const Json json = to_json(row);
        for (const char* field : {"test",
                                  "batch",
                                  "depth",
                                  "prompt_tokens",
                                  "gen_tokens",
                                  "tokens_per_s",
                                  "samples",
                                  "gb_per_s",
                                  "gflops",
                                  "roofline_share",
                                  "model",
                                  "weight_type",
                                  "compute_type",
                                  "kv_type",
                                  "isa",
                                  "threads",
                                  "peak_memory_bytes",
                                  "memory_limit_bytes",
                                  "logits_hash",
                                  "version"}) {
            EXPECT_TRUE(json.contains(field)) << field;
        }
        EXPECT_EQ(json["samples"].size(), 3U);
        EXPECT_TRUE(json["roofline_share"].is_null());
        EXPECT_THAT(json["weight_type"].get<std::string>(), HasSubstr("Q4_0"));
    }
}

TEST(EngineBench, InterruptAndTooSmallCacheAreErrors) {
    EngineBenchOptions options = {.prompt_tokens = 8, .gen_tokens = 2, .batches = {1}, .repeat = 1, .warmup = 0};
    Result<LoadedModel> loaded = load_for(options);
    ASSERT_TRUE(loaded.has_value()) << loaded.error().text;
    const std::atomic<bool> interrupted{true};
    options.interrupted = &interrupted;
    EXPECT_EQ(run(*loaded, options).error().code, ErrorCode::kInterrupted);
    EXPECT_EQ(loaded->runner->pages().free_pages(), loaded->runner->pages().total_pages());
    options.interrupted = nullptr;
    options.prompt_tokens = 100'000;
    EXPECT_EQ(run(*loaded, options).error().code, ErrorCode::kDoesNotFit);
}

TEST(EngineBenchNeeds, ChecksEveryFlag) {
    const auto refuse = [](const auto& change, ErrorCode code, const char* flag) {
        EngineBenchOptions options;
        change(options);
        const auto needs = engine_bench_needs(options);
        ASSERT_FALSE(needs.has_value()) << flag;
        EXPECT_EQ(needs.error().code, code);
        EXPECT_THAT(needs.error().text, HasSubstr(flag));
    };
    constexpr auto kUsage = ErrorCode::kUsage;
    refuse([](auto& o) { o.prompt_tokens = -1; }, kUsage, "--prompt-tokens");
    refuse([](auto& o) { o.gen_tokens = INT64_MAX; }, kUsage, "--gen-tokens");
    refuse([](auto& o) { o.prompt_tokens = o.gen_tokens = 0; }, kUsage, "nothing to measure");
    refuse([](auto& o) { o.batches = {}; }, kUsage, "--batch");
    refuse([](auto& o) { o.batches = {1, 0}; }, kUsage, "--batch");
    refuse([](auto& o) { o.depths_tokens = {-1}; }, kUsage, "--depth");
    refuse([](auto& o) { o.depths_tokens = {}; }, kUsage, "--depth");
    refuse([](auto& o) { o.context_tokens = 639; }, ErrorCode::kDoesNotFit, "640, got 639");
    refuse([](auto& o) { o.context_tokens = INT32_MAX; }, ErrorCode::kDoesNotFit, "KV cache");
    refuse([](auto& o) { o.repeat = 0; }, kUsage, "--repeat");
    refuse([](auto& o) { o.warmup = -1; }, kUsage, "--warmup");
    refuse([](auto& o) { o.batches = {4096}, o.depths_tokens = {1 << 24}; }, ErrorCode::kDoesNotFit, "KV cache");
    const auto needs =
        engine_bench_needs({.prompt_tokens = 10, .gen_tokens = 5, .batches = {1, 700}, .depths_tokens = {0, 7}});
    ASSERT_TRUE(needs.has_value());
    EXPECT_EQ(needs->context_tokens, 22);
    EXPECT_EQ(engine_bench_needs({.context_tokens = 641})->context_tokens, 641);
    EXPECT_EQ(needs->sequences, 700);
    EXPECT_GE(needs->max_batch_tokens, 700);
    EXPECT_GE(needs->max_logits_rows, 700);
}

TEST(EngineBenchWarning, OnlyBeyondTheTrainedContext) {
    ModelConfig config;
    config.context_tokens = 640;
    EXPECT_EQ(engine_bench_warning(config, {}), "");  // 512 + 128
    EXPECT_THAT(engine_bench_warning(config, {.depths_tokens = {0, 1}}), HasSubstr("641"));
}

}  // namespace
}  // namespace frontier

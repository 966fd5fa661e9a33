// `bench engine`: prefill and decode speed in this process, over a grid of batch sizes and depths.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "engine/loader.h"
#include "measure/roofline.h"

namespace frontier {

// For each depth and batch: `depth` tokens enter the cache of every sequence untimed, then the prompt is timed, then
// gen_tokens steps of one token per sequence, at positions depth + prompt and on. Ids are pseudo-random.
struct EngineBenchOptions {
    std::int64_t prompt_tokens = 512;                // 0: no prefill row
    std::int64_t gen_tokens = 128;                   // 0: no decode row
    std::vector<std::int64_t> batches = {1, 4, 16};  // sequences at once
    std::vector<std::int64_t> depths_tokens = {0};
    std::int64_t context_tokens = 0;  // of the cache, per sequence; 0: as many as the test needs
    std::int64_t repeat = 5;
    std::int64_t warmup = 1;  // untimed repeats before the first timed one of each (batch, depth)
    std::uint64_t seed = 1;
    const std::atomic<bool>* interrupted = nullptr;
    std::function<void(std::string_view)> progress;  // one line per (batch, depth) and repeat
};

// What the model has to be loaded with. Errors: kUsage for values out of range (naming the flag), kDoesNotFit for a
// context smaller than the test needs, or a cache beyond any machine.
struct EngineBenchNeeds {
    std::int64_t context_tokens = 0;
    std::int32_t sequences = 1;
    std::int32_t max_batch_tokens = 512;
    std::int32_t max_logits_rows = 64;
};
Result<EngineBenchNeeds> engine_bench_needs(const EngineBenchOptions& options);

// "" or one line: the benchmark goes beyond the context that the model was trained for.
std::string engine_bench_warning(const ModelConfig& config, const EngineBenchOptions& options);

struct EngineBenchRow {
    std::string test;  // "prefill" or "decode"
    std::int64_t batch = 1;
    std::int64_t depth_tokens = 0;
    std::int64_t prompt_tokens = 0;
    std::int64_t gen_tokens = 0;
    std::vector<double> samples;  // tokens/s over the whole batch, one per repeat
    double tokens_per_s = 0;      // their median
    // Decode: file bytes of the weights that one step reads, per second (a step reads them once for all sequences).
    std::optional<double> gb_per_s;
    double gflops = 0;  // of the weight matrices; the head counts only where logits were computed
    // See roofline_share_of in measure/rates.h; absent without a roofline.
    std::optional<double> roofline_share;
    std::string model, weight_type, compute_type, kv_type, isa, version;
    int threads = 1;
    std::int64_t peak_memory_bytes = 0;   // of the process, up to this row
    std::int64_t memory_limit_bytes = 0;  // what it may take, see memory_limit_bytes()
    std::string logits_hash;              // FNV-1a of the last logits, 16 hex digits; equal runs have equal hashes
};
Json to_json(const EngineBenchRow& row);

// Runs the grid; `on_row` gets each row when it is complete. Errors: kDoesNotFit when the runner's cache or logits are
// smaller than engine_bench_needs, kBadInput for non-finite logits, kInterrupted.
Status run_engine_bench(LoadedModel& loaded, const EngineBenchOptions& options, const std::optional<Roofline>& roofline,
                        const std::function<void(const EngineBenchRow&)>& on_row);

}  // namespace frontier

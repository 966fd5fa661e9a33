#include "measure/engine_bench.h"

#include <algorithm>
#include <cmath>

#include "base/hash.h"
#include "base/rng.h"
#include "base/stats.h"
#include "measure/rates.h"
#include "platform/clock.h"
#include "platform/topology.h"

namespace frontier {
namespace {

// Bounds on single flags, so that sums and products stay far below 2^63; what really fits is checked on loading.
constexpr std::int64_t kMaxTokens = std::int64_t{1} << 24;
constexpr std::int64_t kMaxBatch = 4096;
constexpr std::int64_t kMaxRepeat = 100'000;
constexpr std::int64_t kMaxCacheTokens = std::int64_t{1} << 31;  // the runner's own limit
constexpr std::int32_t kBatchTokens = 512;                       // rows of one prefill chunk
constexpr std::int32_t kLogitsRows = 64;

Status check_range(const char* flag, std::int64_t value, std::int64_t low, std::int64_t high) {
    if (value >= low && value <= high) return {};
    return fail(ErrorCode::kUsage, "{}: expected {} to {}, got {}", flag, low, high, value);
}

std::int64_t largest(const std::vector<std::int64_t>& values) {
    return *std::max_element(values.begin(), values.end());
}

bool all_finite(std::span<const float> values) {
    return std::all_of(values.begin(), values.end(), [](float value) { return std::isfinite(value); });
}

// The sequences of one (batch, depth) and what is done to them.
class Batch {
public:
    Batch(Runner& runner, const EngineBenchOptions& options, std::int64_t size)
        : runner_(runner), options_(options), sequences_(static_cast<std::size_t>(size)) {}
    ~Batch() {
        for (Sequence& sequence : sequences_) runner_.release(sequence);
    }
    Batch(const Batch&) = delete;
    Batch& operator=(const Batch&) = delete;

    // Appends `tokens` to every sequence in chunks of at most max_batch_tokens rows. A chunk may end one sequence's
    // prompt and begin the next one's. Each sequence's last row gives logits, as a real prompt's does.
    Status prefill(std::int64_t tokens) {
        const std::int64_t chunk_rows = runner_.options().max_batch_tokens;
        std::vector<BatchEntry> entries;
        ids_.resize(static_cast<std::size_t>(tokens * std::ssize(sequences_)));
        for (std::size_t s = 0; s < sequences_.size(); ++s) {
            for (std::int64_t i = 0; i < tokens; ++i) {
                ids_[s * static_cast<std::size_t>(tokens) + static_cast<std::size_t>(i)] =
                    token_at(s, sequences_[s].length_tokens + i);
            }
        }
        std::int64_t rows = 0;
        for (std::size_t s = 0; s < sequences_.size(); ++s) {
            for (std::int64_t done = 0; done < tokens;) {
                const std::int64_t take = std::min(tokens - done, chunk_rows - rows);
                const auto first = s * static_cast<std::size_t>(tokens) + static_cast<std::size_t>(done);
                done += take;
                rows += take;
                entries.push_back({&sequences_[s],
                                   std::span<const TokenId>(ids_).subspan(first, static_cast<std::size_t>(take)),
                                   done == tokens ? LogitsWanted::kLast : LogitsWanted::kNone});
                if (rows == chunk_rows || std::ssize(entries) == runner_.options().max_logits_rows) {
                    FR_TRY(submit(entries));
                    entries.clear();
                    rows = 0;
                }
            }
        }
        return entries.empty() ? Status() : submit(entries);
    }

    // `steps` forward passes of one token per sequence.
    Status decode(std::int64_t steps) {
        ids_.resize(sequences_.size());
        std::vector<BatchEntry> entries(sequences_.size());
        for (std::int64_t step = 0; step < steps; ++step) {
            for (std::size_t s = 0; s < sequences_.size(); ++s) {
                ids_[s] = token_at(s, sequences_[s].length_tokens);
                entries[s] = {&sequences_[s], std::span<const TokenId>(ids_).subspan(s, 1), LogitsWanted::kLast};
            }
            FR_TRY(submit(entries));
        }
        return {};
    }

    void truncate(std::int64_t tokens) {
        for (Sequence& sequence : sequences_) runner_.truncate(sequence, tokens);
    }

    // Of the last pass that gave logits. They live in the runner until the next pass.
    Result<std::string> logits_hash() const {
        if (!all_finite(logits_)) return bad_input("non-finite logits: the model's weights give no usable numbers");
        return fmt::format("{:016x}", fnv1a64(logits_.data(), logits_.size_bytes()));
    }

private:
    TokenId token_at(std::size_t sequence, std::int64_t position) const {
        const auto vocab = static_cast<std::uint64_t>(runner_.model().config().vocab_size);
        const RandomStream stream(options_.seed, sequence);
        return static_cast<TokenId>(stream.at(static_cast<std::uint64_t>(position)) % vocab);
    }

    Status submit(std::span<const BatchEntry> entries) {
        if (options_.interrupted != nullptr && options_.interrupted->load()) {
            return fail(ErrorCode::kInterrupted, "interrupted");
        }
        FR_ASSIGN(logits_, runner_.forward(entries));
        return {};
    }

    Runner& runner_;
    const EngineBenchOptions& options_;
    std::vector<Sequence> sequences_;
    std::vector<TokenId> ids_;  // of the pass that is being recorded
    std::span<const float> logits_;
};

class Grid {
public:
    Grid(LoadedModel& loaded, const EngineBenchOptions& options, const std::optional<Roofline>& roofline,
         const std::function<void(const EngineBenchRow&)>& on_row)
        : loaded_(loaded), options_(options), roofline_(roofline), on_row_(on_row) {}

    Status point(std::int64_t batch_size, std::int64_t depth) {
        Batch batch(*loaded_.runner, options_, batch_size);
        if (depth > 0) FR_TRY(batch.prefill(depth));
        EngineBenchRow prefill = new_row("prefill", batch_size, depth);
        EngineBenchRow decode = new_row("decode", batch_size, depth);
        const auto tokens_per_s = [batch_size](std::int64_t tokens, std::int64_t ns) {
            return static_cast<double>(batch_size * tokens) / std::max(ns_to_s(ns), 1e-9);
        };
        for (std::int64_t i = -options_.warmup; i < options_.repeat; ++i) {
            if (options_.progress) {
                options_.progress(fmt::format("batch {}, depth {}: {} of {}", batch_size, depth,
                                              i < 0 ? "warm-up" : fmt::format("repeat {}", i + 1), options_.repeat));
            }
            batch.truncate(depth);
            if (options_.prompt_tokens > 0) {
                const std::int64_t start_ns = now_ns();
                FR_TRY(batch.prefill(options_.prompt_tokens));
                const std::int64_t spent_ns = now_ns() - start_ns;
                FR_ASSIGN(prefill.logits_hash, batch.logits_hash());
                if (i >= 0) prefill.samples.push_back(tokens_per_s(options_.prompt_tokens, spent_ns));
            }
            if (options_.gen_tokens > 0) {
                const std::int64_t start_ns = now_ns();
                FR_TRY(batch.decode(options_.gen_tokens));
                const std::int64_t spent_ns = now_ns() - start_ns;
                FR_ASSIGN(decode.logits_hash, batch.logits_hash());
                if (i >= 0) decode.samples.push_back(tokens_per_s(options_.gen_tokens, spent_ns));
            }
        }
        if (options_.prompt_tokens > 0) finish(prefill);
        if (options_.gen_tokens > 0) finish(decode);
        return {};
    }

private:
    EngineBenchRow new_row(const char* test, std::int64_t batch, std::int64_t depth) const {
        EngineBenchRow row;
        row.test = test;
        row.batch = batch;
        row.depth_tokens = depth;
        row.prompt_tokens = options_.prompt_tokens;
        row.gen_tokens = options_.gen_tokens;
        row.model = loaded_.source->where();
        row.weight_type = loaded_.weight_type();
        row.kv_type = loaded_.kv_type();
        row.isa = isa_name(loaded_.isa);
        row.threads = loaded_.threads;
        row.version = FRONTIER_VERSION;
        return row;
    }

    void finish(EngineBenchRow& row) const {
        const Model& model = loaded_.runner->model();
        row.tokens_per_s = median(row.samples);
        row.compute_type = loaded_.compute_type();  // known for certain once something has run
        const bool decode = row.test == "decode";
        const StepCost cost = decode ? decode_cost(model) : prefill_cost(model, options_.prompt_tokens);
        if (decode) row.gb_per_s = cost.bytes * row.tokens_per_s / static_cast<double>(row.batch) * 1e-9;
        row.gflops = cost.flops * row.tokens_per_s * 1e-9;
        if (roofline_.has_value()) {
            row.roofline_share = roofline_share_of(*roofline_, row.test, row.batch, row.tokens_per_s, cost, loaded_.isa,
                                                   row.compute_type, row.threads);
        }
        row.peak_memory_bytes = memory_state().peak_resident_bytes;
        row.memory_limit_bytes = memory_limit_bytes(loaded_.runner->backend().memory());
        on_row_(row);
    }

    LoadedModel& loaded_;
    const EngineBenchOptions& options_;
    const std::optional<Roofline>& roofline_;
    const std::function<void(const EngineBenchRow&)>& on_row_;
};

template <typename T>
Json json_or_null(const std::optional<T>& value) {
    return value.has_value() ? Json(*value) : Json(nullptr);
}

}  // namespace

Result<EngineBenchNeeds> engine_bench_needs(const EngineBenchOptions& options) {
    FR_TRY(check_range("--prompt-tokens", options.prompt_tokens, 0, kMaxTokens));
    FR_TRY(check_range("--gen-tokens", options.gen_tokens, 0, kMaxTokens));
    FR_TRY(check_range("--repeat", options.repeat, 1, kMaxRepeat));
    FR_TRY(check_range("--warmup", options.warmup, 0, kMaxRepeat));
    if (options.prompt_tokens == 0 && options.gen_tokens == 0) {
        return fail(ErrorCode::kUsage, "--prompt-tokens and --gen-tokens are both 0: nothing to measure");
    }
    if (options.batches.empty()) return fail(ErrorCode::kUsage, "--batch: expected at least one number, got none");
    if (options.depths_tokens.empty()) {
        return fail(ErrorCode::kUsage, "--depth: expected at least one number, got none");
    }
    for (const std::int64_t batch : options.batches) FR_TRY(check_range("--batch", batch, 1, kMaxBatch));
    for (const std::int64_t depth : options.depths_tokens) FR_TRY(check_range("--depth", depth, 0, kMaxTokens));
    EngineBenchNeeds needs;
    needs.context_tokens = options.prompt_tokens + options.gen_tokens + largest(options.depths_tokens);
    if (options.context_tokens > 0 && options.context_tokens < needs.context_tokens) {
        return fail(ErrorCode::kDoesNotFit, "--ctx: depth, prompt and generated tokens need {}, got {}",
                    needs.context_tokens, options.context_tokens);
    }
    needs.context_tokens = std::max(needs.context_tokens, options.context_tokens);
    needs.sequences = static_cast<std::int32_t>(largest(options.batches));
    needs.max_batch_tokens = std::max(kBatchTokens, needs.sequences);
    needs.max_logits_rows = std::max(kLogitsRows, needs.sequences);
    const std::int64_t rounded = (needs.context_tokens + kPageTokens - 1) / kPageTokens * kPageTokens;
    if (rounded * needs.sequences > kMaxCacheTokens) {
        return fail(ErrorCode::kDoesNotFit, "KV cache: {} sequences of {} tokens asked, the limit is {} tokens in all",
                    needs.sequences, needs.context_tokens, kMaxCacheTokens);
    }
    return needs;
}

std::string engine_bench_warning(const ModelConfig& config, const EngineBenchOptions& options) {
    if (options.depths_tokens.empty()) return {};
    const std::int64_t context = options.prompt_tokens + options.gen_tokens + largest(options.depths_tokens);
    if (config.context_tokens <= 0 || context <= config.context_tokens) return {};
    return fmt::format("{} tokens of context exceed the {} that the model was trained for: speed is real, text is not",
                       context, config.context_tokens);
}

Json to_json(const EngineBenchRow& row) {
    Json json = Json::object();
    json["test"] = row.test;
    json["batch"] = row.batch;
    json["depth"] = row.depth_tokens;
    json["prompt_tokens"] = row.prompt_tokens;
    json["gen_tokens"] = row.gen_tokens;
    json["tokens_per_s"] = row.tokens_per_s;
    json["samples"] = row.samples;
    json["gb_per_s"] = json_or_null(row.gb_per_s);
    json["gflops"] = row.gflops;
    json["roofline_share"] = json_or_null(row.roofline_share);
    json["model"] = row.model;
    json["weight_type"] = row.weight_type;
    json["compute_type"] = row.compute_type;
    json["kv_type"] = row.kv_type;
    json["isa"] = row.isa;
    json["threads"] = row.threads;
    json["peak_memory_bytes"] = row.peak_memory_bytes;
    json["memory_limit_bytes"] = row.memory_limit_bytes;
    json["logits_hash"] = row.logits_hash;
    json["version"] = row.version;
    return json;
}

Status run_engine_bench(LoadedModel& loaded, const EngineBenchOptions& options, const std::optional<Roofline>& roofline,
                        const std::function<void(const EngineBenchRow&)>& on_row) {
    FR_ASSIGN(const EngineBenchNeeds needs, engine_bench_needs(options));
    const RunnerOptions& have = loaded.runner->options();
    const std::int64_t pages = (needs.context_tokens + kPageTokens - 1) / kPageTokens * needs.sequences;
    if (have.kv_tokens < pages * kPageTokens || have.max_logits_rows < needs.sequences ||
        have.max_batch_tokens < needs.sequences) {
        return fail(ErrorCode::kDoesNotFit,
                    "{}: {} sequences of {} tokens asked, loaded for {} tokens in all, {} sequences at once",
                    loaded.source->where(), needs.sequences, needs.context_tokens, have.kv_tokens,
                    std::min(have.max_logits_rows, have.max_batch_tokens));
    }
    Grid grid(loaded, options, roofline, on_row);
    for (const std::int64_t depth : options.depths_tokens) {
        for (const std::int64_t batch : options.batches) FR_TRY(grid.point(batch, depth));
    }
    return {};
}

}  // namespace frontier

// Sequences over a paged KV cache and batched forward passes: what generation, benchmarks and evaluation share.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "base/result.h"
#include "base/types.h"
#include "engine/page_pool.h"
#include "model/model.h"

namespace frontier {

struct RunnerOptions {
    std::int32_t max_batch_tokens = 512;  // rows of one forward pass
    std::int32_t max_logits_rows = 64;    // rows of logits of one forward pass
    std::int64_t kv_tokens = 4096;        // capacity of the cache over all sequences, rounded up to pages
    KvType kv_type = KvType::kF16;
};

enum class LogitsWanted : std::uint8_t { kNone, kLast, kAll };

// The cache for `tokens` tokens over all sequences, rounded up to pages.
KvCacheConfig kv_cache_config(const ModelConfig& model, KvType type, std::int64_t tokens);

// A sequence's place in the cache. Owned by the caller, filled by the runner; give it back with Runner::release.
struct Sequence {
    std::int64_t length_tokens = 0;   // tokens whose K and V are in the cache
    std::vector<PageId> block_table;  // ceil(length / kPageTokens) pages or more, each owned once
};

struct BatchEntry {
    Sequence* sequence = nullptr;     // distinct within one forward
    std::span<const TokenId> tokens;  // appended at positions length_tokens, length_tokens + 1, ...
    LogitsWanted logits = LogitsWanted::kLast;
};

class Runner {
public:
    // Takes the backend and the model that was loaded into it. Allocates scratch and the cache; kDoesNotFit names
    // what was asked and what is available.
    static Result<std::unique_ptr<Runner>> create(std::unique_ptr<Backend> backend, std::unique_ptr<Model> model,
                                                  const RunnerOptions& options);

    // One forward over all entries (sum of tokens <= max_batch_tokens). Logits of the wanted rows in batch order,
    // [rows][vocab], valid until the next forward. Out of pages: kDoesNotFit, and no sequence has changed.
    // Ids outside the vocabulary are kBadInput errors. Logits are not checked for NaN here: the sampler does.
    Result<std::span<const float>> forward(std::span<const BatchEntry> entries);

    void release(Sequence& sequence);  // pages back, length 0
    // Keeps the first tokens. Where the cut opens a page that a fork shares and no page is free for a copy, it keeps
    // less: down to the page border. Look at length_tokens afterwards.
    void truncate(Sequence& sequence, std::int64_t length_tokens);
    // Shares the full pages and copies the partial one; kDoesNotFit when no page is free for it.
    Result<Sequence> fork(const Sequence& sequence);

    const Model& model() const { return *model_; }
    Backend& backend() { return *backend_; }
    const RunnerOptions& options() const { return options_; }
    const PagePool& pages() const { return pages_; }

private:
    Runner() = default;
    Status check_entries(std::span<const BatchEntry> entries) const;
    void extend(Sequence& sequence, std::int64_t tokens);

    std::unique_ptr<Backend> backend_;
    std::unique_ptr<Model> model_;
    RunnerOptions options_;
    PagePool pages_{0};
    Step step_;
};

}  // namespace frontier

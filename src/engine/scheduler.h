// What the next forward pass holds: a pure function of the running sequences, the free pages and the token budget.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace frontier {

// One admitted request as the scheduler sees it; index = position in arrival order, oldest first.
struct SchedulerSequence {
    std::int64_t cached_tokens = 0;  // in the KV cache
    std::int64_t known_tokens = 0;   // prompt and accepted output; at least one more than cached
    std::int64_t pages = 0;          // held now
};

struct SchedulerLimits {
    std::int32_t token_budget = 512;  // rows of one forward pass
    std::int32_t max_sequences = 64;  // entries of one forward pass
    std::int32_t page_tokens = 32;
    std::int64_t free_pages = 0;
};

struct SchedulerPlan {
    struct Entry {
        std::size_t index = 0;      // into the sequences
        std::int32_t tokens = 0;    // to append now
        bool wants_logits = false;  // the last known token is among them
    };
    std::vector<Entry> entries;          // decoding sequences first, then prefill chunks, each oldest first
    std::vector<std::size_t> preempted;  // youngest first: their pages are to be released before the pass
};

// Decode tokens first, prefill chunks fill the rest of the budget, first come first served. When a decoding sequence
// needs a page and none is free, the youngest sequence that holds pages is preempted (recomputed later). The oldest
// sequence is never preempted, so the plan is empty only when the oldest alone does not fit the whole cache.
SchedulerPlan plan_step(std::span<const SchedulerSequence> sequences, const SchedulerLimits& limits);

}  // namespace frontier

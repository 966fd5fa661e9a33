// Requests to tokens: admits requests, runs one planned forward pass per step, samples, and reports events.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "engine/request.h"
#include "engine/runner.h"
#include "engine/scheduler.h"
#include "engine/stop_matcher.h"
#include "text/tokenizer.h"

namespace frontier {

struct EngineOptions {
    std::int64_t context_tokens = 0;  // longest prompt + output of one request; <= the runner's kv_tokens
    std::int32_t max_sequences = 64;  // in one forward pass
};

// Not thread-safe: one thread submits, steps and cancels.
class Engine {
public:
    Engine(Runner& runner, std::shared_ptr<const Tokenizer> tokenizer, const EngineOptions& options);
    ~Engine();
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;

    // Checks the request (kUsage for parameters, kDoesNotFit with both numbers for a prompt that leaves no room for a
    // token, kBadInput for ids outside the vocabulary) and queues it.
    Result<RequestId> submit(Request request);
    // Takes effect before the next forward pass; the request's last event has reason kCancelled. Unknown: no-op.
    void cancel(RequestId id);

    // One forward pass (or none when there is nothing to do) and its events, in order. Faults of single requests
    // (non-finite logits, no room) end that request with kError; an Error here means the device failed.
    Result<std::vector<RequestEvent>> step();
    bool idle() const { return active_.empty() && pending_events_.empty(); }

    // FNV-1a over the f32 logits that the last step sampled from, 0 before the first.
    std::uint64_t logits_hash() const { return logits_hash_; }

    // A conversation continues in the cache: the sequence of the last finished request with `keep_cache` is reused by
    // the next submit as far as their tokens agree.
    void keep_cache(bool on);

private:
    struct Active;
    void finish(Active& active, FinishReason reason, std::vector<RequestEvent>& events,
                std::optional<Error> error = {});
    void emit_token(Active& active, SampledToken token, std::vector<RequestEvent>& events);
    void consume_logits(Active& active, std::span<const float> logits, std::vector<RequestEvent>& events);
    void adopt_kept_cache(Active& active);
    void drop_kept_cache();
    std::vector<SchedulerSequence> scheduler_view() const;
    void remove_finished();

    Runner& runner_;
    std::shared_ptr<const Tokenizer> tokenizer_;
    EngineOptions options_;
    RequestId next_id_ = 1;
    std::deque<std::unique_ptr<Active>> active_;  // in arrival order
    std::vector<RequestEvent> pending_events_;    // of cancellations between steps
    std::uint64_t logits_hash_ = 0;
    bool keep_cache_ = false;
    Sequence kept_sequence_;
    std::vector<TokenId> kept_tokens_;  // what kept_sequence_ holds
};

}  // namespace frontier

#include "engine/engine.h"

#include <algorithm>

#include "base/check.h"
#include "base/hash.h"
#include "platform/clock.h"

namespace frontier {

std::string_view finish_reason_name(FinishReason reason) {
    switch (reason) {
        case FinishReason::kStop:
            return "stop";
        case FinishReason::kLength:
            return "length";
        case FinishReason::kContext:
            return "context";
        case FinishReason::kCancelled:
            return "cancelled";
        case FinishReason::kError:
            return "error";
    }
    return "error";
}

struct Engine::Active {
    Active(RequestId request_id, Request r, std::shared_ptr<const Tokenizer> tokenizer)
        : id(request_id),
          request(std::move(r)),
          tokens(request.prompt),
          sampler(request.sampling, request.prompt),
          decoder(std::move(tokenizer)),
          stops(request.stop) {}

    RequestId id;
    Request request;
    std::vector<TokenId> tokens;  // prompt, then output
    Sequence sequence;
    Sampler sampler;
    StreamDecoder decoder;
    StopMatcher stops;
    RequestTimes times;
    bool done = false;
};

Engine::Engine(Runner& runner, std::shared_ptr<const Tokenizer> tokenizer, const EngineOptions& options)
    : runner_(runner), tokenizer_(std::move(tokenizer)), options_(options) {
    FR_CHECK(options_.context_tokens >= 1 && options_.context_tokens <= runner_.options().kv_tokens);
    options_.max_sequences = std::min(options_.max_sequences, runner_.options().max_logits_rows);
}

Engine::~Engine() {
    for (const auto& active : active_) runner_.release(active->sequence);
    drop_kept_cache();
}

Result<RequestId> Engine::submit(Request request) {
    const std::int32_t vocab_size = runner_.model().config().vocab_size;
    FR_TRY(check_sampling_params(request.sampling, vocab_size));
    if (request.prompt.empty())
        return fail(ErrorCode::kUsage, "the prompt is empty: this model needs at least one token");
    if (std::ssize(request.prompt) >= options_.context_tokens)
        return fail(ErrorCode::kDoesNotFit,
                    "the prompt has {} tokens, the context of {} tokens leaves room for {} (raise --ctx)",
                    request.prompt.size(), options_.context_tokens, options_.context_tokens - 1);
    for (const TokenId id : request.prompt)
        if (id < 0 || id >= vocab_size)
            return bad_input("prompt: token id {} is outside the vocabulary of {} entries", id, vocab_size);
    auto active = std::make_unique<Active>(next_id_++, std::move(request), tokenizer_);
    active->times.submitted_ns = now_ns();
    active->times.prompt_tokens = std::ssize(active->request.prompt);
    adopt_kept_cache(*active);
    active->times.prefill_tokens = active->times.prompt_tokens - active->sequence.length_tokens;
    active_.push_back(std::move(active));
    return active_.back()->id;
}

void Engine::cancel(RequestId id) {
    for (const auto& active : active_)
        if (active->id == id && !active->done) finish(*active, FinishReason::kCancelled, pending_events_);
    remove_finished();
}

void Engine::keep_cache(bool on) {
    keep_cache_ = on;
    if (!on) drop_kept_cache();
}

void Engine::drop_kept_cache() {
    runner_.release(kept_sequence_);
    kept_tokens_.clear();
}

void Engine::adopt_kept_cache(Active& active) {
    // The last prompt token is always computed anew: its logits are needed.
    const auto limit = std::min<std::int64_t>(kept_sequence_.length_tokens, std::ssize(active.tokens) - 1);
    std::int64_t shared = 0;
    while (shared < limit &&
           kept_tokens_[static_cast<std::size_t>(shared)] == active.tokens[static_cast<std::size_t>(shared)])
        ++shared;
    if (shared == 0) {
        drop_kept_cache();  // a request never waits for pages that only a past one uses
        return;
    }
    runner_.truncate(kept_sequence_, shared);
    active.sequence = std::move(kept_sequence_);
    kept_sequence_ = {};
    kept_tokens_.clear();
}

void Engine::finish(Active& active, FinishReason reason, std::vector<RequestEvent>& events,
                    std::optional<Error> error) {
    RequestEvent event;
    event.request = active.id;
    // A stop string is never shown; otherwise what was held back is text like any other.
    event.text = active.stops.push(active.decoder.finish());
    event.text += active.stops.finish();
    event.finish = reason;
    event.error = std::move(error);
    event.times = active.times;
    events.push_back(std::move(event));
    active.done = true;
    if (keep_cache_ && reason != FinishReason::kError) {
        drop_kept_cache();
        kept_sequence_ = std::move(active.sequence);
        active.sequence = {};
        kept_tokens_.assign(active.tokens.begin(), active.tokens.begin() + kept_sequence_.length_tokens);
    } else {
        runner_.release(active.sequence);
    }
}

void Engine::remove_finished() {
    std::erase_if(active_, [](const auto& active) { return active->done; });
}

std::vector<SchedulerSequence> Engine::scheduler_view() const {
    std::vector<SchedulerSequence> view;
    view.reserve(active_.size());
    for (const auto& active : active_)
        view.push_back({.cached_tokens = active->sequence.length_tokens,
                        .known_tokens = std::ssize(active->tokens),
                        .pages = std::ssize(active->sequence.block_table)});
    return view;
}

void Engine::emit_token(Active& active, SampledToken token, std::vector<RequestEvent>& events) {
    const TokenId id = token.id;
    active.times.last_token_ns = now_ns();
    if (active.times.first_token_ns == 0) active.times.first_token_ns = active.times.last_token_ns;
    const bool stop_id = std::ranges::find(active.request.stop_ids, id) != active.request.stop_ids.end();
    if (stop_id || (!active.request.ignore_eos && tokenizer_->ends_generation(id))) {
        finish(active, FinishReason::kStop, events);
        return;
    }
    active.tokens.push_back(id);
    active.sampler.accept(id);
    ++active.times.completion_tokens;
    RequestEvent event;
    event.request = active.id;
    event.text = active.stops.push(active.decoder.push(id));
    event.token = std::move(token);
    events.push_back(std::move(event));
    if (active.stops.stopped())
        finish(active, FinishReason::kStop, events);
    else if (active.request.max_tokens >= 0 && active.times.completion_tokens >= active.request.max_tokens)
        finish(active, FinishReason::kLength, events);
    else if (std::ssize(active.tokens) >= options_.context_tokens)
        finish(active, FinishReason::kContext, events);
}

void Engine::consume_logits(Active& active, std::span<const float> logits, std::vector<RequestEvent>& events) {
    auto token = active.sampler.sample(logits);
    if (!token.has_value()) {
        finish(active, FinishReason::kError, events, std::move(token).error());
        return;
    }
    emit_token(active, std::move(token).value(), events);
}

Result<std::vector<RequestEvent>> Engine::step() {
    std::vector<RequestEvent> events = std::move(pending_events_);
    pending_events_.clear();
    for (const auto& active : active_)  // nothing to generate: done before any work
        if (active->request.max_tokens == 0) finish(*active, FinishReason::kLength, events);
    remove_finished();
    if (active_.empty()) return events;

    const SchedulerPlan plan = plan_step(scheduler_view(), {.token_budget = runner_.options().max_batch_tokens,
                                                            .max_sequences = options_.max_sequences,
                                                            .page_tokens = kPageTokens,
                                                            .free_pages = runner_.pages().free_pages()});
    for (const std::size_t index : plan.preempted) runner_.release(active_[index]->sequence);
    if (plan.entries.empty()) {
        Active& oldest = *active_.front();
        finish(oldest, FinishReason::kError, events,
               Error{ErrorCode::kDoesNotFit,
                     fmt::format("KV cache: the request has {} tokens, the cache holds {}", oldest.tokens.size(),
                                 std::int64_t{runner_.pages().total_pages()} * kPageTokens)});
        remove_finished();
        return events;
    }
    std::vector<BatchEntry> entries;
    const std::int64_t start_ns = now_ns();
    for (const SchedulerPlan::Entry& planned : plan.entries) {
        Active& active = *active_[planned.index];
        if (active.times.prefill_start_ns == 0) active.times.prefill_start_ns = start_ns;
        if (active.times.first_token_ns != 0 && planned.wants_logits) ++active.times.decode_steps;
        entries.push_back({.sequence = &active.sequence,
                           .tokens = std::span(active.tokens)
                                         .subspan(static_cast<std::size_t>(active.sequence.length_tokens),
                                                  static_cast<std::size_t>(planned.tokens)),
                           .logits = planned.wants_logits ? LogitsWanted::kLast : LogitsWanted::kNone});
    }
    FR_ASSIGN(const std::span<const float> logits, runner_.forward(entries));
    if (!logits.empty()) logits_hash_ = fnv1a64(logits.data(), logits.size_bytes());
    const auto vocab_size = static_cast<std::size_t>(runner_.model().config().vocab_size);
    std::size_t row = 0;
    for (const SchedulerPlan::Entry& planned : plan.entries)
        if (planned.wants_logits)
            consume_logits(*active_[planned.index], logits.subspan(row++ * vocab_size, vocab_size), events);
    remove_finished();
    return events;
}

}  // namespace frontier

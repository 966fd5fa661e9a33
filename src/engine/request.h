// A generation request and what comes back for it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "engine/sampler.h"

namespace frontier {

using RequestId = std::int64_t;

struct Request {
    std::vector<TokenId> prompt;  // at least one token
    SamplingParams sampling;
    std::int64_t max_tokens = -1;   // of output; -1 = until the context is full
    std::vector<std::string> stop;  // strings; the text ends before them
    std::vector<TokenId> stop_ids;  // besides the end-of-generation tokens
    bool ignore_eos = false;        // end-of-generation tokens are ordinary output
};

enum class FinishReason : std::uint8_t { kStop, kLength, kContext, kCancelled, kError };
std::string_view finish_reason_name(FinishReason reason);  // "stop", "length", "context", "cancelled", "error"

struct RequestTimes {
    std::int64_t submitted_ns = 0;
    std::int64_t prefill_start_ns = 0;  // its first forward pass begins
    std::int64_t first_token_ns = 0;
    std::int64_t last_token_ns = 0;
    std::int64_t prompt_tokens = 0;
    std::int64_t prefill_tokens = 0;     // of the prompt that were computed: all but what the cache held
    std::int64_t completion_tokens = 0;  // end token excluded
    std::int64_t decode_steps = 0;       // forward passes after the first token
};

// One token's worth of progress, or the end. The concatenated texts are the whole text.
struct RequestEvent {
    RequestId request = 0;
    std::string text;                    // whole characters only; may be empty while one is incomplete
    std::optional<SampledToken> token;   // absent for an end token or a pure end event
    std::optional<FinishReason> finish;  // set exactly once per request, in its last event
    std::optional<Error> error;          // with kError
    std::optional<RequestTimes> times;   // with finish
};

}  // namespace frontier

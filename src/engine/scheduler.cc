#include "engine/scheduler.h"

#include <algorithm>

namespace frontier {
namespace {

class Planner {
public:
    Planner(std::span<const SchedulerSequence> sequences, const SchedulerLimits& limits)
        : sequences_(sequences),
          limits_(limits),
          free_pages_(limits.free_pages),
          budget_(limits.token_budget),
          state_(sequences.size(), State::kWaiting) {}

    SchedulerPlan run() {
        for (const bool decoding : {true, false})
            for (std::size_t i = 0; i < sequences_.size() && budget_ > 0; ++i)
                if (is_decoding(i) == decoding && state_[i] == State::kWaiting) schedule(i);
        return std::move(plan_);
    }

private:
    enum class State : std::uint8_t { kWaiting, kPlanned, kPreempted };

    bool is_decoding(std::size_t i) const {
        return sequences_[i].cached_tokens > 0 && sequences_[i].known_tokens - sequences_[i].cached_tokens == 1;
    }

    // Tokens that `i` can hold with the pages it has and the free ones.
    std::int64_t capacity(std::size_t i) const {
        return (sequences_[i].pages + free_pages_) * limits_.page_tokens - sequences_[i].cached_tokens;
    }

    // Frees the pages of the youngest unplanned sequence younger than `i`; false when there is none.
    bool preempt_younger_than(std::size_t i) {
        for (std::size_t victim = sequences_.size(); victim-- > i + 1;) {
            if (state_[victim] != State::kWaiting || sequences_[victim].pages == 0) continue;
            state_[victim] = State::kPreempted;
            free_pages_ += sequences_[victim].pages;
            plan_.preempted.push_back(victim);
            return true;
        }
        return false;
    }

    void schedule(std::size_t i) {
        if (std::ssize(plan_.entries) >= limits_.max_sequences) return;
        const SchedulerSequence& sequence = sequences_[i];
        const std::int64_t missing = sequence.known_tokens - sequence.cached_tokens;
        std::int64_t tokens = std::min<std::int64_t>(missing, budget_);
        while (capacity(i) < tokens && preempt_younger_than(i)) {
        }
        tokens = std::min(tokens, capacity(i));
        if (tokens <= 0) return;
        const std::int64_t pages_after =
            (sequence.cached_tokens + tokens + limits_.page_tokens - 1) / limits_.page_tokens;
        free_pages_ -= std::max<std::int64_t>(0, pages_after - sequence.pages);
        budget_ -= static_cast<std::int32_t>(tokens);
        state_[i] = State::kPlanned;
        plan_.entries.push_back(
            {.index = i, .tokens = static_cast<std::int32_t>(tokens), .wants_logits = tokens == missing});
    }

    std::span<const SchedulerSequence> sequences_;
    const SchedulerLimits& limits_;
    std::int64_t free_pages_;
    std::int32_t budget_;
    std::vector<State> state_;
    SchedulerPlan plan_;
};

}  // namespace

SchedulerPlan plan_step(std::span<const SchedulerSequence> sequences, const SchedulerLimits& limits) {
    return Planner(sequences, limits).run();
}

}  // namespace frontier

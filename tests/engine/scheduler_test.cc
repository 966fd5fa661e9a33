#include "engine/scheduler.h"

#include <gtest/gtest.h>

#include <numeric>

#include "base/rng.h"

namespace frontier {
namespace {

TEST(Scheduler, DecodeComesBeforePrefillAndPrefillFillsTheBudget) {
    const std::vector<SchedulerSequence> sequences = {
        {.cached_tokens = 0, .known_tokens = 1000, .pages = 0},  // prefill, oldest
        {.cached_tokens = 40, .known_tokens = 41, .pages = 2},   // decode
        {.cached_tokens = 64, .known_tokens = 65, .pages = 2}};  // decode, needs a page
    const SchedulerPlan plan = plan_step(sequences, {.token_budget = 100, .free_pages = 100});
    ASSERT_EQ(plan.entries.size(), 3U);
    EXPECT_EQ(plan.entries[0].index, 1U);
    EXPECT_EQ(plan.entries[0].tokens, 1);
    EXPECT_TRUE(plan.entries[0].wants_logits);
    EXPECT_EQ(plan.entries[1].index, 2U);
    EXPECT_EQ(plan.entries[2].index, 0U);
    EXPECT_EQ(plan.entries[2].tokens, 98);
    EXPECT_FALSE(plan.entries[2].wants_logits);
    EXPECT_TRUE(plan.preempted.empty());
}

TEST(Scheduler, TheLastPrefillChunkWantsLogits) {
    const std::vector<SchedulerSequence> sequences = {{.cached_tokens = 90, .known_tokens = 100, .pages = 3}};
    const SchedulerPlan plan = plan_step(sequences, {.token_budget = 64, .free_pages = 10});
    ASSERT_EQ(plan.entries.size(), 1U);
    EXPECT_EQ(plan.entries[0].tokens, 10);
    EXPECT_TRUE(plan.entries[0].wants_logits);
}

TEST(Scheduler, TheYoungestIsPreemptedWhenADecodeNeedsAPage) {
    const std::vector<SchedulerSequence> sequences = {{.cached_tokens = 32, .known_tokens = 33, .pages = 1},
                                                      {.cached_tokens = 10, .known_tokens = 11, .pages = 1},
                                                      {.cached_tokens = 20, .known_tokens = 21, .pages = 1}};
    const SchedulerPlan plan = plan_step(sequences, {.token_budget = 8, .free_pages = 0});
    EXPECT_EQ(plan.preempted, std::vector<std::size_t>{2});
    ASSERT_EQ(plan.entries.size(), 2U);
    EXPECT_EQ(plan.entries[0].index, 0U);
    EXPECT_EQ(plan.entries[1].index, 1U);
}

TEST(Scheduler, APrefillTakesWhatFits) {
    const std::vector<SchedulerSequence> sequences = {{.cached_tokens = 0, .known_tokens = 500, .pages = 0}};
    const SchedulerPlan plan = plan_step(sequences, {.token_budget = 512, .free_pages = 2});
    ASSERT_EQ(plan.entries.size(), 1U);
    EXPECT_EQ(plan.entries[0].tokens, 64);
    EXPECT_FALSE(plan.entries[0].wants_logits);
}

TEST(Scheduler, NothingFitsGivesAnEmptyPlan) {
    const std::vector<SchedulerSequence> sequences = {{.cached_tokens = 64, .known_tokens = 65, .pages = 2}};
    EXPECT_TRUE(plan_step(sequences, {.token_budget = 8, .free_pages = 0}).entries.empty());
}

// Runs random workloads to their end against a simulated cache: no page is used twice, every sequence finishes.
TEST(Scheduler, RandomWorkloadsFinishWithinTheCache) {
    RandomStream random(99);
    for (int round = 0; round < 300; ++round) {
        const auto total_pages = static_cast<std::int64_t>(4 + random.next() % 20);
        struct State {
            SchedulerSequence sequence;
            std::int64_t output_left = 0;
        };
        std::vector<State> states;
        for (std::uint64_t i = 0; i < 1 + random.next() % 10; ++i) {
            const auto most = total_pages * 32;
            const auto prompt = static_cast<std::int64_t>(1 + random.next() % static_cast<std::uint64_t>(most - 1));
            states.push_back(
                {{.cached_tokens = 0, .known_tokens = prompt, .pages = 0},
                 static_cast<std::int64_t>(1 + random.next() % static_cast<std::uint64_t>(most - prompt))});
        }
        const auto budget = static_cast<std::int32_t>(1 + random.next() % 100);
        for (int step = 0; !states.empty(); ++step) {
            ASSERT_LT(step, 200'000) << "no progress in round " << round;
            std::vector<SchedulerSequence> view;
            std::int64_t used = 0;
            for (const State& state : states) {
                view.push_back(state.sequence);
                used += state.sequence.pages;
            }
            const SchedulerPlan plan =
                plan_step(view, {.token_budget = budget, .max_sequences = 4, .free_pages = total_pages - used});
            ASSERT_FALSE(plan.entries.empty());
            for (const std::size_t victim : plan.preempted)
                states[victim].sequence.pages = states[victim].sequence.cached_tokens = 0;
            std::int32_t tokens = 0;
            for (const auto& entry : plan.entries) {
                State& state = states[entry.index];
                tokens += entry.tokens;
                state.sequence.cached_tokens += entry.tokens;
                state.sequence.pages = std::max(state.sequence.pages, (state.sequence.cached_tokens + 31) / 32);
                ASSERT_LE(state.sequence.cached_tokens, state.sequence.known_tokens);
                ASSERT_EQ(entry.wants_logits, state.sequence.cached_tokens == state.sequence.known_tokens);
                if (entry.wants_logits) {
                    ++state.sequence.known_tokens;
                    --state.output_left;
                }
            }
            ASSERT_LE(tokens, budget);
            ASSERT_LE(plan.entries.size(), 4U);
            used = 0;
            for (const State& state : states) used += state.sequence.pages;
            ASSERT_LE(used, total_pages);
            std::erase_if(states, [](const State& state) { return state.output_left <= 0; });
        }
    }
}

}  // namespace
}  // namespace frontier

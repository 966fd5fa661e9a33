// The engine on the small bundled model: whole requests through scheduler, cache, backend and sampler.
#include "engine/engine.h"

#include <gtest/gtest.h>

#include <map>

#include "engine/loader.h"

namespace frontier {
namespace {

const std::string kModel = FRONTIER_SOURCE_DIR "/models/tale-1m-f16.gguf";

LoadedModel load(std::int64_t kv_tokens, std::int32_t max_batch_tokens = 64, bool repack = true) {
    LoadOptions options;
    options.model = kModel;
    options.threads = 1;
    options.repack = repack;
    options.context_tokens = kv_tokens;
    options.max_batch_tokens = max_batch_tokens;
    auto loaded = load_model(options);
    EXPECT_TRUE(loaded.has_value()) << loaded.error().text;
    return std::move(loaded).value();
}

Request greedy(const LoadedModel& loaded, const std::string& prompt, std::int64_t max_tokens) {
    Request request;
    request.prompt = *loaded.tokenizer->encode(prompt);
    request.sampling.temperature = 0;
    request.max_tokens = max_tokens;
    request.ignore_eos = true;
    return request;
}

struct Outcome {
    std::string text;
    std::vector<TokenId> ids;
    std::optional<FinishReason> finish;
    std::optional<Error> error;
    RequestTimes times;
};

std::map<RequestId, Outcome> run_all(Engine& engine) {
    std::map<RequestId, Outcome> outcomes;
    for (int steps = 0; !engine.idle(); ++steps) {
        if (steps > 10'000) {
            ADD_FAILURE() << "the engine makes no progress";
            break;
        }
        auto events = engine.step();
        EXPECT_TRUE(events.has_value());
        for (RequestEvent& event : *events) {
            Outcome& outcome = outcomes[event.request];
            outcome.text += event.text;
            if (event.token) outcome.ids.push_back(event.token->id);
            if (event.finish) {
                EXPECT_FALSE(outcome.finish.has_value()) << "a request ends once";
                outcome.finish = event.finish;
                outcome.error = event.error;
                outcome.times = *event.times;
            }
        }
    }
    return outcomes;
}

Outcome run_alone(LoadedModel& loaded, Request request) {
    Engine engine(*loaded.runner, loaded.tokenizer, {.context_tokens = loaded.runner->options().kv_tokens});
    const RequestId id = *engine.submit(std::move(request));
    return run_all(engine)[id];
}

const std::vector<std::string> kPrompts = {"Once upon a time there lived a king who had three sons,", "The whale",
                                           "It was the best of times, it was the worst of times, it was the age of",
                                           "She opened the door and"};

TEST(Engine, ManyRequestsTogetherGiveWhatEachGivesAlone) {
    LoadedModel loaded = load(1024);
    std::vector<Outcome> alone;
    for (const std::string& prompt : kPrompts) alone.push_back(run_alone(loaded, greedy(loaded, prompt, 20)));
    Engine engine(*loaded.runner, loaded.tokenizer, {.context_tokens = 256});
    std::vector<RequestId> ids;
    for (const std::string& prompt : kPrompts) ids.push_back(*engine.submit(greedy(loaded, prompt, 20)));
    auto together = run_all(engine);
    for (std::size_t i = 0; i < kPrompts.size(); ++i) {
        EXPECT_EQ(together[ids[i]].ids, alone[i].ids) << kPrompts[i];
        EXPECT_EQ(together[ids[i]].text, alone[i].text);
        EXPECT_EQ(together[ids[i]].finish, FinishReason::kLength);
        EXPECT_EQ(together[ids[i]].times.completion_tokens, 20);
    }
    EXPECT_TRUE(loaded.runner->pages().check_integrity());
    EXPECT_EQ(loaded.runner->pages().free_pages(), loaded.runner->pages().total_pages());
}

TEST(Engine, PreemptionAndChunkingChangeNothing) {
    LoadedModel roomy = load(1024);
    LoadedModel tight = load(96, 8);  // three pages for four requests that need two each
    Engine engine(*tight.runner, tight.tokenizer, {.context_tokens = 96});
    std::vector<RequestId> ids;
    for (const std::string& prompt : kPrompts) ids.push_back(*engine.submit(greedy(tight, prompt, 30)));
    auto together = run_all(engine);
    for (std::size_t i = 0; i < kPrompts.size(); ++i)
        EXPECT_EQ(together[ids[i]].ids, run_alone(roomy, greedy(roomy, kPrompts[i], 30)).ids) << kPrompts[i];
    EXPECT_EQ(tight.runner->pages().free_pages(), tight.runner->pages().total_pages());
}

TEST(Engine, StopsAtTextIdsAndContext) {
    LoadedModel loaded = load(64);
    const Outcome plain = run_alone(loaded, greedy(loaded, kPrompts[0], 12));
    ASSERT_GE(plain.text.size(), 10U);

    Request with_stop = greedy(loaded, kPrompts[0], 12);
    with_stop.stop = {plain.text.substr(6, 3)};
    const Outcome stopped = run_alone(loaded, std::move(with_stop));
    EXPECT_EQ(stopped.finish, FinishReason::kStop);
    EXPECT_EQ(stopped.text, plain.text.substr(0, plain.text.find(plain.text.substr(6, 3))));

    Request with_id = greedy(loaded, kPrompts[0], 12);
    with_id.stop_ids = {plain.ids[5]};
    const Outcome at_id = run_alone(loaded, std::move(with_id));
    EXPECT_EQ(at_id.finish, FinishReason::kStop);
    EXPECT_LE(at_id.ids.size(), 5U);

    const Outcome full = run_alone(loaded, greedy(loaded, kPrompts[0], -1));
    EXPECT_EQ(full.finish, FinishReason::kContext);
    EXPECT_EQ(full.times.prompt_tokens + full.times.completion_tokens, 64);
}

TEST(Engine, RefusesWhatCannotRun) {
    LoadedModel loaded = load(64);
    Engine engine(*loaded.runner, loaded.tokenizer, {.context_tokens = 64});
    Request request = greedy(loaded, "x", 4);
    request.prompt.assign(64, 10);
    auto refused = engine.submit(request);
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, ErrorCode::kDoesNotFit);
    EXPECT_NE(refused.error().text.find("64"), std::string::npos);

    request.prompt = {1'000'000};
    refused = engine.submit(request);
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, ErrorCode::kBadInput);

    request.prompt = {-1};
    EXPECT_FALSE(engine.submit(request).has_value());
    request.prompt = {};
    EXPECT_FALSE(engine.submit(request).has_value());
    request = greedy(loaded, "x", 4);
    request.sampling.top_p = -3;
    EXPECT_FALSE(engine.submit(request).has_value());
    EXPECT_TRUE(engine.idle());
}

TEST(Engine, CancellationInEveryPhaseFreesItsPages) {
    LoadedModel loaded = load(256, 8);
    for (int steps_before = 0; steps_before < 8; ++steps_before) {
        Engine engine(*loaded.runner, loaded.tokenizer, {.context_tokens = 128});
        const RequestId kept = *engine.submit(greedy(loaded, kPrompts[1], 10));
        const RequestId cancelled = *engine.submit(greedy(loaded, kPrompts[2], 50));
        std::map<RequestId, Outcome> outcomes;
        for (int i = 0; i < steps_before; ++i) ASSERT_TRUE(engine.step().has_value());
        engine.cancel(cancelled);
        engine.cancel(12345);
        auto rest = run_all(engine);
        EXPECT_EQ(rest[cancelled].finish, FinishReason::kCancelled);
        EXPECT_EQ(rest[kept].finish, FinishReason::kLength);
        EXPECT_EQ(loaded.runner->pages().free_pages(), loaded.runner->pages().total_pages());
    }
}

TEST(Engine, AConversationContinuesInTheCache) {
    LoadedModel loaded = load(256);
    Request first = greedy(loaded, kPrompts[0], 10);
    Engine engine(*loaded.runner, loaded.tokenizer, {.context_tokens = 256});
    engine.keep_cache(true);
    const RequestId first_id = *engine.submit(first);
    const Outcome turn = run_all(engine)[first_id];

    Request second = greedy(loaded, "", 10);
    second.prompt = first.prompt;
    second.prompt.insert(second.prompt.end(), turn.ids.begin(), turn.ids.end());
    second.prompt.push_back(20);
    const RequestId second_id = *engine.submit(second);
    const Outcome continued = run_all(engine)[second_id];
    EXPECT_LT(continued.times.prefill_tokens, 4);  // the last output token and the new one
    engine.keep_cache(false);
    EXPECT_EQ(loaded.runner->pages().free_pages(), loaded.runner->pages().total_pages());
    EXPECT_EQ(continued.ids, run_alone(loaded, second).ids);

    // A prompt that shares nothing starts afresh.
    engine.keep_cache(true);
    ASSERT_TRUE(engine.submit(first).has_value());
    run_all(engine);
    Request other = greedy(loaded, "", 5);
    other.prompt = {33, 44, 55};
    const RequestId other_id = *engine.submit(other);
    EXPECT_EQ(run_all(engine)[other_id].times.prefill_tokens, 3);
}

TEST(Engine, RunningFromTheMapGivesTheSameBits) {
    LoadedModel packed = load(256);
    LoadedModel mapped = load(256, 64, false);
    EXPECT_LT(mapped.runner->backend().memory().weight_bytes, packed.runner->backend().memory().weight_bytes / 10);
    const auto logits_of = [](LoadedModel& loaded) {
        Sequence sequence;
        const auto ids = *loaded.tokenizer->encode(kPrompts[2]);
        const BatchEntry entry{.sequence = &sequence, .tokens = ids, .logits = LogitsWanted::kAll};
        const auto logits = *loaded.runner->forward({&entry, 1});
        return std::vector<float>(logits.begin(), logits.end());
    };
    EXPECT_EQ(logits_of(packed), logits_of(mapped));
}

TEST(Engine, ZeroTokensAsksForNothing) {
    LoadedModel loaded = load(64);
    const Outcome outcome = run_alone(loaded, greedy(loaded, "x", 0));
    EXPECT_EQ(outcome.finish, FinishReason::kLength);
    EXPECT_TRUE(outcome.ids.empty());
}

TEST(Runner, ForksShareFullPagesAndDivergeSafely) {
    LoadedModel loaded = load(256);
    Runner& runner = *loaded.runner;
    const auto prompt = *loaded.tokenizer->encode(kPrompts[2] + kPrompts[2] + kPrompts[2]);
    ASSERT_GT(prompt.size(), 40U);
    Sequence original;
    BatchEntry entry{.sequence = &original, .tokens = prompt};
    ASSERT_TRUE(runner.forward({&entry, 1}).has_value());
    Sequence fork = *runner.fork(original);
    EXPECT_EQ(fork.block_table.front(), original.block_table.front());
    EXPECT_NE(fork.block_table.back(), original.block_table.back());

    const std::vector<TokenId> a = {100, 101};
    const std::vector<TokenId> b = {200};
    const std::vector<TokenId> next = {7};
    const auto logits_after = [&](Sequence& sequence, const std::vector<TokenId>& tokens) {
        const BatchEntry step{.sequence = &sequence, .tokens = tokens};
        const auto logits = runner.forward({&step, 1});
        return std::vector<float>(logits->begin(), logits->end());
    };
    logits_after(original, a);
    logits_after(fork, b);
    const auto from_fork = logits_after(fork, next);

    Sequence fresh;
    auto whole = prompt;
    whole.push_back(200);
    whole.push_back(7);
    const auto from_fresh = logits_after(fresh, whole);
    ASSERT_EQ(from_fork.size(), from_fresh.size());
    for (std::size_t i = 0; i < from_fork.size(); ++i) ASSERT_NEAR(from_fork[i], from_fresh[i], 2e-2);

    // Cutting a shared page open and writing into it must not touch the other sequence.
    Sequence second = *runner.fork(original);
    runner.truncate(second, 20);
    logits_after(second, {300, 301, 302});
    runner.truncate(fork, static_cast<std::int64_t>(prompt.size()) + 1);
    const auto again = logits_after(fork, next);
    EXPECT_EQ(again, from_fork);
    for (Sequence* sequence : {&original, &fork, &fresh, &second}) runner.release(*sequence);
    EXPECT_TRUE(runner.pages().check_integrity());
    EXPECT_EQ(runner.pages().free_pages(), runner.pages().total_pages());
}

}  // namespace
}  // namespace frontier

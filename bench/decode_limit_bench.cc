// How far decode is from the reads it cannot avoid, on a machine whose speed changes from second to second: one decode
// step and one plain reading of as many bytes take turns, and the ratio is taken within each turn.
//
//   decode_limit_bench MODEL [PROMPT_TOKENS [STEPS [SEQUENCES]]]
#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/stats.h"
#include "engine/loader.h"
#include "kernels/peak.h"
#include "measure/rates.h"
#include "platform/clock.h"
#include "platform/memory.h"
#include "platform/thread_pool.h"

namespace frontier {
namespace {

constexpr std::int64_t kChunkBytes = 1 << 20;  // what a thread reads at once: handing it out does not show
constexpr int kReadStreams = 4;                // the fastest way to read here (Zen 3: one stream gives 4 to 10% less)
constexpr int kWarmupSteps = 4;

ReadLoop read_loop(Isa isa) {
    if (isa == Isa::kScalar) return scalar::read_words;
    return isa == Isa::kAvx2 ? avx2::read_words : avx512::read_words;
}

struct Options {
    std::string model;
    std::int64_t prompt_tokens = 32;
    std::int64_t steps = 100;
    std::int64_t sequences = 1;
};

Result<LoadedModel> load(const Options& options) {
    LoadOptions load;
    load.model = options.model;
    load.context_tokens = options.prompt_tokens + options.steps + kWarmupSteps;
    load.sequences = static_cast<std::int32_t>(options.sequences);
    return load_model(load);
}

Status measure(const Options& options) {
    FR_ASSIGN(LoadedModel loaded, load(options));
    Runner& runner = *loaded.runner;
    const auto vocab = static_cast<TokenId>(runner.model().config().vocab_size);
    std::vector<Sequence> sequences(static_cast<std::size_t>(options.sequences));
    for (Sequence& sequence : sequences) {
        for (std::int64_t i = 0; i < options.prompt_tokens; ++i) {
            const TokenId token = static_cast<TokenId>(i) % vocab;
            const BatchEntry entry{&sequence, {&token, 1}, LogitsWanted::kNone};
            FR_TRY(runner.forward({&entry, 1}));
        }
    }
    const double bytes = decode_cost(runner.model()).bytes;
    const auto chunks = static_cast<std::int64_t>(bytes) / kChunkBytes + 1;
    FR_ASSIGN(AlignedBuffer buffer, AlignedBuffer::allocate(static_cast<std::size_t>(chunks * kChunkBytes)));
    ThreadPool pool(loaded.threads);
    std::fill_n(buffer.as<std::uint8_t>(), buffer.size_bytes(), std::uint8_t{1});
    const ReadLoop loop = read_loop(loaded.isa);
    std::atomic<std::uint64_t> sink{0};
    std::vector<double> step_ms;
    std::vector<double> shares;
    std::vector<double> read_gb_per_s;
    for (std::int64_t step = -kWarmupSteps; step < options.steps; ++step) {
        std::vector<BatchEntry> entries;
        const TokenId token = static_cast<TokenId>(step + kWarmupSteps) % vocab;
        for (Sequence& sequence : sequences) entries.push_back({&sequence, {&token, 1}, LogitsWanted::kLast});
        const std::int64_t start_ns = now_ns();
        FR_TRY(runner.forward(entries));
        const std::int64_t between_ns = now_ns();
        const ThreadPool::Body body = [&](std::int64_t begin, std::int64_t end, int) {
            for (std::int64_t i = begin; i < end; ++i)
                sink.fetch_add(loop(buffer.data() + i * kChunkBytes, kChunkBytes, kReadStreams),
                               std::memory_order_relaxed);
        };
        pool.parallel_for(chunks, 1, body);
        const std::int64_t end_ns = now_ns();
        if (step < 0) continue;
        const double read_ns =
            static_cast<double>(end_ns - between_ns) * bytes / static_cast<double>(buffer.size_bytes());
        step_ms.push_back(static_cast<double>(between_ns - start_ns) * 1e-6);
        shares.push_back(100 * read_ns / static_cast<double>(between_ns - start_ns));
        read_gb_per_s.push_back(bytes / read_ns);
    }
    fmt::print(
        "{}: {} threads, {} sequences after {} tokens: a step takes {:.2f} ms; reading its {:.0f} MB at {:.1f} GB/s "
        "takes {:.0f}% of that (half of the steps: {:.0f} to {:.0f}%)\n",
        options.model, loaded.threads, options.sequences, options.prompt_tokens, median(step_ms), bytes * 1e-6,
        median(read_gb_per_s), median(shares), percentile(shares, 25), percentile(shares, 75));
    return {};
}

}  // namespace
}  // namespace frontier

int main(int argc, char** argv) {
    frontier::Options options;
    std::int64_t* const numbers[] = {&options.prompt_tokens, &options.steps, &options.sequences};
    bool good = argc >= 2 && argc <= 5;
    if (good) options.model = argv[1];
    for (int i = 2; good && i < argc; ++i) {
        const std::string_view text = argv[i];
        const auto parsed = std::from_chars(text.begin(), text.end(), *numbers[i - 2]);
        good =
            parsed.ec == std::errc() && parsed.ptr == text.end() && *numbers[i - 2] >= 1 && *numbers[i - 2] <= 100'000;
    }
    if (!good) {
        std::fprintf(stderr, "usage: decode_limit_bench MODEL [PROMPT_TOKENS [STEPS [SEQUENCES]]]\n");
        return 2;
    }
    const frontier::Status status = frontier::measure(options);
    if (status) return 0;
    std::fprintf(stderr, "%s\n", status.error().text.c_str());
    return 1;
}

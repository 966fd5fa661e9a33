#include "measure/roofline.h"

#include <algorithm>
#include <array>
#include <memory>

#include <sched.h>

#include "base/rng.h"
#include "kernels/peak.h"
#include "platform/clock.h"
#include "platform/memory.h"
#include "platform/thread_pool.h"
#include "platform/topology.h"

namespace frontier {
namespace {

// Long enough that starting the threads together (some us) and the end of the pass (up to 40 us when a thread has gone
// to sleep) stay below 0.3%, short enough that on a shared machine some pass is left alone. One sweep over the DRAM set
// may take longer; a pass is then one sweep.
constexpr double kPassSeconds = 0.02;
constexpr int kMinPasses = 3;

// How many sequential streams a thread reads at once. Which is best depends on the prefetchers, so all are tried and
// the best counts.
constexpr std::array<int, 3> kStreams = {1, 2, 4};
constexpr std::int64_t kWorkingSetMultiple = kReadStepBytes * kStreams.back();

// A DRAM working set is this many times the largest shared cache in all, and at least so much per thread: with several
// shared caches (one per chiplet) the topology knows the size of one only.
constexpr int kDramCacheMultiple = 4;
constexpr std::int64_t kDramBytesPerThread = std::int64_t{64} << 20;
constexpr std::int64_t kDramBytesTotal = std::int64_t{256} << 20;
constexpr std::int64_t kDramBytesMost = std::int64_t{8} << 30;

// Runs work(thread) on every thread of a pool at the same time and takes the time from the moment the last is ready
// to the moment the last is done.
class TogetherRunner {
public:
    explicit TogetherRunner(int threads) : pool_(threads) {}
    int threads() const { return pool_.threads(); }

    template <typename Work>
    double seconds(const Work& work) {
        const int threads = pool_.threads();
        std::atomic<int> waiting{threads};
        std::atomic<std::int64_t> start_ns{0};
        // One chunk for each thread: as a chunk ends only when all have begun, no thread can take two.
        pool_.parallel_for(threads, 1, [&](std::int64_t, std::int64_t, int worker) {
            if (waiting.fetch_sub(1) == 1) start_ns.store(now_ns());
            // Yielding lets the others in when there are fewer CPUs than threads.
            while (waiting.load() > 0) sched_yield();
            work(worker);
        });
        return ns_to_s(now_ns() - start_ns.load());
    }

private:
    ThreadPool pool_;
};

ReadLoop best_read_loop() {
    switch (best_isa()) {
        case Isa::kAmx:
        case Isa::kAvx512:
            return avx512::read_words;
        case Isa::kAvx2:
            return avx2::read_words;
        case Isa::kScalar:
            break;
    }
    return scalar::read_words;
}

struct PeakCase {
    Isa isa;
    std::string_view operation;
    PeakLoop loop;
};

std::vector<PeakCase> peak_cases() {
    std::vector<PeakCase> cases = {{Isa::kScalar, "f32_fma", scalar::peak_f32},
                                   {Isa::kScalar, "int8_dot", scalar::peak_int8}};
    const CpuFeatures& features = cpu_features();
    if (features.avx2) {
        cases.push_back({Isa::kAvx2, "f32_fma", avx2::peak_f32});
        cases.push_back({Isa::kAvx2, "int8_dot", avx2::peak_int8});
    }
    if (features.avx512) {
        cases.push_back({Isa::kAvx512, "f32_fma", avx512::peak_f32});
        cases.push_back({Isa::kAvx512, "int8_dot", features.avx512_vnni ? avx512::peak_int8_vnni : avx512::peak_int8});
        if (features.avx512_bf16) cases.push_back({Isa::kAvx512, "bf16_dot", avx512::peak_bf16});
    }
    if (is_supported(Isa::kAmx)) cases.push_back({Isa::kAmx, "bf16_tile", amx::peak_bf16});
    return cases;
}

// 1, 2, 3 .. 8, then powers of two, what runs use by default, and the largest.
std::vector<int> thread_counts(int max_threads) {
    std::vector<int> counts;
    for (int count = 1; count < max_threads; count = count < 8 ? count + 1 : count * 2) counts.push_back(count);
    counts.push_back(max_threads);
    const int used = topology().default_threads;
    if (used < max_threads && std::ranges::find(counts, used) == counts.end()) {
        counts.push_back(used);
        std::ranges::sort(counts);
    }
    return counts;
}

class Measurement {
public:
    explicit Measurement(const RooflineOptions& options) : options_(options) {}

    Result<Roofline> run() {
        result_.machine = machine_key();
        choose_dram_bytes();
        const int max_threads = std::max(1, options_.max_threads);
        for (const int threads : thread_counts(max_threads)) {
            TogetherRunner runner(threads);
            if (runner.threads() < threads) break;  // the system grants no more
            FR_TRY(bandwidth(runner));
            if (threads == 1 || threads == max_threads) FR_TRY(arithmetic(runner));
        }
        return result_;
    }

private:
    int passes() const { return std::max(kMinPasses, static_cast<int>(options_.seconds_per_point / kPassSeconds)); }

    bool interrupted() const { return options_.interrupted != nullptr && options_.interrupted->load(); }

    Status check_interrupt() const {
        if (!interrupted()) return {};
        return fail(ErrorCode::kInterrupted, "interrupted");
    }

    void say(std::string_view text) const {
        if (options_.progress) options_.progress(text);
    }

    static std::int64_t usable(std::int64_t bytes) {
        return std::max(kWorkingSetMultiple, bytes / kWorkingSetMultiple * kWorkingSetMultiple);
    }

    // A quarter of the available memory is the most that a measurement may take.
    void choose_dram_bytes() {
        const std::int64_t threads = std::max(1, options_.max_threads);
        const std::int64_t by_threads = kDramBytesPerThread * threads;
        const std::int64_t by_caches = std::min(kDramCacheMultiple * topology().l3_bytes, kDramBytesMost);
        dram_bytes_ = std::min(std::max({by_caches, by_threads, kDramBytesTotal}), memory_state().available_bytes / 4);
        buffers_.resize(static_cast<std::size_t>(threads));
    }

    // One buffer for each thread, filled by the thread that reads it: on a machine with several memory nodes the pages
    // then lie on its own.
    Status fill(TogetherRunner& runner, std::int64_t bytes_per_thread) {
        for (int thread = 0; thread < runner.threads(); ++thread) {
            FR_ASSIGN(buffers_[static_cast<std::size_t>(thread)],
                      AlignedBuffer::allocate(static_cast<std::size_t>(bytes_per_thread)));
        }
        constexpr std::int64_t kPieceWords = 1 << 20;  // some milliseconds between two looks at the interrupt
        runner.seconds([&](int thread) {
            auto* words = buffers_[static_cast<std::size_t>(thread)].as<std::uint64_t>();
            for (std::int64_t at = 0; at < bytes_per_thread / 8 && !interrupted(); at += kPieceWords) {
                const std::int64_t end = std::min(at + kPieceWords, bytes_per_thread / 8);
                for (std::int64_t i = at; i < end; ++i) {
                    words[i] = mix64(static_cast<std::uint64_t>(i));  // no two pages alike, so that none can be merged
                }
            }
        });
        return check_interrupt();
    }

    Status bandwidth(TogetherRunner& runner) {
        const Topology& machine = topology();
        const int threads = runner.threads();
        const std::int64_t l2 = usable(machine.l2_bytes / 2);
        const std::int64_t l3 = usable(machine.l3_bytes / 2 / threads);
        const std::int64_t dram = usable(dram_bytes_ / threads);
        FR_TRY(fill(runner, dram));
        FR_TRY(read_point(runner, "L2", l2));
        // An L3 share that would fit into L2 measures nothing new.
        if (l3 > 2 * machine.l2_bytes) FR_TRY(read_point(runner, "L3", l3));
        return read_point(runner, "DRAM", dram);
    }

    Status read_point(TogetherRunner& runner, std::string_view level, std::int64_t bytes_per_thread) {
        const int threads = runner.threads();
        const std::int64_t buffer_bytes = static_cast<std::int64_t>(buffers_[0].size_bytes());
        bytes_per_thread = std::min(bytes_per_thread, buffer_bytes);
        say(fmt::format("read bandwidth, {}, {} thread{}", level, threads, threads == 1 ? "" : "s"));
        const ReadLoop loop = best_read_loop();
        std::atomic<std::uint64_t> sink{0};
        double best_bytes_per_s = 0;
        for (const int streams : kStreams) {
            std::int64_t repeats = 1;
            const auto pass = [&] {
                return runner.seconds([&](int thread) {
                    const std::byte* data = buffers_[static_cast<std::size_t>(thread)].data();
                    std::uint64_t sum = 0;
                    for (std::int64_t i = 0; i < repeats && !interrupted(); ++i)
                        sum += loop(data, bytes_per_thread, streams);
                    sink.fetch_add(sum, std::memory_order_relaxed);
                });
            };
            FR_TRY(calibrate(pass, repeats));
            for (int i = 0; i < passes(); ++i) {
                FR_TRY(check_interrupt());
                const double bytes = static_cast<double>(bytes_per_thread) * static_cast<double>(repeats) * threads;
                best_bytes_per_s = std::max(best_bytes_per_s, bytes / pass());
            }
        }
        FR_TRY(check_interrupt());  // of the last pass: it may have been cut short
        result_.bandwidth.push_back({threads, std::string(level), bytes_per_thread * threads, best_bytes_per_s * 1e-9});
        return {};
    }

    // Doubles `repeats` until a pass takes a noticeable time, then scales it to a whole pass. The first runs also warm
    // caches and clock frequency.
    template <typename Pass>
    Status calibrate(const Pass& pass, std::int64_t& repeats) const {
        FR_TRY(check_interrupt());
        double seconds = pass();
        while (seconds < kPassSeconds / 8 && repeats < (std::int64_t{1} << 40)) {
            FR_TRY(check_interrupt());
            repeats *= 2;
            seconds = pass();
        }
        const double scale = kPassSeconds / std::max(seconds, 1e-6);
        repeats = std::max<std::int64_t>(1, static_cast<std::int64_t>(static_cast<double>(repeats) * scale));
        return {};
    }

    Status arithmetic(TogetherRunner& runner) {
        const int threads = runner.threads();
        for (const PeakCase& peak : peak_cases()) {
            say(fmt::format("{} {}, {} thread{}", isa_name(peak.isa), peak.operation, threads,
                            threads == 1 ? "" : "s"));
            std::int64_t iterations = 1024;
            std::atomic<std::uint64_t> sink{0};
            std::atomic<double> operations{0};
            const auto pass = [&] {
                operations.store(0);
                return runner.seconds([&](int) {
                    std::uint64_t value = 0;
                    operations.fetch_add(peak.loop(iterations, &value));
                    sink.fetch_xor(value);
                });
            };
            FR_TRY(calibrate(pass, iterations));
            double best = 0;
            for (int i = 0; i < passes(); ++i) {
                FR_TRY(check_interrupt());
                const double seconds = pass();
                best = std::max(best, operations.load() / seconds);
            }
            result_.arithmetic.push_back({peak.isa, std::string(peak.operation), threads, best * 1e-9});
        }
        return {};
    }

    const RooflineOptions& options_;
    Roofline result_;
    std::int64_t dram_bytes_ = 0;  // of all threads
    std::vector<AlignedBuffer> buffers_;
};

}  // namespace

double Roofline::read_gb_per_s(int threads) const {
    const BandwidthPoint* largest = nullptr;
    for (const BandwidthPoint& point : bandwidth) {
        if (point.level != "DRAM") continue;
        if (point.threads == threads) return point.gb_per_s;
        if (largest == nullptr || point.threads > largest->threads) largest = &point;
    }
    return largest == nullptr || threads < largest->threads ? 0 : largest->gb_per_s;
}

double Roofline::gflops(Isa isa, std::string_view operation, int threads) const {
    const ArithmeticPoint* below = nullptr;
    const ArithmeticPoint* above = nullptr;
    for (const ArithmeticPoint& point : arithmetic) {
        if (point.isa != isa || point.operation != operation) continue;
        if (point.threads <= threads && (below == nullptr || point.threads > below->threads)) below = &point;
        if (point.threads > threads && (above == nullptr || point.threads < above->threads)) above = &point;
    }
    if (below == nullptr) return 0;
    if (above == nullptr) return below->gflops;
    return std::min(below->gflops * threads / below->threads, std::max(below->gflops, above->gflops));
}

bool is_full_extent(const RooflineOptions& options) {
    return options.max_threads >= topology().default_threads &&
           options.seconds_per_point >= RooflineOptions::kDefaultSeconds;
}

Result<Roofline> measure_roofline(const RooflineOptions& options) {
    return Measurement(options).run();
}

}  // namespace frontier

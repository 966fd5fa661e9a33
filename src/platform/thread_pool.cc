// Protocol. One 64-bit word, `ticket`, holds {epoch : 32, chunks left : 32}.
//
// Publishing (caller): write the job, set `completed` to 0, store {epoch + 1, chunks}. Claiming (anyone): compare-and-
// swap the word from {e, n > 0} to {e, n - 1}; the claimed chunk is number chunks - n. Reporting: add the number of
// chunks run to `completed`. The call ends when `completed` equals the number of chunks.
//
// Why a late worker is harmless. A successful claim proves that at that moment the word held an unclaimed chunk of the
// job that is current, whatever the worker had read before and however many epochs it slept through (so there is no
// ABA problem: equal words mean equal rights). From the claim until its report the call cannot end, hence the job
// fields cannot be rewritten: they are read only in that interval. A worker without a claim reads nothing but the word
// and owes nothing, so one that the system does not schedule delays no call; one that is preempted inside a chunk
// delays the call by that chunk. The caller itself claims until nothing is left, so a pool whose workers never wake
// still finishes.
//
// Sleeping. A worker sleeps on the epoch half of the word, the caller on `completed`. Each raises its flag
// (`sleepers`, `caller_sleeps`), then lets the futex compare; the other side first writes the word, then reads the
// flag. All four are sequentially consistent, so at least one of the two sees the other.
#include "platform/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <climits>
#include <system_error>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/check.h"
#include "platform/clock.h"

namespace frontier {
namespace {

// How long to poll before sleeping. Waking a sleeper costs 5..50 us (a futex call, an inter-processor interrupt, in a
// virtual machine an exit), and the serial stretches between two operations of a forward pass are shorter than that;
// so polling this long keeps a busy pool awake, and wastes at most about one such cost when the pool goes idle. A
// neighbour on the same core loses at most this long per sleep.
constexpr std::int64_t kSpinNs = 40'000;
// With more threads than CPUs, whoever polls keeps the awaited thread off its CPU.
constexpr std::int64_t kOversubscribedSpinNs = 2'000;
// Pauses between two looks at the clock (one look costs about 25 ns, one pause 10..45 ns).
constexpr int kPausesPerClock = 16;

constexpr std::uint64_t kChunksMask = 0xFFFF'FFFFULL;
constexpr std::int64_t kMaxChunks = 0x7FFF'FFFF;

void cpu_pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

static_assert(sizeof(std::atomic<std::uint64_t>) == 8 && sizeof(std::atomic<std::uint32_t>) == 4);

// Blocks while *address == expected; may return early.
void futex_wait(const void* address, std::uint32_t expected) {
    syscall(SYS_futex, address, FUTEX_WAIT_PRIVATE, expected, nullptr, nullptr, 0);
}
void futex_wake(const void* address, int waiters) {
    syscall(SYS_futex, address, FUTEX_WAKE_PRIVATE, waiters, nullptr, nullptr, 0);
}

int usable_cpus() {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof(set), &set) != 0) return static_cast<int>(std::thread::hardware_concurrency());
    return CPU_COUNT(&set);
}

struct Job {
    const ThreadPool::Body* body = nullptr;
    std::int64_t count = 0;
    std::int64_t grain = 1;
    std::uint32_t chunks = 0;
};

}  // namespace

struct ThreadPool::State {
    // The word and the job share a line: a claim brings both.
    alignas(64) std::atomic<std::uint64_t> ticket{0};
    Job job;
    alignas(64) std::atomic<std::uint32_t> completed{0};
    std::atomic<std::uint32_t> caller_sleeps{0};
    alignas(64) std::atomic<std::int32_t> sleepers{0};
    std::atomic<bool> stop{false};
    std::int64_t spin_ns = kSpinNs;
    bool running = false;  // of the caller; finds reentrant calls
    std::vector<std::thread> workers;

    const void* epoch_address() const {
        const auto* bytes = reinterpret_cast<const char*>(&ticket);
        return std::endian::native == std::endian::little ? bytes + 4 : bytes;
    }

    // Takes one chunk of the current job if any is left; its index goes to `chunk`.
    bool claim(std::uint32_t& chunk) {
        std::uint64_t word = ticket.load(std::memory_order_relaxed);
        while ((word & kChunksMask) != 0) {
            if (ticket.compare_exchange_weak(word, word - 1, std::memory_order_acquire, std::memory_order_relaxed)) {
                chunk = job.chunks - static_cast<std::uint32_t>(word & kChunksMask);
                return true;
            }
        }
        return false;
    }

    // Runs chunks until none is left, then reports them.
    void work(int worker) {
        std::uint32_t chunk = 0;
        if (!claim(chunk)) return;
        const Job mine = job;
        std::uint32_t ran = 0;
        do {
            const std::int64_t begin = static_cast<std::int64_t>(chunk) * mine.grain;
            (*mine.body)(begin, begin + std::min(mine.grain, mine.count - begin), worker);
            ++ran;
        } while (claim(chunk));  // of the same job: it cannot end before the report below
        const std::uint32_t before = completed.fetch_add(ran, std::memory_order_seq_cst);
        if (worker != 0 && before + ran == mine.chunks && caller_sleeps.load(std::memory_order_seq_cst) != 0) {
            futex_wake(&completed, 1);
        }
    }

    // Polls `done` for at most spin_ns.
    template <typename Done>
    bool spin_until(const Done& done) const {
        std::int64_t start_ns = 0;
        for (;;) {
            for (int i = 0; i < kPausesPerClock; ++i) {
                if (done()) return true;
                cpu_pause();
            }
            const std::int64_t now = now_ns();
            if (start_ns == 0) start_ns = now;
            if (now - start_ns >= spin_ns) return done();
        }
    }

    void worker_loop(int worker) {
        for (;;) {
            const bool woken = spin_until([this] {
                return (ticket.load(std::memory_order_relaxed) & kChunksMask) != 0 ||
                       stop.load(std::memory_order_relaxed);
            });
            if (!woken) sleep();
            if (stop.load(std::memory_order_acquire)) return;
            work(worker);
        }
    }

    void sleep() {
        sleepers.fetch_add(1, std::memory_order_seq_cst);
        const std::uint64_t word = ticket.load(std::memory_order_seq_cst);
        if ((word & kChunksMask) == 0 && !stop.load(std::memory_order_seq_cst)) {
            futex_wait(epoch_address(), static_cast<std::uint32_t>(word >> 32));
        }
        sleepers.fetch_sub(1, std::memory_order_relaxed);
    }

    void publish(std::uint32_t chunks) {
        const std::uint64_t epoch = (ticket.load(std::memory_order_relaxed) >> 32) + 1;
        ticket.store((epoch << 32) | chunks, std::memory_order_seq_cst);
        const std::int32_t asleep = sleepers.load(std::memory_order_seq_cst);
        // The caller takes one chunk itself. Stopping wakes everybody.
        if (asleep > 0)
            futex_wake(epoch_address(), chunks == 0 ? INT_MAX : std::min(asleep, static_cast<int>(chunks) - 1));
    }

    void wait_for(std::uint32_t chunks) {
        const auto done = [&] { return completed.load(std::memory_order_acquire) == chunks; };
        if (spin_until(done)) return;
        caller_sleeps.store(1, std::memory_order_seq_cst);
        for (;;) {
            const std::uint32_t seen = completed.load(std::memory_order_seq_cst);
            if (seen == chunks) break;
            futex_wait(&completed, seen);
        }
        caller_sleeps.store(0, std::memory_order_relaxed);
    }

    void run(std::int64_t count, std::int64_t grain, const Body& body) {
        const auto chunks = static_cast<std::uint32_t>((count - 1) / grain + 1);
        job = Job{&body, count, grain, chunks};
        completed.store(0, std::memory_order_relaxed);
        publish(chunks);
        work(0);
        wait_for(chunks);
    }
};

ThreadPool::ThreadPool(int threads) : state_(std::make_unique<State>()) {
    FR_CHECK(threads >= 1);
    if (threads > usable_cpus()) state_->spin_ns = kOversubscribedSpinNs;
    // Workers inherit a full signal mask: signals belong to the threads that know what to do with them.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    state_->workers.reserve(static_cast<std::size_t>(threads - 1));
    for (int worker = 1; worker < threads; ++worker) {
        try {
            state_->workers.emplace_back([state = state_.get(), worker] { state->worker_loop(worker); });
        } catch (const std::system_error&) {
            break;  // the system's thread limit: the pool works with those it has, threads() tells
        }
        pthread_setname_np(state_->workers.back().native_handle(), fmt::format("worker-{}", worker).c_str());
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

ThreadPool::~ThreadPool() {
    state_->stop.store(true, std::memory_order_seq_cst);
    state_->publish(0);
    for (std::thread& worker : state_->workers) worker.join();
}

int ThreadPool::threads() const {
    return static_cast<int>(state_->workers.size()) + 1;
}

void ThreadPool::parallel_for(std::int64_t count, std::int64_t grain, const Body& body) {
    if (count <= 0) return;
    grain = std::max<std::int64_t>(grain, 1);
    FR_CHECK(!state_->running);
    state_->running = true;
    if (count <= grain) {
        body(0, count, 0);
    } else if (state_->workers.empty()) {
        for (std::int64_t begin = 0; begin < count; begin += std::min(grain, count - begin)) {
            body(begin, begin + std::min(grain, count - begin), 0);
        }
    } else if (grain > INT64_MAX / kMaxChunks || count <= grain * kMaxChunks) {
        state_->run(count, grain, body);
    } else {
        // More chunks than the counter holds: several rounds, each shifted to its place.
        const std::int64_t round = grain * kMaxChunks;
        for (std::int64_t base = 0; base < count; base += std::min(round, count - base)) {
            const Body shifted = [&body, base](std::int64_t begin, std::int64_t end, int worker) {
                body(base + begin, base + end, worker);
            };
            state_->run(std::min(round, count - base), grain, shifted);
        }
    }
    state_->running = false;
}

}  // namespace frontier

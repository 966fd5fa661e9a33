#include "platform/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/rng.h"

namespace frontier {
namespace {

#if defined(__SANITIZE_THREAD__)
constexpr int kReuse = 20'000;
#else
constexpr int kReuse = 100'000;
#endif

TEST(ThreadPool, CoversEveryIndexOnce) {
    for (const int threads : {1, 2, 3, 8}) {
        ThreadPool pool(threads);
        ASSERT_EQ(pool.threads(), threads);
        for (const std::int64_t count : {0, 1, 2, 3, 7, 8, 64, 1000, 1001}) {
            for (const std::int64_t grain : {-1, 0, 1, 2, 3, 7, 64, 999, 5000}) {
                std::vector<std::atomic<int>> visits(static_cast<std::size_t>(count));
                std::atomic<bool> sane{true};
                pool.parallel_for(count, grain, [&](std::int64_t begin, std::int64_t end, int worker) {
                    const std::int64_t limit = std::max<std::int64_t>(grain, 1);
                    if (begin < 0 || end > count || begin >= end || end - begin > limit || begin % limit != 0 ||
                        worker < 0 || worker >= threads) {
                        sane = false;
                        return;
                    }
                    for (std::int64_t i = begin; i < end; ++i) ++visits[static_cast<std::size_t>(i)];
                });
                ASSERT_TRUE(sane) << threads << " threads, count " << count << ", grain " << grain;
                for (const auto& visited : visits) ASSERT_EQ(visited.load(), 1) << "count " << count << " of " << grain;
            }
        }
    }
}

TEST(ThreadPool, ChunksOfEachWorkerAscend) {
    ThreadPool pool(4);
    std::vector<std::int64_t> last(4, -1);
    std::atomic<bool> ascending{true};
    pool.parallel_for(100'000, 3, [&](std::int64_t begin, std::int64_t, int worker) {
        std::int64_t& previous = last[static_cast<std::size_t>(worker)];
        if (begin <= previous) ascending = false;
        previous = begin;
    });
    EXPECT_TRUE(ascending);
}

// Ordinary memory written by any worker is read by the caller, then by other workers in the next call: with the
// thread sanitizer this proves the ordering, without it a lost write shows as a wrong sum.
TEST(ThreadPool, WritesAreVisibleAcrossCallsReusedManyTimes) {
    ThreadPool pool(2);
    constexpr std::int64_t kCount = 64;
    std::vector<std::int64_t> values(kCount, 0);
    for (int round = 0; round < kReuse; ++round) {
        // Neighbouring elements in turn, so that work moves between the threads.
        pool.parallel_for(kCount, 1 + round % 5, [&](std::int64_t begin, std::int64_t end, int) {
            for (std::int64_t i = begin; i < end; ++i) values[static_cast<std::size_t>(i)] += i;
        });
        if (round % 1000 == 0) {
            for (std::int64_t i = 0; i < kCount; ++i) ASSERT_EQ(values[static_cast<std::size_t>(i)], i * (round + 1));
        }
    }
    for (std::int64_t i = 0; i < kCount; ++i) EXPECT_EQ(values[static_cast<std::size_t>(i)], i * kReuse);
}

// Jobs on the stack of ever different shape, with no pause between: late workers meet jobs that are already gone.
TEST(ThreadPool, LateWorkersNeverTouchFinishedJobs) {
    ThreadPool pool(8);
    RandomStream random(1);
    for (int round = 0; round < kReuse / 4; ++round) {
        const auto count = static_cast<std::int64_t>(random.next() % 20);
        auto sum =
            std::make_unique<std::atomic<std::int64_t>>(0);  // freed each round: a late touch is a use after free
        {
            const ThreadPool::Body body = [&sum](std::int64_t begin, std::int64_t end, int) {
                for (std::int64_t i = begin; i < end; ++i) sum->fetch_add(i + 1, std::memory_order_relaxed);
            };
            pool.parallel_for(count, 1 + static_cast<std::int64_t>(random.next() % 3), body);
        }
        ASSERT_EQ(sum->load(), count * (count + 1) / 2) << "round " << round;
    }
}

// As above with chunks of 0..2 us, so that workers claim, finish and miss jobs at every possible moment, and with the
// state of each job in ordinary memory.
TEST(ThreadPool, WorkersJoinAndMissJobsOfUnevenLength) {
    ThreadPool pool(3);
    RandomStream random(3);
    std::int64_t by_workers = 0;
    for (int round = 0; round < kReuse / 4; ++round) {
        const auto count = static_cast<std::int64_t>(1 + random.next() % 12);
        const std::uint64_t seed = random.next();
        std::vector<int> owner(static_cast<std::size_t>(count), -1);
        pool.parallel_for(count, 1, [&owner, seed](std::int64_t begin, std::int64_t, int worker) {
            const auto turns = static_cast<int>(mix64(seed + static_cast<std::uint64_t>(begin)) % 1000);
            for (int i = 0; i < turns; ++i) std::atomic_signal_fence(std::memory_order_seq_cst);  // keeps the loop
            owner[static_cast<std::size_t>(begin)] = worker;
        });
        for (const int worker : owner) {
            ASSERT_GE(worker, 0);
            if (worker > 0) ++by_workers;
        }
    }
    // On a loaded machine the caller may do nearly all, but over thousands of jobs not all.
    EXPECT_GT(by_workers, 0);
}

// Pauses long enough for the workers to fall asleep, of lengths around the spin time, where sleeping races with new
// work. A lost wake-up shows only where a worker is needed: every chunk waits until all have arrived.
TEST(ThreadPool, WakesSleepersAlways) {
    constexpr int kThreads = 3;
    ThreadPool pool(kThreads);
    RandomStream random(2);
    for (int round = 0; round < 400; ++round) {
        std::this_thread::sleep_for(std::chrono::microseconds(random.next() % 120));
        std::atomic<int> arrived{0};
        pool.parallel_for(kThreads, 1, [&](std::int64_t, std::int64_t, int) {
            ++arrived;
            while (arrived.load() < kThreads) std::this_thread::yield();
        });
        ASSERT_EQ(arrived.load(), kThreads);
    }
}

// The caller sleeps when the last chunk runs long on another worker; it must be woken.
TEST(ThreadPool, CallerWaitsForALongChunk) {
    ThreadPool pool(2);
    for (int round = 0; round < 20; ++round) {
        std::atomic<int> arrived{0};
        bool slow_done = false;
        pool.parallel_for(2, 1, [&](std::int64_t, std::int64_t, int worker) {
            ++arrived;
            while (arrived.load() < 2) std::this_thread::yield();
            if (worker == 1) {
                std::this_thread::sleep_for(std::chrono::milliseconds(2));
                slow_done = true;
            }
        });
        ASSERT_TRUE(slow_done);
    }
}

TEST(ThreadPool, OversubscriptionMakesProgress) {
    const int threads = 4 * static_cast<int>(std::max(2U, std::thread::hardware_concurrency()));
    ThreadPool pool(threads);
    std::atomic<std::int64_t> total{0};
    for (int round = 0; round < 2000; ++round) {
        pool.parallel_for(100, 1, [&](std::int64_t begin, std::int64_t end, int) { total += end - begin; });
    }
    EXPECT_EQ(total.load(), 200'000);
}

TEST(ThreadPool, TwoPoolsAtOnceAreIndependent) {
    std::atomic<std::int64_t> totals[2] = {0, 0};
    const auto drive = [&totals](int which) {
        ThreadPool pool(3);
        for (int round = 0; round < 2000; ++round) {
            pool.parallel_for(10, 1, [&](std::int64_t begin, std::int64_t end, int) { totals[which] += end - begin; });
        }
    };
    std::thread other([&] { drive(1); });
    drive(0);
    other.join();
    EXPECT_EQ(totals[0].load(), 20'000);
    EXPECT_EQ(totals[1].load(), 20'000);
}

TEST(ThreadPool, MayBeCalledFromDifferentThreadsInTurn) {
    ThreadPool pool(2);
    std::int64_t total = 0;
    for (int round = 0; round < 50; ++round) {
        std::thread([&] {
            std::vector<std::int64_t> parts(10, 0);
            pool.parallel_for(
                10, 1, [&](std::int64_t begin, std::int64_t, int) { parts[static_cast<std::size_t>(begin)] = begin; });
            for (const std::int64_t part : parts) total += part;
        }).join();
    }
    EXPECT_EQ(total, 50 * 45);
}

TEST(ThreadPool, DestructionSpinningSleepingOrNeverUsed) {
    for (int round = 0; round < 100; ++round) {
        ThreadPool pool(1 + round % 6);
        if (round % 3 != 0) pool.parallel_for(8, 1, [](std::int64_t, std::int64_t, int) {});
        if (round % 3 == 2) std::this_thread::sleep_for(std::chrono::milliseconds(1));  // past the spin
    }
}

TEST(ThreadPool, CountsNearTheLimitOfInt64) {
    ThreadPool pool(2);
    constexpr std::int64_t kCount = INT64_MAX;
    std::atomic<std::int64_t> total{0};
    std::atomic<int> calls{0};
    pool.parallel_for(kCount, kCount / 3, [&](std::int64_t begin, std::int64_t end, int) {
        total += end - begin;
        ++calls;
    });
    EXPECT_EQ(total.load(), kCount);
    EXPECT_EQ(calls.load(), 4);
}

}  // namespace
}  // namespace frontier

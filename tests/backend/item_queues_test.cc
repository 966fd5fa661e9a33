#include "backend/item_queues.h"

#include <algorithm>
#include <array>
#include <thread>

#include <gtest/gtest.h>

namespace frontier {
namespace {

std::vector<std::int64_t> take_all(ItemQueues& queues, int worker, std::int64_t items) {
    std::vector<std::int64_t> taken;
    for (std::int64_t i = 0; i < items; ++i) taken.push_back(queues.take(worker));
    return taken;
}

TEST(ItemQueues, OwnItemsInOrderThenTheOthersFromTheirEnds) {
    ItemQueues queues;
    queues.assign(std::array<std::int64_t, 3>{2, 4, 7});
    EXPECT_EQ(take_all(queues, 1, 7), (std::vector<std::int64_t>{2, 3, 6, 5, 4, 1, 0}));
    queues.assign(std::array<std::int64_t, 3>{0, 0, 2});
    EXPECT_EQ(take_all(queues, 0, 2), (std::vector<std::int64_t>{1, 0}));
}

TEST(ItemQueues, AnOwnerGoesOnBesideThieves) {
    ItemQueues queues;
    queues.assign(std::array<std::int64_t, 2>{4, 4});
    EXPECT_EQ(queues.take(0), 0);
    EXPECT_EQ(queues.take(1), 3);
    EXPECT_EQ(queues.take(0), 1);
    EXPECT_EQ(queues.take(1), 2);
}

TEST(ItemQueues, EveryItemIsTakenOnce) {
    constexpr int kWorkers = 4;
    constexpr std::int64_t kItems = 997;
    ItemQueues queues;
    for (int round = 0; round < 20; ++round) {
        // The last worker owns nothing, the first nearly everything in odd rounds: thieves and owners meet.
        queues.assign(round % 2 == 0 ? std::array<std::int64_t, kWorkers>{250, 500, kItems, kItems}
                                     : std::array<std::int64_t, kWorkers>{990, 995, kItems, kItems});
        std::atomic<std::int64_t> claims{kItems};
        std::array<std::vector<std::int64_t>, kWorkers> taken;
        std::vector<std::thread> threads;
        for (int w = 0; w < kWorkers; ++w) {
            threads.emplace_back([&, w] {
                while (claims.fetch_sub(1) > 0) taken[w].push_back(queues.take(w));
            });
        }
        for (std::thread& thread : threads) thread.join();
        std::vector<std::int64_t> all;
        for (const auto& items : taken) all.insert(all.end(), items.begin(), items.end());
        std::ranges::sort(all);
        ASSERT_EQ(all.size(), static_cast<std::size_t>(kItems));
        for (std::int64_t i = 0; i < kItems; ++i) ASSERT_EQ(all[i], i);
    }
}

}  // namespace
}  // namespace frontier

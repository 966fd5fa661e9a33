#include "engine/page_pool.h"

#include <gtest/gtest.h>

#include "base/rng.h"

namespace frontier {
namespace {

TEST(PagePool, HandsOutEachPageOnceAndThenNone) {
    PagePool pool(3);
    EXPECT_EQ(pool.allocate(), 0);
    EXPECT_EQ(pool.allocate(), 1);
    EXPECT_EQ(pool.allocate(), 2);
    EXPECT_EQ(pool.allocate(), std::nullopt);
    EXPECT_EQ(pool.free_pages(), 0);
    pool.drop_reference(1);
    EXPECT_EQ(pool.allocate(), 1);
}

TEST(PagePool, SharedPageIsFreeOnlyAfterTheLastReference) {
    PagePool pool(1);
    const PageId page = *pool.allocate();
    pool.add_reference(page);
    pool.drop_reference(page);
    EXPECT_EQ(pool.free_pages(), 0);
    pool.drop_reference(page);
    EXPECT_EQ(pool.free_pages(), 1);
}

TEST(PagePool, StaysConsistentUnderRandomOperations) {
    constexpr int kPages = 37;
    PagePool pool(kPages);
    std::vector<PageId> held;  // one element per reference
    RandomStream random(20240607);
    for (int i = 0; i < 100'000; ++i) {
        const auto choice = random.next() % 3;
        if (choice == 0) {
            if (const auto page = pool.allocate()) held.push_back(*page);
        } else if (!held.empty()) {
            const std::size_t at = random.next() % held.size();
            if (choice == 1 && held.size() < 1000) {
                pool.add_reference(held[at]);
                held.push_back(held[at]);
            } else {
                pool.drop_reference(held[at]);
                held[at] = held.back();
                held.pop_back();
            }
        }
        if (i % 1000 == 0) {
            ASSERT_TRUE(pool.check_integrity()) << "after operation " << i;
        }
    }
    for (const PageId page : held) pool.drop_reference(page);
    EXPECT_TRUE(pool.check_integrity());
    EXPECT_EQ(pool.free_pages(), kPages);
}

}  // namespace
}  // namespace frontier

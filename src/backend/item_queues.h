// Which item of a parallel loop a worker takes: the pool says how many, this says which. Each worker has a stretch of
// neighbouring items of its own, so that its reads go on where they ended and what is fetched ahead is what comes next;
// a worker that is through takes from the ends of the others' stretches, so that nobody waits for one that sleeps.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "base/check.h"

namespace frontier {

class ItemQueues {
public:
    // Worker w owns the items [ends[w - 1], ends[w]), of fewer than 2^32. Not while items are being taken.
    void assign(std::span<const std::int64_t> ends) {
        if (queues_.size() != ends.size()) queues_ = std::vector<Queue>(ends.size());
        std::uint64_t begin = 0;
        for (std::size_t w = 0; w < ends.size(); ++w) {
            const auto end = static_cast<std::uint64_t>(ends[w]);
            queues_[w].range.store(end << 32 | begin, std::memory_order_relaxed);
            begin = end;
        }
    }

    // To be called once for each item: then there always is one. (What is published with the items, the pool orders.)
    std::int64_t take(int worker) {
        const auto own = static_cast<std::size_t>(worker);
        for (std::size_t i = 0; i < queues_.size(); ++i) {
            std::atomic<std::uint64_t>& range = queues_[(own + i) % queues_.size()].range;
            std::uint64_t seen = range.load(std::memory_order_relaxed);
            for (std::uint32_t begin = low(seen), end = high(seen); begin < end; begin = low(seen), end = high(seen)) {
                const std::uint64_t left = i == 0 ? seen + 1 : seen - (std::uint64_t{1} << 32);
                if (range.compare_exchange_weak(seen, left, std::memory_order_relaxed)) return i == 0 ? begin : end - 1;
            }
        }
        FR_CHECK(false);  // taken more often than there are items
        return 0;
    }

private:
    static std::uint32_t low(std::uint64_t range) { return static_cast<std::uint32_t>(range); }
    static std::uint32_t high(std::uint64_t range) { return static_cast<std::uint32_t>(range >> 32); }

    struct alignas(64) Queue {
        std::atomic<std::uint64_t> range{0};  // {end : 32, begin : 32}
    };
    std::vector<Queue> queues_;
};

}  // namespace frontier

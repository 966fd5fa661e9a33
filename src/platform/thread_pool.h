// A persistent pool. The calling thread is worker 0; the others spin briefly for work and then sleep on a futex.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace frontier {

class ThreadPool {
public:
    // `threads` >= 1 counts the caller. Creates threads - 1 workers.
    explicit ThreadPool(int threads);
    ~ThreadPool();
    ThreadPool(const ThreadPool&) = delete;
    ThreadPool& operator=(const ThreadPool&) = delete;

    int threads() const;

    // Calls body(begin, end, worker) over disjoint ranges that cover [0, count); chunks of at most `grain` items are
    // handed out by an atomic counter, in ascending order. Returns when all are done; their writes are then visible
    // to the caller. One call at a time, from one thread at a time; not reentrant. `body` must not throw.
    using Body = std::function<void(std::int64_t begin, std::int64_t end, int worker)>;
    void parallel_for(std::int64_t count, std::int64_t grain, const Body& body);

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace frontier

// Cutting work into pieces, and when a loop over rows is worth a barrier.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>

#include "platform/thread_pool.h"

namespace frontier {

inline std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
    return (a + b - 1) / b;
}

// Elementwise work below this many floats (2 to 4 us on one core) costs less than waking and awaiting the others.
inline constexpr std::int64_t kSerialFloats = 16 << 10;

// body(begin, end, worker) over [0, rows), each row `floats_per_row` of elementwise work; serial when small.
template <typename Body>
void for_rows(ThreadPool& pool, std::int64_t rows, std::int64_t floats_per_row, const Body& body) {
    if (pool.threads() == 1 || rows * floats_per_row <= kSerialFloats) {
        body(0, rows, 0);
        return;
    }
    const std::int64_t grain = std::max<std::int64_t>(1, kSerialFloats / 2 / std::max<std::int64_t>(1, floats_per_row));
    pool.parallel_for(rows, grain, std::ref(body));
}

}  // namespace frontier

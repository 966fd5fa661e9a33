// The clock of this CPU, for figures per cycle: the nominal frequency says little.
#pragma once

#include <algorithm>
#include <cstdint>
#include <ctime>

namespace frontier {

inline double thread_seconds() {
    timespec t{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

// Cycles per second of CPU time: the best of several short chains.
inline double cycles_per_second() {
    double best = 0;
    for (int repeat = 0; repeat < 20; ++repeat) {
        constexpr int kAdds = 1'000'000;
        std::uint64_t x = 1;
        const double start = thread_seconds();
        for (int i = 0; i < kAdds / 10; ++i)
            asm volatile(
                "add %0, %0\n add %0, %0\n add %0, %0\n add %0, %0\n add %0, %0\n"
                "add %0, %0\n add %0, %0\n add %0, %0\n add %0, %0\n add %0, %0\n"
                : "+r"(x));
        best = std::max(best, kAdds / (thread_seconds() - start));
    }
    return best;
}

}  // namespace frontier

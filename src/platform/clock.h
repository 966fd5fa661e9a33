// The monotonic clock, in nanoseconds.
#pragma once

#include <chrono>
#include <cstdint>

namespace frontier {

inline std::int64_t now_ns() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}
inline double ns_to_ms(std::int64_t ns) {
    return static_cast<double>(ns) * 1e-6;
}
inline double ns_to_s(std::int64_t ns) {
    return static_cast<double>(ns) * 1e-9;
}

}  // namespace frontier

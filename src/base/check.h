// Invariants of our own code. No check may be reachable from a file, a flag or a client: those get an Error.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace frontier {

[[noreturn]] inline void check_failed(const char* expression, const char* file, int line) {
    std::fprintf(stderr, "frontier: internal error: %s does not hold at %s:%d\n", expression, file, line);
    std::abort();
}

}  // namespace frontier

#define FR_CHECK(condition)                                                         \
    do {                                                                            \
        if (!(condition)) ::frontier::check_failed(#condition, __FILE__, __LINE__); \
    } while (false)

#ifdef NDEBUG
#define FR_DCHECK(condition) \
    do {                     \
    } while (false)
#else
#define FR_DCHECK(condition) FR_CHECK(condition)
#endif

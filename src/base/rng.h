// Counter-based random streams: the i-th number of a stream needs no state, so parallel generation is deterministic.
#pragma once

#include <cstdint>

namespace frontier {

// SplitMix64's output function (Steele, Lea, Flood 2014): a bijection that passes the usual batteries on counters.
constexpr std::uint64_t mix64(std::uint64_t x) {
    x += 0x9E3779B97F4A7C15ULL;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
    return x ^ (x >> 31);
}

// A stream is named by a seed and an index (a tensor, a request); copies are independent positions in it.
class RandomStream {
public:
    explicit constexpr RandomStream(std::uint64_t seed, std::uint64_t stream = 0) : key_(mix64(seed ^ mix64(stream))) {}

    constexpr std::uint64_t at(std::uint64_t counter) const { return mix64(key_ + counter * 0xD1342543DE82EF95ULL); }
    constexpr std::uint64_t next() { return at(counter_++); }
    // Uniform in [0, 1) with 53 bits.
    constexpr double next_double() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
    constexpr std::uint64_t counter() const { return counter_; }
    constexpr void seek(std::uint64_t counter) { counter_ = counter; }

private:
    std::uint64_t key_;
    std::uint64_t counter_ = 0;
};

}  // namespace frontier

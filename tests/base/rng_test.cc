#include "base/rng.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <set>

namespace frontier {
namespace {

// The reference generator seeded with 0 returns mix64(0), mix64(gamma), mix64(2 gamma), ... (splitmix64.c, Vigna).
TEST(Mix64, ReferenceSequence) {
    constexpr std::uint64_t kGamma = 0x9E3779B97F4A7C15ULL;
    EXPECT_EQ(mix64(0), 0xE220A8397B1DCDAFULL);
    EXPECT_EQ(mix64(kGamma), 0x6E789E6AA1B965F4ULL);
    EXPECT_EQ(mix64(2 * kGamma), 0x06C45D188009454FULL);
}

TEST(RandomStream, PositionsAreIndependentOfOrder) {
    RandomStream stream(7, 3);
    std::array<std::uint64_t, 100> drawn{};
    for (auto& value : drawn) value = stream.next();
    EXPECT_EQ(stream.counter(), 100U);
    for (std::size_t i = drawn.size(); i-- > 0;) EXPECT_EQ(stream.at(i), drawn[i]);
    stream.seek(42);
    EXPECT_EQ(stream.next(), drawn[42]);
}

TEST(RandomStream, SeedsAndStreamsDiffer) {
    std::set<std::uint64_t> firsts;
    for (std::uint64_t seed = 0; seed < 100; ++seed)
        for (std::uint64_t stream = 0; stream < 100; ++stream) firsts.insert(RandomStream(seed, stream).at(0));
    EXPECT_EQ(firsts.size(), 10'000U);  // a collision of 64 bits among 10^4 has a chance of 3e-12
    EXPECT_NE(RandomStream(1, 2).at(0), RandomStream(2, 1).at(0));
}

// The stream is fixed, so the bounds cannot flake; they are five standard deviations wide.
TEST(RandomStream, DoublesAreUniform) {
    constexpr int kCount = 100'000;
    RandomStream stream(11);
    double sum = 0;
    double squares = 0;
    std::array<int, 16> buckets{};
    for (int i = 0; i < kCount; ++i) {
        const double x = stream.next_double();
        ASSERT_GE(x, 0.0);
        ASSERT_LT(x, 1.0);
        sum += x;
        squares += x * x;
        ++buckets[static_cast<std::size_t>(x * 16)];
    }
    // Var(x) = 1/12, Var(x^2) = 4/45, Var(count of a bucket) = n/16 * 15/16.
    EXPECT_NEAR(sum / kCount, 0.5, 5 * std::sqrt(1.0 / 12 / kCount));
    EXPECT_NEAR(squares / kCount, 1.0 / 3, 5 * std::sqrt(4.0 / 45 / kCount));
    for (const int count : buckets) EXPECT_NEAR(count, kCount / 16.0, 5 * std::sqrt(kCount * 15.0 / 256));
}

// A change of one bit of the counter changes each bit of the output about half the time.
TEST(RandomStream, CountersAvalanche) {
    constexpr int kCount = 4096;
    const RandomStream stream(5);
    for (int bit = 0; bit < 64; bit += 7) {
        int changed = 0;
        for (std::uint64_t i = 0; i < kCount; ++i)
            changed += std::popcount(stream.at(i) ^ stream.at(i ^ (std::uint64_t{1} << bit)));
        // Half of 64 x 4096 bits, standard deviation sqrt(64 x 4096) / 2.
        EXPECT_NEAR(changed, 32.0 * kCount, 5 * std::sqrt(64.0 * kCount) / 2) << "counter bit " << bit;
    }
}

}  // namespace
}  // namespace frontier

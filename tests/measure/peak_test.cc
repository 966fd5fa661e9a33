// The peak loops do what they count: a loop that the compiler shortened would report a wrong sum or a wrong count.
#include "kernels/peak.h"

#include <bit>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "base/rng.h"
#include "platform/cpu_features.h"
#include "platform/memory.h"

namespace frontier {
namespace {

// The sum of 64-bit words that the header promises, from the number of operations: a 64-bit word holds two lanes, each
// of them worth `lane_operations` operations a round.
std::uint64_t expected_sum(double operations, std::int64_t iterations, int lane_operations, std::uint32_t lane_value) {
    const auto words = static_cast<std::uint64_t>(operations / static_cast<double>(iterations) / lane_operations / 2);
    return words * ((static_cast<std::uint64_t>(lane_value) << 32) | lane_value);
}

void expect_int8(PeakLoop loop, int lane_operations) {
    constexpr std::int64_t kRounds = 1001;
    std::uint64_t sum = 0;
    const double operations = loop(kRounds, &sum);
    EXPECT_GT(operations, 0);
    EXPECT_EQ(sum, expected_sum(operations, kRounds, lane_operations, 60 * kRounds));
}

void expect_float(PeakLoop loop, int lane_operations, float value_per_round) {
    constexpr std::int64_t kRounds = 1001;
    std::uint64_t sum = 0;
    const double operations = loop(kRounds, &sum);
    EXPECT_GT(operations, 0);
    EXPECT_EQ(sum, expected_sum(operations, kRounds, lane_operations,
                                std::bit_cast<std::uint32_t>(value_per_round * static_cast<float>(kRounds))));
}

// 4 products in a 32-bit lane are 8 operations; the SSE2 loop adds two such groups of two.
constexpr int kInt8LaneOperations = 8;

TEST(PeakLoops, Scalar) {
    expect_float(scalar::peak_f32, 2, 1.0F);
    expect_int8(scalar::peak_int8, kInt8LaneOperations);
}

// The loops of what this host has.
TEST(PeakLoops, VectorSets) {
    const CpuFeatures& features = cpu_features();
    if (features.avx2) {
        expect_float(avx2::peak_f32, 2, 1.0F);
        expect_int8(avx2::peak_int8, kInt8LaneOperations);
    }
    if (features.avx512) {
        expect_float(avx512::peak_f32, 2, 1.0F);
        expect_int8(avx512::peak_int8, kInt8LaneOperations);
    }
    if (features.avx512_vnni) expect_int8(avx512::peak_int8_vnni, kInt8LaneOperations);
    if (features.avx512_bf16) expect_float(avx512::peak_bf16, 4, 2.0F);
    if (is_supported(Isa::kAmx)) expect_float(amx::peak_bf16, 64, 32.0F);  // 32 products to each sum
}

void expect_reads(ReadLoop loop) {
    for (const int streams : {1, 2, 3, 4, 8}) {
        for (const int steps : {1, 2, 7}) {
            const std::int64_t bytes = kReadStepBytes * streams * steps;
            AlignedBuffer buffer = AlignedBuffer::allocate(static_cast<std::size_t>(bytes)).value();
            auto* words = buffer.as<std::uint64_t>();
            std::uint64_t sum = 0;
            for (std::int64_t i = 0; i < bytes / 8; ++i) {
                words[i] = mix64(static_cast<std::uint64_t>(i));
                sum += words[i];
            }
            EXPECT_EQ(loop(buffer.data(), bytes, streams), sum) << streams << " streams of " << steps;
        }
    }
}

TEST(ReadLoops, SumEveryWord) {
    expect_reads(scalar::read_words);
    if (cpu_features().avx2) expect_reads(avx2::read_words);
    if (cpu_features().avx512) expect_reads(avx512::read_words);
}

}  // namespace
}  // namespace frontier

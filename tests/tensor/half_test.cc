// The scalar conversions against the compiler's own _Float16 (soft-float or hardware, but not ours) and, where the
// CPU has them, the F16C instructions.
#include "tensor/half.h"

#include <gtest/gtest.h>
#include <immintrin.h>

#include <cmath>
#include <cstring>

#include "base/rng.h"

namespace frontier {
namespace {

float compiler_f32(std::uint16_t bits) {
    _Float16 value;
    std::memcpy(&value, &bits, sizeof bits);
    return static_cast<float>(value);
}

std::uint16_t compiler_f16(float x) {
    const auto value = static_cast<_Float16>(x);
    std::uint16_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}

__attribute__((target("f16c"))) float instruction_f32(std::uint16_t bits) {
    return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(bits)));
}

__attribute__((target("f16c"))) std::uint16_t instruction_f16(float x) {
    const __m128i halves = _mm_cvtps_ph(_mm_set_ss(x), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    return static_cast<std::uint16_t>(_mm_cvtsi128_si32(halves));
}

bool has_f16c() {
    return __builtin_cpu_supports("f16c") != 0;
}

std::uint32_t bits_of(float x) {
    return std::bit_cast<std::uint32_t>(x);
}

using Check = void (*)(float);

void expect_rounds_like_compiler(float x) {
    const std::uint16_t ours = to_f16(x).bits;
    if (!std::isnan(x)) {
        ASSERT_EQ(ours, compiler_f16(x)) << std::hexfloat << x;
        return;
    }
    ASSERT_EQ(ours & 0x7E00, 0x7E00) << std::hex << bits_of(x);  // a quiet NaN with the sign kept
    ASSERT_EQ(ours >> 15, bits_of(x) >> 31);
}

void expect_rounds_like_instruction(float x) {
    ASSERT_EQ(to_f16(x).bits, instruction_f16(x)) << std::hex << bits_of(x);
}

// Every f16 value, the ties between any two, the f32 neighbours of both, and a million random bit patterns.
void check_narrowing(Check check) {
    for (std::uint32_t i = 0; i < 65536 && !::testing::Test::HasFatalFailure(); ++i) {
        const float x = to_f32(F16{static_cast<std::uint16_t>(i)});
        if (std::isnan(x)) continue;
        check(x);
        check(std::nextafter(x, -INFINITY));
        check(std::nextafter(x, INFINITY));
        const float next = to_f32(F16{static_cast<std::uint16_t>(i + 1)});
        if (!std::isfinite(x) || !std::isfinite(next)) continue;
        const float tie = 0.5F * (x + next);  // exact: 12 significant bits
        check(tie);
        check(std::nextafter(tie, -INFINITY));
        check(std::nextafter(tie, INFINITY));
    }
    RandomStream random(1);
    for (int i = 0; i < 1'000'000 && !::testing::Test::HasFatalFailure(); ++i)
        check(std::bit_cast<float>(static_cast<std::uint32_t>(random.next() >> 32)));
}

TEST(F16, WidensLikeTheCompiler) {
    for (std::uint32_t i = 0; i < 65536; ++i) {
        const auto bits = static_cast<std::uint16_t>(i);
        const float ours = to_f32(F16{bits});
        if (std::isnan(ours)) {
            ASSERT_TRUE(std::isnan(compiler_f32(bits))) << std::hex << i;
        } else {
            ASSERT_EQ(bits_of(ours), bits_of(compiler_f32(bits))) << std::hex << i;
        }
    }
}

TEST(F16, WidensLikeTheInstruction) {
    if (!has_f16c()) GTEST_SKIP() << "no F16C on this CPU";
    for (std::uint32_t i = 0; i < 65536; ++i) {
        const auto bits = static_cast<std::uint16_t>(i);
        ASSERT_EQ(bits_of(to_f32(F16{bits})), bits_of(instruction_f32(bits))) << std::hex << i;
    }
}

TEST(F16, AllValuesSurviveTheRoundTrip) {
    for (std::uint32_t i = 0; i < 65536; ++i) {
        const auto bits = static_cast<std::uint16_t>(i);
        const bool nan = (i & 0x7FFF) > 0x7C00;
        ASSERT_EQ(to_f16(to_f32(F16{bits})).bits, nan ? bits | 0x0200 : bits) << std::hex << i;
    }
}

TEST(F16, NarrowsLikeTheCompiler) {
    check_narrowing(expect_rounds_like_compiler);
}

TEST(F16, NarrowsLikeTheInstruction) {
    if (!has_f16c()) GTEST_SKIP() << "no F16C on this CPU";
    check_narrowing(expect_rounds_like_instruction);
}

TEST(F16, EdgesOfTheRange) {
    // Beyond the largest: 65520 is the tie with infinity.
    EXPECT_EQ(to_f16(65519.99F).bits, 0x7BFF);
    EXPECT_EQ(to_f16(65520.0F).bits, 0x7C00);
    EXPECT_EQ(to_f16(-1e30F).bits, 0xFC00);
    EXPECT_EQ(to_f16(0x1p-25F).bits, 0x0000);  // the tie with zero
    EXPECT_EQ(to_f16(std::nextafter(0x1p-25F, 1.0F)).bits, 0x0001);
}

TEST(BF16, AllValuesWidenAndSurviveTheRoundTrip) {
    for (std::uint32_t i = 0; i < 65536; ++i) {
        const auto bits = static_cast<std::uint16_t>(i);
        const float x = to_f32(BF16{bits});
        ASSERT_EQ(bits_of(x), i << 16);
        ASSERT_EQ(to_bf16(x).bits, std::isnan(x) ? bits | 0x0040 : bits) << std::hex << i;
    }
}

// Rounding to nearest even, decided here in exact arithmetic: doubles hold the distances to both candidates.
TEST(BF16, RoundsToNearestEven) {
    RandomStream random(2);
    for (int i = 0; i < 1'000'000; ++i) {
        // A third of them ties or their neighbours.
        auto bits = static_cast<std::uint32_t>(random.next() >> 32);
        if (i % 3 == 0) bits = (bits & 0xFFFF0000U) + 0x7FFFU + static_cast<std::uint32_t>(random.next() % 3);
        const float x = std::bit_cast<float>(bits);
        const std::uint16_t ours = to_bf16(x).bits;
        if (std::isnan(x)) {
            ASSERT_EQ(ours, (bits >> 16) | 0x40U);
            continue;
        }
        if (std::isinf(x)) {
            ASSERT_EQ(ours, bits >> 16);
            continue;
        }
        const auto down = static_cast<std::uint16_t>(bits >> 16);  // towards zero
        const auto up = static_cast<std::uint16_t>(down + 1);
        // The largest finite value is followed by what would be the next power of two.
        const auto value = [](std::uint16_t half) {
            const float wide = to_f32(BF16{half});
            return std::isinf(wide) ? std::copysign(0x1p128, wide) : static_cast<double>(wide);
        };
        const double below = std::abs(static_cast<double>(x) - value(down));
        const double above = std::abs(value(up) - static_cast<double>(x));
        const std::uint16_t expected = below < above ? down : above < below ? up : down % 2 == 0 ? down : up;
        ASSERT_EQ(ours, expected) << std::hexfloat << x;
    }
}

}  // namespace
}  // namespace frontier

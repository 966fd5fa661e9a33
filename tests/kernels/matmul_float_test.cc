// The float kernels against an f64 product, and against each other.
#include <fmt/format.h>

#include "kernel_rows.h"
#include "test_data.h"

namespace frontier {
namespace {

constexpr DType kTypes[] = {DType::kF32, DType::kF16, DType::kBF16};

using FloatMatmulTest = KernelTest;
FR_FOR_EACH_KERNEL_ROW(FloatMatmulTest);

KernelTable::FloatPanelsFn float_panels(const KernelTable& table, DType type) {
    return table.float_panels[static_cast<std::size_t>(type)];
}

void expect_close_to_f64(const KernelTable& table, DType type, int tokens, std::int64_t cols) {
    SCOPED_TRACE(fmt::format("{} tokens {} cols {}", dtype_name(type), tokens, cols));
    const auto rows = random_rows(type, kPanelRows, cols, 3, 1.0F);
    const auto panel = packed(type, rows, kPanelRows, cols);
    // An odd stride, one float off alignment.
    const std::int64_t stride = cols + 3;
    const auto x = random_activations(tokens * stride + 1, 4);
    GuardedOutput out(tokens, 19);
    float_panels(table, type)(panel.data(), 1, cols, x.data() + 1, stride, tokens, out.data(), out.stride());
    EXPECT_TRUE(out.guards_intact());
    // f64 sums are rounded once at the end; f32 ones at every one of the cols fused multiply-adds.
    const double roundings = table.isa == Isa::kScalar ? 1.001 : static_cast<double>(cols) + 1;
    std::vector<float> w(static_cast<std::size_t>(cols));
    for (int lane = 0; lane < kPanelRows; ++lane) {
        dequantize_row(type, rows.data() + lane * row_bytes(type, cols), cols, w.data());
        for (int t = 0; t < tokens; ++t) {
            double sum = 0;
            double size = 0;
            for (std::int64_t k = 0; k < cols; ++k) {
                const double product = static_cast<double>(w[k]) * x[1 + t * stride + k];
                sum += product;
                size += std::abs(product);
            }
            ASSERT_NEAR(out.at(t, lane), sum, roundings * kF32Rounding * size) << "token " << t << " lane " << lane;
        }
    }
}

TEST_P(FloatMatmulTest, AgreesWithAnF64Product) {
    for (const DType type : kTypes) {
        for (const std::int64_t cols : {1, 2, 3, 31, 127, 128, 129, 301})
            for (const int tokens : {1, 7}) expect_close_to_f64(table(), type, tokens, cols);
        for (int tokens = 0; tokens <= 26; ++tokens) expect_close_to_f64(table(), type, tokens, 33);
    }
}

TEST_P(FloatMatmulTest, BitsDoNotDependOnTheNumberOfTokens) {
    constexpr std::int64_t kCols = 299;
    constexpr int kTokens = 19;
    for (const DType type : kTypes) {
        const auto panel = packed(type, random_rows(type, kPanelRows, kCols, 5), kPanelRows, kCols);
        const auto x = random_activations(kTokens * kCols, 6);
        GuardedOutput all(kTokens, 16);
        float_panels(table(), type)(panel.data(), 1, kCols, x.data(), kCols, kTokens, all.data(), 16);
        for (int t = 0; t < kTokens; ++t) {
            GuardedOutput one(1, 16);
            float_panels(table(), type)(panel.data(), 1, kCols, x.data() + t * kCols, kCols, 1, one.data(), 16);
            for (int lane = 0; lane < kPanelRows; ++lane) ASSERT_EQ(one.at(0, lane), all.at(t, lane)) << t;
        }
    }
}

TEST_P(FloatMatmulTest, PanelsAreIndependent) {
    constexpr int kMostPanels = 9;
    constexpr int kMostTokens = 8;
    for (const DType type : kTypes) {
        for (const std::int64_t cols : {64, 67}) {
            std::vector<std::byte> panels;
            for (std::uint64_t p = 0; p < kMostPanels; ++p) {
                const auto panel = packed(type, random_rows(type, kPanelRows, cols, 50 + p), kPanelRows, cols);
                panels.insert(panels.end(), panel.begin(), panel.end());
            }
            const auto x = random_activations(kMostTokens * cols, 6);
            for (int tokens = 1; tokens <= kMostTokens; ++tokens) {
                for (int count = 0; count <= kMostPanels; ++count) {
                    SCOPED_TRACE(fmt::format("{} {} tokens {} panels", dtype_name(type), tokens, count));
                    GuardedOutput out(tokens, kMostPanels * kPanelRows + 3, count * kPanelRows);
                    float_panels(table(), type)(panels.data(), count, cols, x.data(), cols, tokens, out.data(),
                                                out.stride());
                    ASSERT_TRUE(out.guards_intact());
                    for (int p = 0; p < count; ++p) {
                        GuardedOutput one(tokens, kPanelRows);
                        float_panels(table(), type)(panels.data() + p * panel_bytes(type, cols), 1, cols, x.data(),
                                                    cols, tokens, one.data(), one.stride());
                        for (int t = 0; t < tokens; ++t)
                            for (int lane = 0; lane < kPanelRows; ++lane)
                                ASSERT_EQ(out.at(t, p * kPanelRows + lane), one.at(t, lane)) << "panel " << p;
                    }
                }
            }
        }
    }
}

// The scalar set sums in f64, by design. A host without vector sets has nothing to compare.
TEST(FloatMatmul, VectorSetsGiveTheSameBits) {
    for (const DType type : kTypes) {
        const auto panel = packed(type, random_rows(type, kPanelRows, 257, 5), kPanelRows, 257);
        const auto x = random_activations(9 * 257, 6);
        std::optional<GuardedOutput> expected;
        for (const KernelRow& row : kernel_rows()) {
            if (row.table.isa == Isa::kScalar) continue;
            GuardedOutput out(9, 16);
            float_panels(row.table, type)(panel.data(), 1, 257, x.data(), 257, 9, out.data(), 16);
            if (!expected.has_value()) {
                expected.emplace(std::move(out));
                continue;
            }
            for (int t = 0; t < 9; ++t)
                for (int lane = 0; lane < kPanelRows; ++lane)
                    ASSERT_EQ(out.at(t, lane), expected->at(t, lane)) << row.name;
        }
    }
}

TEST_P(FloatMatmulTest, FaultyValuesReachTheOutput) {
    for (const DType type : kTypes) {
        const auto panel = packed(type, random_rows(type, kPanelRows, 40, 5), kPanelRows, 40);
        for (const float fault : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
            auto x = random_activations(3 * 40, 6);
            x[40 + 17] = fault;
            GuardedOutput out(3, 16);
            float_panels(table(), type)(panel.data(), 1, 40, x.data(), 40, 3, out.data(), 16);
            for (int t = 0; t < 3; ++t)
                for (int lane = 0; lane < kPanelRows; ++lane) EXPECT_EQ(std::isfinite(out.at(t, lane)), t != 1);
        }
    }
}

}  // namespace
}  // namespace frontier

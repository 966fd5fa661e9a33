// The integer kernels: equal bits on every instruction set, and close to an f64 product by a derived bound.
#include <fmt/format.h>

#include "kernel_rows.h"
#include "kernels/block_formats.h"
#include "test_data.h"

namespace frontier {
namespace {

constexpr DType kTypes[] = {DType::kQ4_0, DType::kQ8_0, DType::kQ4_K, DType::kQ5_K, DType::kQ6_K};

using Int8MatmulTest = KernelTest;
FR_FOR_EACH_KERNEL_ROW(Int8MatmulTest);

KernelTable::Int8PanelsFn int8_panels(const KernelTable& table, DType type) {
    return table.int8_panels[static_cast<std::size_t>(type)];
}

// What each weight is made of, in magnitude: |scale * q| + |min|, which bounds the rounding of w = scale * q - min.
std::vector<double> magnitudes(DType type, const std::vector<std::byte>& rows, const std::vector<float>& w,
                               std::int64_t cols, int row) {
    std::vector<double> m(static_cast<std::size_t>(cols));
    for (std::int64_t k = 0; k < cols; ++k) {
        double min = 0;
        if (type == DType::kQ4_K || type == DType::kQ5_K) {
            const std::byte* block = rows.data() + row * row_bytes(type, cols) + k / 256 * dtype_info(type).block_bytes;
            min = std::abs(f16_at(block, 2)) * scale_min_at(block + 4, static_cast<int>(k % 256 / 32)).min;
        }
        m[k] = std::abs(w[k]) + 2 * min;
    }
    return m;
}

// Roundings on the way of one block's term: one or two of the scale, the product, and the additions it passes through
// (two per block for Q4_K and Q5_K); plus two of the dequantised reference weight.
double relative_bound(std::int64_t blocks) {
    return static_cast<double>(2 * blocks + 6) * kF32Rounding;
}

void expect_close_to_f64(const KernelTable& table, DType type, int tokens, std::int64_t cols, std::uint64_t seed) {
    SCOPED_TRACE(fmt::format("{} tokens {} cols {} seed {}", dtype_name(type), tokens, cols, seed));
    const auto rows = random_rows(type, kPanelRows, cols, seed);
    const auto panel = packed(type, rows, kPanelRows, cols);
    const auto x = random_activations(tokens * cols, seed);
    Quantized q(table, x, tokens, cols);
    GuardedOutput out(tokens, 19);
    int8_panels(table, type)(panel.data(), 1, q.view, tokens, out.data(), out.stride());
    EXPECT_TRUE(out.guards_intact());

    std::vector<float> w(static_cast<std::size_t>(cols));
    for (int lane = 0; lane < kPanelRows; ++lane) {
        dequantize_row(type, rows.data() + lane * row_bytes(type, cols), cols, w.data());
        const auto magnitude = magnitudes(type, rows, w, cols, lane);
        for (int t = 0; t < tokens; ++t) {
            double quantised = 0;
            double exact = 0;
            double size = 0;
            double step_error = 0;  // each activation is off by at most half a step
            for (std::int64_t k = 0; k < cols; ++k) {
                const double scale = q.scales[(t * cols + k) / 32];
                const double xq = q.quants[t * cols + k] * scale;
                quantised += w[k] * xq;
                exact += static_cast<double>(w[k]) * x[t * cols + k];
                size += magnitude[k] * std::abs(xq);
                // scale and 127 / max are rounded, so that half a step is exceeded by up to 127 * 3 roundings.
                step_error += std::abs(w[k]) * scale * (0.5 + 400 * kF32Rounding);
            }
            const double bound = relative_bound(cols / 32) * size;
            ASSERT_NEAR(out.at(t, lane), quantised, bound) << "token " << t << " lane " << lane;
            ASSERT_NEAR(out.at(t, lane), exact, bound + step_error) << "token " << t << " lane " << lane;
        }
    }
}

TEST_P(Int8MatmulTest, AgreesWithAnF64Product) {
    for (const DType type : kTypes)
        for (const std::int64_t cols : {256L, 1024L}) expect_close_to_f64(table(), type, 5, cols, 7);
    for (const DType type : {DType::kQ4_0, DType::kQ8_0}) expect_close_to_f64(table(), type, 3, 96, 8);
}

void expect_scalar_bits(const KernelTable& table, const KernelTable& scalar, DType type,
                        const std::vector<std::byte>& panel, const Q8Activations& x, int tokens) {
    SCOPED_TRACE(fmt::format("{} tokens {} cols {}", dtype_name(type), tokens, x.cols));
    GuardedOutput out(tokens, 17);
    GuardedOutput expected(tokens, 17);
    int8_panels(table, type)(panel.data(), 1, x, tokens, out.data(), out.stride());
    int8_panels(scalar, type)(panel.data(), 1, x, tokens, expected.data(), expected.stride());
    EXPECT_TRUE(out.guards_intact());
    for (int t = 0; t < tokens; ++t)
        for (int lane = 0; lane < kPanelRows; ++lane)
            ASSERT_EQ(std::bit_cast<std::uint32_t>(out.at(t, lane)), std::bit_cast<std::uint32_t>(expected.at(t, lane)))
                << "token " << t << " lane " << lane << ": " << out.at(t, lane) << " for " << expected.at(t, lane);
}

TEST_P(Int8MatmulTest, BitsAreThoseOfScalar) {
    // Block counts around the 16 that one unpacked stretch holds; tokens around the tiles of 4 and 8.
    for (const DType type : kTypes) {
        const std::int64_t block = dtype_info(type).block_elements;
        for (const std::int64_t blocks : {1, 2, 3, 15, 16, 17, 33}) {
            if (block == 256 && blocks > 3) continue;
            const std::int64_t cols = blocks * block;
            const auto panel = packed(type, random_rows(type, kPanelRows, cols, 11), kPanelRows, cols);
            const auto x = random_activations(21 * cols, 12);
            const Quantized q(table(), x, 21, cols);
            for (int tokens = 0; tokens <= 21; ++tokens)
                expect_scalar_bits(table(), scalar(), type, panel, q.view, tokens);
        }
    }
}

// Few tokens take several panels side by side: the bits are those of one panel after another.
TEST_P(Int8MatmulTest, PanelsAreIndependent) {
    constexpr std::int64_t kCols = 768;
    constexpr int kMostPanels = 5;
    constexpr int kMostTokens = 9;
    for (const DType type : kTypes) {
        std::vector<std::byte> panels;
        for (std::uint64_t p = 0; p < kMostPanels; ++p) {
            const auto panel = packed(type, random_rows(type, kPanelRows, kCols, 50 + p), kPanelRows, kCols);
            panels.insert(panels.end(), panel.begin(), panel.end());
        }
        const Quantized q(table(), random_activations(kMostTokens * kCols, 51), kMostTokens, kCols);
        for (int tokens = 1; tokens <= kMostTokens; ++tokens) {
            for (int count = 0; count <= kMostPanels; ++count) {
                SCOPED_TRACE(fmt::format("{} {} tokens {} panels", dtype_name(type), tokens, count));
                GuardedOutput out(tokens, kMostPanels * kPanelRows + 3, count * kPanelRows);
                int8_panels(table(), type)(panels.data(), count, q.view, tokens, out.data(), out.stride());
                ASSERT_TRUE(out.guards_intact());
                for (int p = 0; p < count; ++p) {
                    GuardedOutput one(tokens, kPanelRows);
                    int8_panels(table(), type)(panels.data() + p * panel_bytes(type, kCols), 1, q.view, tokens,
                                               one.data(), one.stride());
                    for (int t = 0; t < tokens; ++t)
                        for (int lane = 0; lane < kPanelRows; ++lane)
                            ASSERT_EQ(out.at(t, p * kPanelRows + lane), one.at(t, lane)) << "panel " << p;
                }
            }
        }
    }
}

TEST_P(Int8MatmulTest, ExtremeQuantsDoNotSaturate) {
    constexpr std::int64_t kCols = 512;
    constexpr int kTokens = 6;
    for (const DType type : kTypes) {
        for (const unsigned fill : {0x00U, 0xFFU, 0x7FU, 0x80U}) {
            auto rows = random_rows(type, kPanelRows, kCols, 21);
            std::vector<std::byte> filled(rows.size(), static_cast<std::byte>(fill));
            const std::int64_t block_bytes = dtype_info(type).block_bytes;
            for (std::size_t i = 0; i < rows.size(); ++i) {
                const auto offset = static_cast<std::int64_t>(i) % block_bytes;  // keep the f16 scales
                const bool has_min = type == DType::kQ4_K || type == DType::kQ5_K;
                const bool is_scale = type == DType::kQ6_K ? offset >= 208 : offset < (has_min ? 4 : 2);
                if (is_scale) filled[i] = rows[i];
            }
            const auto panel = packed(type, filled, kPanelRows, kCols);
            Quantized q(table(), random_activations(kTokens * kCols, 22), kTokens, kCols);
            for (std::size_t i = 0; i < q.quants.size(); ++i)
                q.quants[i] = static_cast<std::int8_t>(
                    i / kCols % 2 == 0 ? 127 : (i / kCols == 1 ? -127 : (i % 2 == 0 ? 127 : -127)));
            for (std::size_t g = 0; g < q.sums.size(); ++g) {
                int sum = 0;
                for (std::size_t i = 0; i < 16; ++i) sum += q.quants[16 * g + i];
                q.sums[g] = static_cast<std::int16_t>(sum);
            }
            for (std::size_t b = 0; b < q.scales.size(); ++b)
                q.scaled_sums[b] = q.scales[b] * static_cast<float>(q.sums[2 * b] + q.sums[2 * b + 1]);
            expect_scalar_bits(table(), scalar(), type, panel, q.view, kTokens);
        }
    }
}

TEST_P(Int8MatmulTest, MissingRowsGiveZero) {
    for (const DType type : kTypes) {
        const auto panel = packed(type, random_rows(type, 3, 256, 31), 3, 256);
        const Quantized q(table(), random_activations(2 * 256, 32), 2, 256);
        GuardedOutput out(2, 16);
        int8_panels(table(), type)(panel.data(), 1, q.view, 2, out.data(), out.stride());
        for (int t = 0; t < 2; ++t)
            for (int lane = 0; lane < kPanelRows; ++lane) EXPECT_EQ(out.at(t, lane) == 0, lane >= 3) << lane;
    }
}

TEST_P(Int8MatmulTest, AFaultyActivationReachesItsTokenOnly) {
    for (const DType type : kTypes) {
        for (const int tokens : {3, 9}) {
            const auto panel = packed(type, random_rows(type, kPanelRows, 512, 41), kPanelRows, 512);
            auto x = random_activations(tokens * 512, 42);
            x[512 + 300] = std::numeric_limits<float>::infinity();
            const Quantized q(table(), x, tokens, 512);
            GuardedOutput out(tokens, 16);
            int8_panels(table(), type)(panel.data(), 1, q.view, tokens, out.data(), out.stride());
            for (int t = 0; t < tokens; ++t)
                for (int lane = 0; lane < kPanelRows; ++lane) EXPECT_EQ(std::isnan(out.at(t, lane)), t == 1);
        }
    }
}

}  // namespace
}  // namespace frontier

// The tile kernels against f64 products of the same bf16 values, and against those of the exact values.
#include <algorithm>

#include <fmt/format.h>

#include "kernel_rows.h"
#include "kernels/block_formats.h"
#include "test_data.h"

namespace frontier {
namespace {

constexpr DType kTypes[] = {DType::kBF16, DType::kQ4_0, DType::kQ8_0, DType::kQ4_K, DType::kQ5_K, DType::kQ6_K};

using TileMatmulTest = KernelTest;
// Hosts without AVX2 have no row: the tiles' emulation is built over it.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(TileMatmulTest);
INSTANTIATE_TEST_SUITE_P(Isa, TileMatmulTest, testing::ValuesIn(tile_rows()), kernel_row_name);

float rounded(float x) {
    return to_f32(to_bf16(x));
}

// Weights of one row in f32 as the kernels have them before they round: scale and minimum of a Q4_K or Q5_K weight meet
// in a fused operation, where dequantize_row rounds the product first.
std::vector<float> row_weights(DType type, const std::byte* row, std::int64_t cols) {
    std::vector<float> w(static_cast<std::size_t>(cols));
    dequantize_row(type, row, cols, w.data());
    const bool q5 = type == DType::kQ5_K;
    for (std::int64_t k = 0; (q5 || type == DType::kQ4_K) && k < cols; ++k) {
        const std::byte* block = row + k / 256 * dtype_info(type).block_bytes;
        const int i = static_cast<int>(k % 256);
        const ScaleMin scale_min = scale_min_at(block + 4, i / 32);
        const float scale = f16_at(block, 0) * static_cast<float>(scale_min.scale);
        const float min = f16_at(block, 2) * static_cast<float>(scale_min.min);
        const unsigned high = q5 ? u8_at(block, 16 + i % 32) >> (i / 32) & 1U : 0;
        w[k] = std::fma(scale, static_cast<float>(q4_k_quant(block + (q5 ? 48 : 16), i) | high << 4), -min);
    }
    return w;
}

// 64-byte aligned storage, as the kernels ask for.
struct alignas(64) CacheLine {
    std::byte bytes[64];
};
using AlignedBytes = std::vector<CacheLine>;

// `panel_count` panels, activations and what belongs to them.
struct TileInputs {
    TileInputs(const KernelTable& kernels, DType weights, int panels_asked, int rows_asked, int tokens_asked,
               std::int64_t cols_asked, std::vector<float> activations)
        : table(kernels),
          type(weights),
          panel_count(panels_asked),
          tokens(tokens_asked),
          cols(cols_asked),
          stride((cols + 31) / 32 * 32 + 32),
          x(std::move(activations)),
          rows(random_rows(type, rows_asked, cols, 3)),
          // Whatever the kernel should not read is NaN: columns after the zeros, tokens after the last.
          bf16(static_cast<std::size_t>((tokens + 32) * stride), kNaN),
          panels(static_cast<std::size_t>((panel_count * panel_bytes(type, cols) + 63) / 64)),
          scratch(static_cast<std::size_t>(kTileScratchBytes / 64)) {
        for (int p = 0; p < panel_count; ++p)
            pack_panel(type, rows.data() + p * kPanelRows * row_bytes(type, cols),
                       std::min(kPanelRows, rows_asked - p * kPanelRows), cols,
                       panels.data()->bytes + p * panel_bytes(type, cols));
        for (int t = 0; t < tokens; ++t) table.round_bf16(x.data() + t * cols, cols, bf16.data() + t * stride);
    }

    void multiply(float* out, std::int64_t out_stride) {
        TileTask task;
        task.panels = panels.data()->bytes;
        task.panel_count = panel_count;
        task.panel_bytes = panel_bytes(type, cols);
        task.activations = bf16.data();
        task.activation_stride = stride;
        task.tokens = tokens;
        task.out = out;
        task.out_stride = out_stride;
        task.scratch = scratch.data()->bytes;
        for (std::int64_t k = 0; k < cols; k += kTileBlockK) {
            task.first_k = k;
            task.k_count = static_cast<int>(std::min<std::int64_t>(kTileBlockK, cols - k));
            table.bf16_tiles[static_cast<std::size_t>(type)](task);
        }
    }

    static constexpr std::uint16_t kNaN = 0x7FC5;
    const KernelTable& table;
    DType type;
    int panel_count;
    int tokens;
    std::int64_t cols;
    std::int64_t stride;
    std::vector<float> x;
    std::vector<std::byte> rows;
    std::vector<std::uint16_t> bf16;
    AlignedBytes panels;
    AlignedBytes scratch;
};

void expect_close_to_f64(const KernelTable& table, DType type, int panel_count, int tokens, std::int64_t cols) {
    SCOPED_TRACE(fmt::format("{} panels {} tokens {} cols {}", dtype_name(type), panel_count, tokens, cols));
    const int outputs = panel_count * kPanelRows;
    TileInputs in(table, type, panel_count, outputs, tokens, cols, random_activations(tokens * cols, 4));
    GuardedOutput out(tokens, outputs + 3, outputs);
    in.multiply(out.data(), out.stride());
    ASSERT_TRUE(out.guards_intact());
    // Every product passes through at most `cols` additions and some of the blocks' sums, one rounding each.
    const double sum_bound = static_cast<double>(cols + 4) * kF32Rounding;
    // Both factors are off by at most 2^-8, half of bf16's last place; 1.01 for the products of errors.
    const double bound = 1.01 * (2 * 0x1p-8 + sum_bound);
    for (int lane = 0; lane < outputs; ++lane) {
        const std::vector<float> w = row_weights(type, in.rows.data() + lane * row_bytes(type, cols), cols);
        for (int t = 0; t < tokens; ++t) {
            double of_rounded = 0, size_of_rounded = 0, exact = 0, size = 0;
            for (std::int64_t k = 0; k < cols; ++k) {
                const float x = in.x[t * cols + k];
                const double product = static_cast<double>(rounded(w[k])) * rounded(x);
                of_rounded += product;
                size_of_rounded += std::abs(product);
                exact += static_cast<double>(w[k]) * x;
                size += std::abs(static_cast<double>(w[k]) * x);
            }
            ASSERT_NEAR(out.at(t, lane), of_rounded, sum_bound * size_of_rounded) << "token " << t << " lane " << lane;
            ASSERT_NEAR(out.at(t, lane), exact, bound * size) << "token " << t << " lane " << lane;
        }
    }
}

TEST_P(TileMatmulTest, AgreesWithAnF64Product) {
    for (const DType type : kTypes)
        for (const int panel_count : {1, 2})
            for (const int tokens : {1, 16, 35}) expect_close_to_f64(table(), type, panel_count, tokens, 512);
}

TEST_P(TileMatmulTest, AnyNumberOfTokens) {
    for (int tokens = 1; tokens <= 33; ++tokens)
        for (const int panel_count : {1, 2}) expect_close_to_f64(table(), DType::kQ4_0, panel_count, tokens, 32);
    for (const int tokens : {63, 64, 65, 80, 81, 100}) expect_close_to_f64(table(), DType::kQ8_0, 2, tokens, 64);
}

TEST_P(TileMatmulTest, AnyNumberOfColumns) {
    for (const std::int64_t cols : {1, 2, 3, 31, 33, 63, 64, 65, 255, 257, 288, 301})
        for (const int tokens : {3, 34}) expect_close_to_f64(table(), DType::kBF16, 2, tokens, cols);
    for (const DType type : {DType::kQ4_0, DType::kQ8_0})
        for (const std::int64_t cols : {32, 96, 224, 288, 544}) expect_close_to_f64(table(), type, 2, 18, cols);
}

TEST_P(TileMatmulTest, BitsDoNotDependOnTheNumberOfTokensOrPanels) {
    constexpr std::int64_t kCols = 512;
    constexpr int kTokens = 45;
    for (const DType type : kTypes) {
        TileInputs all(table(), type, 2, 32, kTokens, kCols, random_activations(kTokens * kCols, 6));
        GuardedOutput expected(kTokens, 32, 32);
        all.multiply(expected.data(), expected.stride());
        for (const int t : {0, 15, 16, 31, 32, 44}) {
            const auto row = all.x.begin() + t * kCols;
            TileInputs one(table(), type, 1, 16, 1, kCols, std::vector<float>(row, row + kCols));
            GuardedOutput out(1, 16);
            one.multiply(out.data(), out.stride());
            for (int lane = 0; lane < kPanelRows; ++lane) ASSERT_EQ(out.at(0, lane), expected.at(t, lane)) << t;
        }
    }
}

TEST_P(TileMatmulTest, MissingRowsGiveZero) {
    for (const DType type : kTypes) {
        TileInputs in(table(), type, 2, 19, 5, 256, random_activations(5 * 256, 32));
        GuardedOutput out(5, 32, 32);
        in.multiply(out.data(), out.stride());
        for (int t = 0; t < 5; ++t)
            for (int lane = 0; lane < 32; ++lane) EXPECT_EQ(out.at(t, lane) == 0, lane >= 19) << lane;
    }
}

TEST_P(TileMatmulTest, AFaultyActivationReachesItsTokenOnly) {
    for (const DType type : kTypes) {
        for (const float fault : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
            auto x = random_activations(20 * 512, 42);
            x[17 * 512 + 300] = fault;
            TileInputs in(table(), type, 2, 32, 20, 512, x);
            GuardedOutput out(20, 32, 32);
            in.multiply(out.data(), out.stride());
            for (int t = 0; t < 20; ++t)
                for (int lane = 0; lane < 32; ++lane) EXPECT_EQ(std::isfinite(out.at(t, lane)), t != 17);
        }
    }
}

TEST_P(TileMatmulTest, ActivationsAreRoundedToNearestEvenAndPadded) {
    auto x = random_activations(300, 8);
    const float special[] = {0.0F,           -0.0F,      1.0F,        0x1.01p0F,   0x1.03p0F,
                             0x1.0100002p0F, -0x1.01p0F, 0x1.FFp127F, -0x1.FFp127F};
    std::copy(std::begin(special), std::end(special), x.begin());
    for (const std::int64_t cols : {1, 31, 32, 33, 300}) {
        std::vector<std::uint16_t> out(static_cast<std::size_t>(cols + 64), 0x1234);
        table().round_bf16(x.data(), cols, out.data());
        const std::int64_t padded = (cols + 31) / 32 * 32;
        for (std::int64_t k = 0; k < cols + 64; ++k) {
            const std::uint16_t expected =
                k < cols ? to_bf16(x[k]).bits : static_cast<std::uint16_t>(k < padded ? 0 : 0x1234);
            ASSERT_EQ(out[k], expected) << k << " of " << cols;
        }
    }
    const float faults[2] = {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()};
    std::uint16_t out[32];
    table().round_bf16(faults, 2, out);
    EXPECT_TRUE(std::isnan(to_f32(BF16{out[0]})));
    EXPECT_EQ(to_f32(BF16{out[1]}), faults[1]);
}

}  // namespace
}  // namespace frontier

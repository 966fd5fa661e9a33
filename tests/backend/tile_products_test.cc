// How steps of many tokens are cut into items of bf16 tiles, on every host: with a plain C++ tile kernel that obeys the
// contract of TileTask. The real kernels run in products_test.cc where the host has them.
#include "backend/tile_products.h"

#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include <gtest/gtest.h>

#include "backend/cpu_products.h"
#include "backend_test_data.h"
#include "base/check.h"
#include "tensor/half.h"

namespace frontier {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

void plain_round(const float* x, std::int64_t cols, std::uint16_t* out) {
    for (std::int64_t k = 0; k < (cols + 31) / 32 * 32; ++k) out[k] = k < cols ? to_bf16(x[k]).bits : 0;
}

template <DType kType>
void plain_tiles(const TileTask& task) {
    FR_CHECK(task.first_k % kTileBlockK == 0 && task.k_count >= 1 && task.k_count <= kTileBlockK);
    FR_CHECK(task.panel_count >= 1 && task.panel_count <= 2 && task.tokens >= 1 && task.activation_stride % 32 == 0);
    FR_CHECK(reinterpret_cast<std::uintptr_t>(task.scratch) % 64 == 0);
    std::memset(task.scratch, 0x55, static_cast<std::size_t>(kTileScratchBytes));
    const std::int64_t cols = task.first_k + task.k_count;
    std::vector<float> weights(static_cast<std::size_t>(cols));
    for (int lane = 0; lane < task.panel_count * kPanelRows; ++lane) {
        unpack_row(kType, task.panels + lane / kPanelRows * task.panel_bytes, lane % kPanelRows, cols, weights.data());
        for (int t = 0; t < task.tokens; ++t) {
            float& out = task.out[t * task.out_stride + lane];
            if (task.first_k == 0) out = 0;
            for (std::int64_t k = task.first_k; k < cols; ++k)
                out += to_f32(to_bf16(weights[k])) * to_f32(BF16{task.activations[t * task.activation_stride + k]});
        }
    }
}

const KernelTable& plain_table() {
    static const KernelTable table = [] {
        KernelTable t = kernel_table(Isa::kScalar);
        t.round_bf16 = plain_round;
        t.bf16_tiles[static_cast<int>(DType::kBF16)] = plain_tiles<DType::kBF16>;
        t.bf16_tiles[static_cast<int>(DType::kQ4_0)] = plain_tiles<DType::kQ4_0>;
        t.bf16_tiles[static_cast<int>(DType::kQ8_0)] = plain_tiles<DType::kQ8_0>;
        return t;
    }();
    return table;
}

struct Output {
    Output(std::int64_t tokens, std::int64_t rows)
        : stride((rows + 15) / 16 * 16 + 16), values(static_cast<std::size_t>(tokens * stride), kNaN) {}
    float at(std::int64_t t, std::int64_t r) const { return values[t * stride + r]; }
    std::int64_t stride;
    std::vector<float> values;
};

class TileProductsTest : public testing::Test {
protected:
    PackedMatrix pack(const TestTensor& tensor, ComputeType compute = ComputeType::kAuto, bool repack = true) {
        Result<PackedMatrix> matrix = pack_matrix(tensor.view(), compute, plain_table(), pool_, repack);
        EXPECT_TRUE(matrix.has_value()) << matrix.error().text;
        return std::move(matrix).value();
    }

    // out = bias + in . matrix^T, with scratch prepared for `prepared` tokens.
    Output store(const PackedMatrix& matrix, const float* bias, const std::vector<float>& in, std::int64_t tokens,
                 int threads = 2, std::int64_t prepared = 0) {
        ThreadPool pool(threads);
        Products products(plain_table(), pool);
        EXPECT_TRUE(products.prepare(matrix, std::max(prepared, tokens)).has_value());
        Output out(tokens, matrix.rows);
        const ProductPart part{&matrix, bias, out.values.data(), out.stride};
        products.run({&part, 1}, Epilogue::kStore, in.data(), matrix.cols, tokens);
        return out;
    }

    ThreadPool pool_{2};
};

// Relative error of a product of two factors rounded to bf16, plus the rounding of a bias.
double bound_of(const float* weights, const float* x, std::int64_t cols) {
    return product_bound(weights, x, cols, 2.01 * 0x1p-8, false) + 1e-6;
}

void expect_product(const TestTensor& weights, const std::vector<float>& in, const float* bias, const Output& out,
                    std::int64_t tokens, std::int64_t step = 1) {
    const std::int64_t rows = weights.info.rows(), cols = weights.info.cols();
    for (std::int64_t t = 0; t < tokens; t += step)
        for (std::int64_t r = 0; r < out.stride; ++r) {
            if (r >= rows) {
                ASSERT_TRUE(std::isnan(out.at(t, r))) << "beyond the rows, " << t << " " << r;
                continue;
            }
            const double expected = dot(weights.row(r), in.data() + t * cols, cols) + (bias == nullptr ? 0 : bias[r]);
            ASSERT_NEAR(out.at(t, r), expected, bound_of(weights.row(r), in.data() + t * cols, cols)) << t << " " << r;
        }
}

TEST_F(TileProductsTest, TakesStepsOfManyTokens) {
    const PackedMatrix q8 = pack(random_tensor("w", DType::kQ8_0, {16, 64}, 1));
    const TileProducts tiles(plain_table(), pool_);
    EXPECT_TRUE(tiles.takes(q8, kTileTokens));
    EXPECT_FALSE(tiles.takes(q8, kTileTokens - 1));
    EXPECT_FALSE(TileProducts(kernel_table(Isa::kScalar), pool_).takes(q8, 100));
    EXPECT_FALSE(tiles.takes(pack(random_tensor("w", DType::kQ8_0, {16, 64}, 1), ComputeType::kF32), 100));
    const TestTensor f32 = random_tensor("w", DType::kF32, {16, 64}, 1);
    const TestTensor bf16 = random_tensor("w", DType::kBF16, {16, 64}, 1);
    for (const TestTensor* tensor : {&f32, &bf16}) {
        EXPECT_FALSE(tiles.takes(pack(*tensor), 100));  // f32 activations
        EXPECT_FALSE(tiles.takes(pack(*tensor, ComputeType::kF16), 100));
        EXPECT_TRUE(tiles.takes(pack(*tensor, ComputeType::kBF16), 100));
    }
    EXPECT_FALSE(tiles.takes(pack(random_tensor("w", DType::kQ5_1, {16, 64}, 1)), 100));  // no tile kernel
}

// Odd numbers of panels and rows, columns that end within a block of k and within a tile, tokens around the stripes.
TEST_F(TileProductsTest, AnyShape) {
    for (const std::int64_t rows : {1, 16, 33, 64, 100})
        for (const std::int64_t tokens : {32, 45, 64}) {
            const std::vector<float> bias = random_values(rows, 7);
            const TestTensor q8 = random_tensor("w", DType::kQ8_0, {rows, 288}, 5);
            const std::vector<float> in = random_values(tokens * 288, 6);
            SCOPED_TRACE(testing::Message() << rows << " rows " << tokens << " tokens");
            expect_product(q8, in, bias.data(), store(pack(q8), bias.data(), in, tokens), tokens);
            const TestTensor bf16 = random_tensor("w", DType::kBF16, {rows, 37}, 5);
            const std::vector<float> few = random_values(tokens * 37, 6);
            expect_product(bf16, few, nullptr, store(pack(bf16, ComputeType::kBF16), nullptr, few, tokens), tokens);
        }
}

// Several blocks of tokens; scratch that was made for more tokens, or for a number that is cut into smaller blocks.
TEST_F(TileProductsTest, AnyNumberOfTokens) {
    const TestTensor weights = random_tensor("w", DType::kQ4_0, {70, 64}, 5);
    const PackedMatrix matrix = pack(weights);
    const std::vector<float> in = random_values(1100 * 64, 6);
    for (const std::int64_t tokens : {511, 512, 513, 1024, 1025, 1100})
        for (const std::int64_t prepared : {tokens, std::int64_t{513}, std::int64_t{1100}}) {
            SCOPED_TRACE(testing::Message() << tokens << " tokens");
            expect_product(weights, in, nullptr, store(matrix, nullptr, in, tokens, 2, prepared), tokens, 31);
        }
}

TEST_F(TileProductsTest, ThreadsAndFileOrderDoNotChangeBits) {
    const TestTensor weights = random_tensor("w", DType::kQ8_0, {500, 544}, 5);
    const std::vector<float> in = random_values(150 * 544, 6);
    const PackedMatrix matrix = pack(weights);
    const PackedMatrix in_file_order = pack(weights, ComputeType::kAuto, false);
    const Output one = store(matrix, nullptr, in, 150, 1);
    expect_product(weights, in, nullptr, one, 150, 13);
    for (const int threads : {2, 3, 7})
        for (const PackedMatrix* each : {&matrix, &in_file_order}) {
            const Output many = store(*each, nullptr, in, 150, threads);
            EXPECT_EQ(std::memcmp(one.values.data(), many.values.data(), one.values.size() * sizeof(float)), 0)
                << threads;
        }
}

TEST_F(TileProductsTest, AddsToTheResidual) {
    const PackedMatrix matrix = pack(random_tensor("w", DType::kQ8_0, {35, 64}, 4));
    const std::vector<float> in = random_values(40 * 64, 6);
    const std::vector<float> bias = random_values(35, 7);
    const Output product = store(matrix, bias.data(), in, 40);
    const std::vector<float> before = random_values(40 * product.stride, 8);
    std::vector<float> residual = before;
    Products products(plain_table(), pool_);
    ASSERT_TRUE(products.prepare(matrix, 40).has_value());
    const ProductPart part{&matrix, bias.data(), residual.data(), product.stride};
    products.run({&part, 1}, Epilogue::kAdd, in.data(), 64, 40);
    for (std::int64_t i = 0; i < 40 * product.stride; ++i)
        ASSERT_EQ(residual[i], i % product.stride < 35 ? before[i] + product.values[i] : before[i]) << i;
}

TEST_F(TileProductsTest, GateAndUpAreFused) {
    for (const bool repack : {true, false}) {
        for (const std::int64_t rows : {50, 400}) {
            constexpr std::int64_t kCols = 288;
            constexpr std::int64_t kTokens = 70;
            const TestTensor gate_rows = random_tensor("g", DType::kQ4_0, {rows, kCols}, 4);
            const TestTensor up_rows = random_tensor("u", DType::kQ8_0, {rows, kCols}, 5);
            const PackedMatrix gate = pack(gate_rows, ComputeType::kAuto, repack);
            const PackedMatrix up = pack(up_rows, ComputeType::kAuto, repack);
            const std::vector<float> in = random_values(kTokens * kCols, 6);
            const Output g = store(gate, nullptr, in, kTokens);
            const Output u = store(up, nullptr, in, kTokens);
            Output out(kTokens, rows);
            Products products(plain_table(), pool_);
            ASSERT_TRUE(products.prepare(gate, kTokens).has_value());
            ASSERT_TRUE(products.prepare(up, kTokens).has_value());
            const std::array<ProductPart, 2> parts = {ProductPart{&gate, nullptr, out.values.data(), out.stride},
                                                      ProductPart{&up, nullptr, nullptr, 0}};
            products.run(parts, Epilogue::kSiluMultiply, in.data(), kCols, kTokens);
            for (std::int64_t t = 0; t < kTokens; ++t)
                for (std::int64_t r = 0; r < rows; ++r) {
                    const double x = g.at(t, r);
                    const double expected = x / (1 + std::exp(-x)) * u.at(t, r);
                    ASSERT_NEAR(out.at(t, r), expected, 6 * 0x1p-24 * std::abs(expected) + 1e-35) << t << " " << r;
                }
        }
    }
}

// q, k and v of several types: those with a tile kernel use it, the others their own path.
TEST_F(TileProductsTest, PartsOfSeveralTypes) {
    constexpr std::int64_t kCols = 256;
    constexpr std::int64_t kTokens = 50;
    for (const DType third : {DType::kQ8_0, DType::kF32}) {
        const std::array<TestTensor, 3> weights = {random_tensor("q", DType::kQ4_0, {70, kCols}, 1),
                                                   random_tensor("k", DType::kQ8_0, {17, kCols}, 2),
                                                   random_tensor("v", third, {40, kCols}, 3)};
        const std::vector<float> in = random_values(kTokens * kCols, 9);
        Products products(plain_table(), pool_);
        std::array<PackedMatrix, 3> matrices;
        std::vector<Output> out;
        std::array<ProductPart, 3> parts;
        for (std::size_t i = 0; i < 3; ++i) {
            matrices[i] = pack(weights[i]);
            ASSERT_TRUE(products.prepare(matrices[i], kTokens).has_value());
            out.emplace_back(kTokens, matrices[i].rows);
        }
        for (std::size_t i = 0; i < 3; ++i) parts[i] = {&matrices[i], nullptr, out[i].values.data(), out[i].stride};
        products.run(parts, Epilogue::kStore, in.data(), kCols, kTokens);
        for (std::size_t i = 0; i < 3; ++i) {
            const Output alone = store(matrices[i], nullptr, in, kTokens, 1);
            for (std::int64_t t = 0; t < kTokens; ++t)
                for (std::int64_t r = 0; r < matrices[i].rows; ++r)
                    ASSERT_EQ(alone.at(t, r), out[i].at(t, r)) << weights[i].info.name << " " << t << " " << r;
        }
    }
}

TEST_F(TileProductsTest, FaultsInActivationsReachTheResult) {
    const PackedMatrix matrix = pack(random_tensor("w", DType::kQ4_0, {40, 512}, 4));
    for (const float fault : {kNaN, std::numeric_limits<float>::infinity()}) {
        std::vector<float> in = random_values(33 * 512, 2);
        in[32 * 512 + 300] = fault;
        const Output out = store(matrix, nullptr, in, 33);
        for (std::int64_t t = 0; t < 33; ++t)
            for (std::int64_t r = 0; r < 40; ++r) EXPECT_EQ(std::isfinite(out.at(t, r)), t != 32);
    }
}

}  // namespace
}  // namespace frontier

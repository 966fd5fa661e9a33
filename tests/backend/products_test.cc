#include "backend/cpu_products.h"

#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include <gtest/gtest.h>

#include "backend_test_data.h"

namespace frontier {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

PackedMatrix pack(const TestTensor& tensor, ComputeType compute, Isa isa, ThreadPool& pool) {
    Result<PackedMatrix> matrix = pack_matrix(tensor.view(), compute, kernel_table(isa), pool);
    EXPECT_TRUE(matrix.has_value()) << matrix.error().text;
    return std::move(matrix).value();
}

// Largest relative change of an activation by rounding to the compute type.
double activation_step(const PackedMatrix& matrix) {
    if (matrix.activations == DType::kBF16) return 0x1p-8;
    return matrix.activations == DType::kF16 ? 0x1p-11 : 0;
}

// Steps of many tokens go through bf16 tiles where the instruction set has them.
bool in_tiles(const PackedMatrix& matrix, std::int64_t tokens, Isa isa) {
    ThreadPool pool(1);
    return Products(kernel_table(isa), pool).in_tiles(matrix, tokens);
}

struct Input {
    Input(std::int64_t tokens, std::int64_t cols, std::uint64_t seed)
        : stride(cols + 5), values(static_cast<std::size_t>(tokens * stride), kNaN) {
        const std::vector<float> x = random_values(tokens * cols, seed);
        for (std::int64_t t = 0; t < tokens; ++t) {
            std::copy_n(x.begin() + t * cols, cols, values.begin() + t * stride);
        }
    }
    const float* row(std::int64_t t) const { return values.data() + t * stride; }
    std::int64_t stride;
    std::vector<float> values;
};

std::int64_t panel_stride(std::int64_t rows) {
    return (rows + 15) / 16 * 16;
}

std::vector<float> multiply(const PackedMatrix& matrix, const float* bias, const Input& input, std::int64_t tokens,
                            Isa isa, int threads) {
    ThreadPool pool(threads);
    Products products(kernel_table(isa), pool);
    EXPECT_TRUE(products.prepare(matrix, tokens).has_value());
    std::vector<float> out(static_cast<std::size_t>(tokens * panel_stride(matrix.rows)), kNaN);
    const ProductPart part{&matrix, bias, out.data(), panel_stride(matrix.rows)};
    products.run({&part, 1}, Epilogue::kStore, input.values.data(), input.stride, tokens);
    return out;
}

constexpr std::array<DType, 16> kAllTypes = {DType::kF32,  DType::kF16,    DType::kBF16,   DType::kQ4_0,
                                             DType::kQ4_1, DType::kQ5_0,   DType::kQ5_1,   DType::kQ8_0,
                                             DType::kQ2_K, DType::kQ3_K,   DType::kQ4_K,   DType::kQ5_K,
                                             DType::kQ6_K, DType::kIQ4_NL, DType::kIQ4_XS, DType::kMXFP4};
constexpr std::array<ComputeType, 4> kComputeTypes = {ComputeType::kAuto, ComputeType::kF32, ComputeType::kBF16,
                                                      ComputeType::kF16};

class ProductsTest : public testing::TestWithParam<Isa> {
protected:
    Isa isa_ = GetParam();
    ThreadPool pool_{2};
};

// Every weight type and compute type, rows that leave the last panel partly empty, with bias.
TEST_P(ProductsTest, MatchesDoubles) {
    for (const DType type : kAllTypes) {
        for (const ComputeType compute : kComputeTypes) {
            for (const std::int64_t rows : {1, 15, 33, 64}) {
                const std::int64_t cols = 512;
                const TestTensor weights = random_tensor("w", type, {rows, cols}, 11 + rows);
                const PackedMatrix matrix = pack(weights, compute, isa_, pool_);
                const std::vector<float> bias = random_values(rows, 77);
                for (const std::int64_t tokens : {1, 5, 37}) {
                    SCOPED_TRACE(testing::Message()
                                 << dtype_name(type) << " compute " << static_cast<int>(compute) << " "
                                 << matrix.compute_name() << " rows " << rows << " tokens " << tokens);
                    const Input input(tokens, cols, 5);
                    const std::vector<float> out = multiply(matrix, bias.data(), input, tokens, isa_, 2);
                    // Weights of another float type are rounded to it too, and quantised ones in tiles.
                    const bool converted = matrix.type != type;
                    const bool tiles = in_tiles(matrix, tokens, isa_);
                    const bool int8 = matrix.path == ProductPath::kInt8 && !tiles;
                    const double step = tiles ? 2.01 * 0x1p-8 : activation_step(matrix) * (converted ? 2.01 : 1);
                    for (std::int64_t t = 0; t < tokens; ++t) {
                        for (std::int64_t r = 0; r < rows; ++r) {
                            const double expected = dot(weights.row(r), input.row(t), cols) + bias[r];
                            const double bound = product_bound(weights.row(r), input.row(t), cols, step, int8) +
                                                 std::abs(expected) * 0x1p-23;
                            ASSERT_NEAR(out[t * panel_stride(rows) + r], expected, bound) << t << " " << r;
                        }
                    }
                }
            }
        }
    }
}

TEST_P(ProductsTest, PathsFollowTheComputeType) {
    for (const DType type : kAllTypes) {
        const TestTensor weights = random_tensor("w", type, {16, 256}, 3);
        const bool quantized = dtype_info(type).quantized;
        EXPECT_EQ(pack(weights, ComputeType::kF32, isa_, pool_).compute_name(), "f32");
        const PackedMatrix bf16 = pack(weights, ComputeType::kBF16, isa_, pool_);
        EXPECT_EQ(bf16.type, quantized ? type : DType::kBF16);
        EXPECT_EQ(bf16.compute_name() == "bf16", !quantized);
        const PackedMatrix automatic = pack(weights, ComputeType::kAuto, isa_, pool_);
        EXPECT_EQ(automatic.type, type);
        const bool has_int8 = kernel_table(isa_).int8_panels[static_cast<int>(type)] != nullptr;
        EXPECT_EQ(automatic.path == ProductPath::kInt8, quantized && has_int8);
        EXPECT_EQ(automatic.compute_name(), quantized && has_int8 ? "int8" : "f32");
    }
}

// Sizes that make several token blocks and panel groups; same bits for any number of threads.
TEST_P(ProductsTest, ThreadsDoNotChangeBits) {
    for (const DType type : {DType::kF32, DType::kBF16, DType::kQ8_0, DType::kQ4_K, DType::kQ5_1}) {
        const std::int64_t rows = 250;
        const std::int64_t cols = 1024;
        const std::int64_t tokens = 150;
        const TestTensor weights = random_tensor("w", type, {rows, cols}, 21);
        const PackedMatrix matrix = pack(weights, ComputeType::kAuto, isa_, pool_);
        const Input input(tokens, cols, 6);
        const std::vector<float> one = multiply(matrix, nullptr, input, tokens, isa_, 1);
        for (const int threads : {2, 3, 5}) {
            const std::vector<float> many = multiply(matrix, nullptr, input, tokens, isa_, threads);
            ASSERT_EQ(std::memcmp(one.data(), many.data(), one.size() * sizeof(float)), 0)
                << dtype_name(type) << " " << threads;
        }
        const bool tiles = in_tiles(matrix, tokens, isa_);
        const bool int8 = matrix.path == ProductPath::kInt8 && !tiles;
        for (std::int64_t t = 0; t < tokens; t += 29) {  // and every row is right
            for (std::int64_t r = 0; r < rows; r += 31) {
                ASSERT_NEAR(one[t * panel_stride(rows) + r], dot(weights.row(r), input.row(t), cols),
                            product_bound(weights.row(r), input.row(t), cols, tiles ? 2.01 * 0x1p-8 : 0, int8));
            }
        }
    }
}

TEST_P(ProductsTest, BatchedInt8EqualsOneByOne) {
    const std::int64_t tokens = isa_ == Isa::kAmx ? kTileTokens - 1 : 70;
    for (const DType type : {DType::kQ4_0, DType::kQ8_0, DType::kQ4_K, DType::kQ6_K}) {
        const TestTensor weights = random_tensor("w", type, {48, 512}, 31);
        const PackedMatrix matrix = pack(weights, ComputeType::kAuto, isa_, pool_);
        if (matrix.path != ProductPath::kInt8) continue;
        const Input input(tokens, 512, 8);
        const std::vector<float> together = multiply(matrix, nullptr, input, tokens, isa_, 2);
        for (std::int64_t t = 0; t < tokens; ++t) {
            Input single(1, 512, 8);
            std::copy_n(input.row(t), 512, single.values.begin());
            const std::vector<float> alone = multiply(matrix, nullptr, single, 1, isa_, 2);
            ASSERT_EQ(std::memcmp(alone.data(), &together[t * 48], 48 * sizeof(float)), 0) << dtype_name(type);
        }
    }
}

// Three matrices of different types, sizes and paths in one call, as for q, k and v.
TEST_P(ProductsTest, SeveralMatricesShareOneLoop) {
    const std::int64_t cols = 256;
    const std::int64_t tokens = 19;
    const std::array<TestTensor, 3> weights = {random_tensor("q", DType::kQ4_K, {70, cols}, 1),
                                               random_tensor("k", DType::kF16, {17, cols}, 2),
                                               random_tensor("v", DType::kQ5_0, {16, cols}, 3)};
    const Input input(tokens, cols, 9);
    Products products(kernel_table(isa_), pool_);
    std::array<PackedMatrix, 3> matrices;
    std::array<std::vector<float>, 3> out;
    std::array<ProductPart, 3> parts;
    for (std::size_t i = 0; i < 3; ++i) {
        matrices[i] = pack(weights[i], ComputeType::kAuto, isa_, pool_);
        ASSERT_TRUE(products.prepare(matrices[i], tokens).has_value());
        const std::int64_t stride = panel_stride(matrices[i].rows);
        out[i].assign(static_cast<std::size_t>(tokens * stride), kNaN);
        parts[i] = {&matrices[i], nullptr, out[i].data(), stride};
    }
    products.run(parts, Epilogue::kStore, input.values.data(), input.stride, tokens);
    for (std::size_t i = 0; i < 3; ++i) {
        const std::vector<float> alone = multiply(matrices[i], nullptr, input, tokens, isa_, 1);
        EXPECT_EQ(std::memcmp(alone.data(), out[i].data(), alone.size() * sizeof(float)), 0) << weights[i].info.name;
    }
}

TEST_P(ProductsTest, AddsToTheResidual) {
    const std::int64_t rows = 35;
    const std::int64_t cols = 64;
    const std::int64_t tokens = 21;
    for (const DType type : {DType::kF32, DType::kQ8_0}) {
        const PackedMatrix matrix = pack(random_tensor("w", type, {rows, cols}, 4), ComputeType::kAuto, isa_, pool_);
        const Input input(tokens, cols, 10);
        const std::vector<float> bias = random_values(rows, 12);
        const std::vector<float> product = multiply(matrix, bias.data(), input, tokens, isa_, 1);
        const std::vector<float> before = random_values(tokens * panel_stride(rows), 13);
        std::vector<float> residual = before;
        Products products(kernel_table(isa_), pool_);
        ASSERT_TRUE(products.prepare(matrix, tokens).has_value());
        const ProductPart part{&matrix, bias.data(), residual.data(), panel_stride(rows)};
        products.run({&part, 1}, Epilogue::kAdd, input.values.data(), input.stride, tokens);
        for (std::int64_t t = 0; t < tokens; ++t) {
            for (std::int64_t r = 0; r < panel_stride(rows); ++r) {
                const std::int64_t i = t * panel_stride(rows) + r;
                ASSERT_EQ(residual[i], r < rows ? before[i] + product[i] : before[i]) << t << " " << r;
            }
        }
    }
}

TEST_P(ProductsTest, GateAndUpAreFused) {
    const std::int64_t rows = 50;
    const std::int64_t cols = 96;
    // On amx a gate in tiles and an up without would each take another path alone than together.
    for (const std::int64_t tokens : {1, isa_ == Isa::kAmx ? 31 : 140}) {
        const PackedMatrix gate =
            pack(random_tensor("g", DType::kQ8_0, {rows, cols}, 4), ComputeType::kAuto, isa_, pool_);
        const PackedMatrix up = pack(random_tensor("u", DType::kF32, {rows, cols}, 5), ComputeType::kAuto, isa_, pool_);
        const Input input(tokens, cols, 10);
        const std::vector<float> g = multiply(gate, nullptr, input, tokens, isa_, 1);
        const std::vector<float> u = multiply(up, nullptr, input, tokens, isa_, 1);
        std::vector<float> out(g.size(), kNaN);
        Products products(kernel_table(isa_), pool_);
        ASSERT_TRUE(products.prepare(gate, tokens).has_value());
        ASSERT_TRUE(products.prepare(up, tokens).has_value());
        const std::array<ProductPart, 2> parts = {ProductPart{&gate, nullptr, out.data(), panel_stride(rows)},
                                                  ProductPart{&up, nullptr, nullptr, 0}};
        products.run(parts, Epilogue::kSiluMultiply, input.values.data(), input.stride, tokens);
        for (std::int64_t t = 0; t < tokens; ++t) {
            for (std::int64_t r = 0; r < rows; ++r) {
                const std::int64_t i = t * panel_stride(rows) + r;
                const double expected = g[i] / (1 + std::exp(-static_cast<double>(g[i]))) * u[i];
                ASSERT_NEAR(out[i], expected, 6 * 0x1p-24 * std::abs(expected) + 1e-35);
            }
        }
    }
}

TEST_P(ProductsTest, FaultsInActivationsReachTheResult) {
    for (const DType type : {DType::kF32, DType::kF16, DType::kQ4_0, DType::kQ4_K, DType::kQ5_1}) {
        const PackedMatrix matrix = pack(random_tensor("w", type, {16, 512}, 4), ComputeType::kAuto, isa_, pool_);
        for (const float fault : {kNaN, std::numeric_limits<float>::infinity()}) {
            Input input(3, 512, 2);
            input.values[input.stride + 300] = fault;
            const std::vector<float> out = multiply(matrix, nullptr, input, 3, isa_, 1);
            for (int r = 0; r < 16; ++r) {
                EXPECT_FALSE(std::isfinite(out[16 + r])) << dtype_name(type);
                EXPECT_TRUE(std::isfinite(out[r]) && std::isfinite(out[32 + r])) << dtype_name(type);
            }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Isa, ProductsTest, testing::ValuesIn(supported_isas()),
                         [](const auto& parameter) { return std::string(isa_name(parameter.param)); });

class PackMatrix : public testing::Test {
protected:
    std::string error_of(const TestTensor& tensor, ComputeType compute = ComputeType::kAuto, bool repack = true) {
        const Result<PackedMatrix> matrix =
            pack_matrix(tensor.view(), compute, kernel_table(Isa::kScalar), pool_, repack);
        if (matrix.has_value()) return "";
        EXPECT_EQ(matrix.error().code, ErrorCode::kBadInput);
        return matrix.error().text;
    }
    ThreadPool pool_{3};
};

TEST_F(PackMatrix, NamesTheFirstRowThatIsNotFinite) {
    TestTensor tensor = random_tensor("blk.3.attn_q.weight", DType::kF32, {5000, 32}, 1);
    for (const std::int64_t row : {4999, 321, 300}) {
        std::memcpy(&tensor.bytes[static_cast<std::size_t>(row * 32 + 7) * 4], &kNaN, 4);
        const std::string text = error_of(tensor);
        EXPECT_NE(text.find("blk.3.attn_q.weight"), std::string::npos) << text;
        EXPECT_NE(text.find(fmt::format(" {} ", row)), std::string::npos) << text;
        EXPECT_EQ(error_of(tensor, ComputeType::kAuto, false), text);  // rows that stay in the file, too
    }
    TestTensor scales = random_tensor("q", DType::kQ8_0, {20, 32}, 1);
    scales.bytes[34 * 19] = std::byte{0xFF};  // the f16 scale of the last row becomes NaN
    scales.bytes[34 * 19 + 1] = std::byte{0x7F};
    EXPECT_NE(error_of(scales).find(" 19 "), std::string::npos) << error_of(scales);
    EXPECT_EQ(error_of(scales, ComputeType::kAuto, false), error_of(scales));
}

TEST_F(PackMatrix, RefusesValuesBeyondTheComputeType) {
    TestTensor tensor = random_tensor("w", DType::kF32, {4, 32}, 1);
    const float large = 1e5F;
    std::memcpy(&tensor.bytes[2 * 32 * 4], &large, 4);
    EXPECT_EQ(error_of(tensor), "");
    EXPECT_EQ(error_of(tensor, ComputeType::kBF16), "");
    EXPECT_NE(error_of(tensor, ComputeType::kF16).find("F16"), std::string::npos);
}

TEST_F(PackMatrix, RefusesViewsThatDoNotMatchTheirShape) {
    TestTensor tensor = random_tensor("w", DType::kQ8_0, {4, 64}, 1);
    tensor.bytes.pop_back();
    EXPECT_NE(error_of(tensor).find("271 bytes"), std::string::npos) << error_of(tensor);
    tensor.info.shape = {4, 48};
    EXPECT_NE(error_of(tensor).find("multiple of 32"), std::string::npos) << error_of(tensor);
    tensor.info.shape = {0, 64};
    EXPECT_NE(error_of(tensor).find("positive"), std::string::npos) << error_of(tensor);
    tensor.info.shape = {4, -64};
    EXPECT_NE(error_of(tensor).find("positive"), std::string::npos) << error_of(tensor);
}

TEST_F(PackMatrix, PackedBytesStayNearFileBytes) {
    for (const DType type : kAllTypes) {
        const TestTensor tensor = random_tensor("w", type, {256, 1024}, 1);
        const Result<PackedMatrix> matrix =
            pack_matrix(tensor.view(), ComputeType::kAuto, kernel_table(Isa::kScalar), pool_);
        ASSERT_TRUE(matrix.has_value());
        EXPECT_EQ(matrix->file_bytes, static_cast<std::int64_t>(tensor.bytes.size()));
        EXPECT_LE(matrix->panels * matrix->panel_bytes, matrix->file_bytes * 105 / 100) << dtype_name(type);
    }
}

}  // namespace
}  // namespace frontier

#include "tensor/tensor_view.h"

#include <gtest/gtest.h>

namespace frontier {
namespace {

TEST(TensorInfo, ShapeIsOutermostFirst) {
    const TensorInfo matrix = {"w", DType::kQ4_0, {5, 64}};
    EXPECT_EQ(matrix.rows(), 5);
    EXPECT_EQ(matrix.cols(), 64);
    EXPECT_EQ(matrix.elements(), 320);
    EXPECT_EQ(matrix.bytes(), 5 * 2 * 18);
    const TensorInfo experts = {"e", DType::kF16, {8, 5, 64}};
    EXPECT_EQ(experts.rows(), 40);
    EXPECT_EQ(experts.bytes(), 8 * 5 * 64 * 2);
    const TensorInfo vector = {"v", DType::kF32, {64}};
    EXPECT_EQ(vector.rows(), 1);
    EXPECT_EQ(vector.cols(), 64);
    const TensorInfo scalar = {"s", DType::kF32, {}};
    EXPECT_EQ(scalar.rows(), 1);
    EXPECT_EQ(scalar.cols(), 1);
    EXPECT_EQ(scalar.bytes(), 4);
}

// Past 2^31 elements.
TEST(TensorInfo, LargeShapes) {
    const TensorInfo large = {"w", DType::kF32, {152064, 65536}};
    EXPECT_EQ(large.elements(), 9'965'666'304);
    EXPECT_EQ(large.bytes(), 39'862'665'216);
}

TEST(ShapeText, Brackets) {
    EXPECT_EQ(shape_text(std::vector<std::int64_t>{4096, 256}), "[4096, 256]");
    EXPECT_EQ(shape_text(std::vector<std::int64_t>{7}), "[7]");
    EXPECT_EQ(shape_text({}), "[]");
}

}  // namespace
}  // namespace frontier

#include "tensor/dtype.h"

#include <gtest/gtest.h>

#include <set>

namespace frontier {
namespace {

// Written down from ggml-common.h's block structures: a sum of their members.
TEST(DType, BlocksHaveTheSizesOfTheirParts) {
    const auto bytes = [](DType type) { return dtype_info(type).block_bytes; };
    EXPECT_EQ(bytes(DType::kF32), 4);
    EXPECT_EQ(bytes(DType::kF16), 2);
    EXPECT_EQ(bytes(DType::kBF16), 2);
    EXPECT_EQ(bytes(DType::kQ4_0), 2 + 16);
    EXPECT_EQ(bytes(DType::kQ4_1), 2 + 2 + 16);
    EXPECT_EQ(bytes(DType::kQ5_0), 2 + 4 + 16);
    EXPECT_EQ(bytes(DType::kQ5_1), 2 + 2 + 4 + 16);
    EXPECT_EQ(bytes(DType::kQ8_0), 2 + 32);
    EXPECT_EQ(bytes(DType::kQ2_K), 256 / 16 + 256 / 4 + 2 + 2);
    EXPECT_EQ(bytes(DType::kQ3_K), 256 / 8 + 256 / 4 + 12 + 2);
    EXPECT_EQ(bytes(DType::kQ4_K), 2 + 2 + 12 + 256 / 2);
    EXPECT_EQ(bytes(DType::kQ5_K), 2 + 2 + 12 + 256 / 8 + 256 / 2);
    EXPECT_EQ(bytes(DType::kQ6_K), 256 / 2 + 256 / 4 + 256 / 16 + 2);
    EXPECT_EQ(bytes(DType::kIQ4_NL), 2 + 16);
    EXPECT_EQ(bytes(DType::kIQ4_XS), 2 + 2 + 256 / 64 + 256 / 2);
    EXPECT_EQ(bytes(DType::kMXFP4), 1 + 16);
}

TEST(DType, NamesAndIdsLeadBack) {
    std::set<std::uint32_t> ids;
    for (int i = 0; i < kDTypeCount; ++i) {
        const DTypeInfo& info = dtype_info(static_cast<DType>(i));
        EXPECT_EQ(dtype_from_name(info.name), info.type);
        EXPECT_EQ(dtype_from_gguf_id(info.gguf_id), info.type);
        EXPECT_TRUE(ids.insert(info.gguf_id).second) << info.name;
        EXPECT_EQ(info.quantized, info.block_elements > 1) << info.name;
    }
    EXPECT_EQ(dtype_from_name("q4_k"), DType::kQ4_K);
    EXPECT_EQ(dtype_from_name("Q4_K_M"), std::nullopt);
    EXPECT_EQ(dtype_from_name(""), std::nullopt);
    EXPECT_EQ(dtype_from_gguf_id(4), std::nullopt);
    EXPECT_EQ(dtype_from_gguf_id(UINT32_MAX), std::nullopt);
}

TEST(DType, RowBytes) {
    EXPECT_EQ(row_bytes(DType::kF32, 7), 28);
    EXPECT_EQ(row_bytes(DType::kQ4_0, 4096), 4096 / 32 * 18);
    EXPECT_EQ(row_bytes(DType::kQ6_K, 512), 420);
    EXPECT_EQ(row_bytes(DType::kQ6_K, 0), 0);
}

}  // namespace
}  // namespace frontier

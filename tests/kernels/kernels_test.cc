#include "kernels/kernels.h"

#include <gtest/gtest.h>

namespace frontier {
namespace {

TEST(KernelTableTest, EverySupportedSetFillsItsOwnRow) {
    const KernelTable& scalar = kernel_table(Isa::kScalar);
    for (const Isa isa : supported_isas()) {
        const KernelTable& table = kernel_table(isa);
        EXPECT_EQ(table.isa, isa);
        EXPECT_EQ(&table, &kernel_table(isa));
        for (const DType type : {DType::kF32, DType::kF16, DType::kBF16}) {
            const auto i = static_cast<std::size_t>(type);
            ASSERT_NE(table.float_panels[i], nullptr) << isa_name(isa);
            EXPECT_EQ(table.int8_panels[i], nullptr) << "unquantised weights never meet int8 activations";
            EXPECT_EQ(table.float_panels[i] == scalar.float_panels[i], isa == Isa::kScalar);
        }
        for (const DType type : {DType::kQ4_0, DType::kQ8_0, DType::kQ4_K, DType::kQ6_K}) {
            const auto i = static_cast<std::size_t>(type);
            ASSERT_NE(table.int8_panels[i], nullptr) << isa_name(isa);
            EXPECT_EQ(table.int8_panels[i] == scalar.int8_panels[i], isa == Isa::kScalar);
        }
        const bool tiles = isa == Isa::kAmx;
        EXPECT_EQ(table.round_bf16 != nullptr, tiles);
        for (const DType type : {DType::kBF16, DType::kQ4_0, DType::kQ8_0, DType::kQ4_K, DType::kQ6_K})
            EXPECT_EQ(table.bf16_tiles[static_cast<std::size_t>(type)] != nullptr, tiles) << isa_name(isa);
        for (const DType type : {DType::kF32, DType::kF16})
            EXPECT_EQ(table.bf16_tiles[static_cast<std::size_t>(type)], nullptr) << "their values do not fit bf16";
        EXPECT_EQ(table.quantize_q8 == scalar.quantize_q8, isa == Isa::kScalar);
        EXPECT_EQ(table.rms_norm == scalar.rms_norm, isa == Isa::kScalar);
        EXPECT_EQ(table.attention == scalar.attention, isa == Isa::kScalar);
    }
}

}  // namespace
}  // namespace frontier

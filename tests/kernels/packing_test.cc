#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/hash.h"
#include "test_data.h"

namespace frontier {
namespace {

std::vector<DType> all_types() {
    std::vector<DType> types;
    for (int i = 0; i < kDTypeCount; ++i) types.push_back(static_cast<DType>(i));
    return types;
}

std::string type_name(const testing::TestParamInfo<DType>& info) {
    return std::string(dtype_name(info.param));
}

class PackingTest : public testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(Types, PackingTest, testing::ValuesIn(all_types()), type_name);

std::vector<std::int64_t> some_cols(DType type) {
    const std::int64_t block = dtype_info(type).block_elements;
    if (block == 1) return {1, 2, 5, 64, 257, 512};
    return {block, 2 * block, 9 * block};
}

std::vector<std::uint32_t> bits(const std::vector<float>& x) {
    std::vector<std::uint32_t> b;
    for (const float v : x) b.push_back(std::bit_cast<std::uint32_t>(v));
    return b;
}

TEST_P(PackingTest, UnpacksToExactlyTheFileRows) {
    const DType type = GetParam();
    for (const std::int64_t cols : some_cols(type)) {
        for (const int valid : {1, 7, 16}) {
            SCOPED_TRACE(fmt::format("cols {} rows {}", cols, valid));
            const auto rows = random_rows(type, valid, cols, 17);
            const auto panel = packed(type, rows, valid, cols);
            std::vector<float> dequantised(static_cast<std::size_t>(kPanelRows * cols));
            dequantize_panel(type, panel.data(), cols, dequantised.data());
            for (int lane = 0; lane < kPanelRows; ++lane) {
                std::vector<float> expected(static_cast<std::size_t>(cols), 0.0F);
                if (lane < valid)
                    dequantize_row(type, rows.data() + lane * row_bytes(type, cols), cols, expected.data());
                std::vector<float> unpacked(static_cast<std::size_t>(cols), -1.0F);
                unpack_row(type, panel.data(), lane, cols, unpacked.data());
                if (lane < valid) {
                    ASSERT_EQ(bits(unpacked), bits(expected)) << "lane " << lane;
                } else {
                    ASSERT_EQ(unpacked, expected) << "lane " << lane;  // zeros of either sign
                }
                for (std::int64_t k = 0; k < cols; ++k)
                    ASSERT_EQ(std::bit_cast<std::uint32_t>(dequantised[k * kPanelRows + lane]),
                              std::bit_cast<std::uint32_t>(unpacked[k]))
                        << "lane " << lane << " k " << k;
            }
        }
    }
}

// Packed weights are kept in files. If this fails, the layout has changed: raise kPackingVersion and renew the hashes.
TEST_P(PackingTest, LayoutIsThatOfItsVersion) {
    ASSERT_EQ(kPackingVersion, 1U);
    const std::map<DType, std::uint64_t> hashes = {
        {DType::kF32, 0x01D585E697167A9EULL},    {DType::kF16, 0xE2CA1CCC5CB63477ULL},
        {DType::kBF16, 0x8FD02935E71CBD0FULL},   {DType::kQ4_0, 0xA65D42A5CF11BAF1ULL},
        {DType::kQ4_1, 0x811A7EB08DD0968CULL},   {DType::kQ5_0, 0x895D0CE29E36E468ULL},
        {DType::kQ5_1, 0x088412DE4FF5EB7AULL},   {DType::kQ8_0, 0xB57688A3C5754FEFULL},
        {DType::kQ2_K, 0x90FE6D1D18ACD418ULL},   {DType::kQ3_K, 0xB4E3189F02C9D787ULL},
        {DType::kQ4_K, 0x6B94691213B1FA05ULL},   {DType::kQ5_K, 0xE069D1C5F8431900ULL},
        {DType::kQ6_K, 0x5A78968F8A542A76ULL},   {DType::kIQ4_NL, 0x073209B3428D0CAEULL},
        {DType::kIQ4_XS, 0x5419541665B7216DULL}, {DType::kMXFP4, 0x3186862B60CACE35ULL},
    };
    const DType type = GetParam();
    const std::int64_t cols = 2 * std::max<std::int64_t>(dtype_info(type).block_elements, 32);
    const auto rows = random_rows(type, 13, cols, 99);
    const auto panel = packed(type, rows, 13, cols);
    EXPECT_EQ(fnv1a64(panel.data(), static_cast<std::size_t>(panel_bytes(type, cols))), hashes.at(type));
}

TEST_P(PackingTest, TakesAtMostAFewPercentMoreThanTheFile) {
    const DType type = GetParam();
    const std::int64_t cols = 4096;
    EXPECT_LE(static_cast<double>(panel_bytes(type, cols)),
              1.05 * static_cast<double>(kPanelRows * row_bytes(type, cols)));
}

TEST_P(PackingTest, WritesThePanelAndNoMore) {
    const DType type = GetParam();
    const std::int64_t cols = some_cols(type)[2];
    const auto rows = random_rows(type, 5, cols, 18);
    const auto size = static_cast<std::size_t>(panel_bytes(type, cols));
    std::vector<std::byte> first(size + 64, std::byte{0x5A});
    std::vector<std::byte> second(size + 64, std::byte{0xA5});
    pack_panel(type, rows.data(), 5, cols, first.data());
    pack_panel(type, rows.data(), 5, cols, second.data());
    for (std::size_t i = 0; i < size; ++i) ASSERT_EQ(first[i], second[i]) << "byte " << i << " was not written";
    for (std::size_t i = size; i < size + 64; ++i) ASSERT_EQ(first[i], std::byte{0x5A});
}

TEST(PackingTest, LayoutIsTheDocumentedOne) {
    // One row of Q4_0 whose nibble at k is k % 16: word 0 of row 0 holds k = 0..3 low and k = 16..19 high.
    std::vector<std::byte> rows(18);
    rows[1] = std::byte{0x3C};  // d = 1
    for (unsigned i = 0; i < 16; ++i) rows[2 + i] = static_cast<std::byte>(i | i << 4);
    const auto panel = packed(DType::kQ4_0, rows, 1, 32);
    EXPECT_EQ(panel[1], std::byte{0x3C});
    for (unsigned w = 0; w < 4; ++w)
        for (unsigned j = 0; j < 4; ++j) EXPECT_EQ(panel[32 + 64 * w + j], static_cast<std::byte>((4 * w + j) * 17));
}

}  // namespace
}  // namespace frontier

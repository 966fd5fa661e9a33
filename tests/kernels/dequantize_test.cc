// Dequantisation against hashes of what ggml's own functions gave for the same bytes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/hash.h"
#include "test_data.h"

namespace frontier {
namespace {

struct Golden {
    DType type;
    std::uint64_t hash;  // FNV-1a of the f32 values of golden_bytes(type)
};

// The offsets of f16 fields, -1: none.
struct F16Fields {
    int first;
    int second;
};
F16Fields f16_fields(DType type) {
    switch (type) {
        case DType::kF32:
        case DType::kBF16:
        case DType::kMXFP4:
            return {-1, -1};
        case DType::kQ4_1:
        case DType::kQ5_1:
        case DType::kQ4_K:
        case DType::kQ5_K:
            return {0, 2};
        case DType::kQ2_K:
            return {80, 82};
        case DType::kQ3_K:
            return {108, -1};
        case DType::kQ6_K:
            return {208, -1};
        default:
            return {0, -1};
    }
}

constexpr int kGoldenBlocks = 64;

// Random bytes, except that nothing is NaN or infinite: the top exponent bit of every float (the top bit of an
// exponent byte) is cleared.
std::vector<std::byte> golden_bytes(DType type) {
    const std::int64_t block = dtype_info(type).block_bytes;
    std::vector<std::byte> bytes(static_cast<std::size_t>(kGoldenBlocks * block));
    const RandomStream random(2024, static_cast<std::uint64_t>(dtype_info(type).gguf_id));
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(random.at(i) >> 56);
    const F16Fields fields = f16_fields(type);
    for (int b = 0; b < kGoldenBlocks; ++b) {
        std::byte* p = bytes.data() + b * block;
        if (fields.first >= 0) p[fields.first + 1] &= std::byte{0xBF};
        if (fields.second >= 0) p[fields.second + 1] &= std::byte{0xBF};
        if (type == DType::kF32 || type == DType::kBF16) p[block - 1] &= std::byte{0xBF};
        if (type == DType::kMXFP4) p[0] &= std::byte{0x7F};
    }
    return bytes;
}

constexpr Golden kGoldens[] = {
    {DType::kF32, 0x1A803FEE1C384E90},   {DType::kF16, 0x07CAD97AE2A7966F},    {DType::kBF16, 0x25BD49590E48DF82},
    {DType::kQ4_0, 0x0F9C9312C7BDAB7B},  {DType::kQ4_1, 0x7FBD1C57586A5493},   {DType::kQ5_0, 0x22F0EBC64A7D38BB},
    {DType::kQ5_1, 0x1E4950DDECDF0E80},  {DType::kQ8_0, 0x573ED3AD98AA18FA},   {DType::kQ2_K, 0x4D468AEAFF9555CD},
    {DType::kQ3_K, 0x9735490BC5A20148},  {DType::kQ4_K, 0x6DFBEB899DDCC976},   {DType::kQ5_K, 0x8BBCA88BA2B02F8F},
    {DType::kQ6_K, 0x3DCDDD70F127334B},  {DType::kIQ4_NL, 0x1FAFE02F1285DEE0}, {DType::kIQ4_XS, 0x978C3BB7B2EFE687},
    {DType::kMXFP4, 0xB2FCD5593C8D6D07},
};

TEST(DequantizeTest, AgreesWithGgml) {
    for (const Golden& golden : kGoldens) {
        const auto bytes = golden_bytes(golden.type);
        const std::int64_t elements = kGoldenBlocks * dtype_info(golden.type).block_elements;
        std::vector<float> x(static_cast<std::size_t>(elements));
        dequantize_row(golden.type, bytes.data(), elements, x.data());
        EXPECT_EQ(fnv1a64(x.data(), x.size() * sizeof(float)), golden.hash) << dtype_name(golden.type);
    }
}

TEST(DequantizeTest, HandmadeBlocks) {
    // Q4_0, d = 2: byte i holds elements i (low nibble) and 16 + i.
    std::vector<std::byte> q4_0(18);
    q4_0[1] = std::byte{0x40};
    q4_0[2] = std::byte{0xF0};
    std::vector<float> x(32);
    dequantize_row(DType::kQ4_0, q4_0.data(), 32, x.data());
    EXPECT_EQ(x[0], -16.0F);
    EXPECT_EQ(x[16], 14.0F);
    // MXFP4, e = 127 (scale 1): E2M1 codes 0..15.
    std::vector<std::byte> mxfp4(17);
    mxfp4[0] = std::byte{127};
    for (unsigned i = 0; i < 16; ++i) mxfp4[1 + i] = static_cast<std::byte>(i);
    dequantize_row(DType::kMXFP4, mxfp4.data(), 32, x.data());
    const std::vector<float> e2m1 = {0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6};
    for (std::size_t i = 0; i < 16; ++i) EXPECT_EQ(x[i], e2m1[i]);
    for (const unsigned e : {0U, 1U, 2U}) {  // subnormal scales
        mxfp4[0] = static_cast<std::byte>(e);
        dequantize_row(DType::kMXFP4, mxfp4.data(), 32, x.data());
        EXPECT_EQ(x[2], std::ldexp(1.0F, static_cast<int>(e) - 127));
    }
}

TEST(DequantizeTest, NonFiniteScalesAreFound) {
    for (int i = 0; i < kDTypeCount; ++i) {
        const auto type = static_cast<DType>(i);
        const DTypeInfo& info = dtype_info(type);
        const auto bytes = golden_bytes(type);
        const std::int64_t elements = kGoldenBlocks * info.block_elements;
        ASSERT_TRUE(row_is_finite(type, bytes.data(), elements)) << info.name;
        // Make the exponent of each float field of each block all ones in turn.
        const F16Fields fields = f16_fields(type);
        std::vector<int> high_bytes;
        if (type == DType::kMXFP4) high_bytes = {0};
        if (type == DType::kF32 || type == DType::kBF16) high_bytes = {static_cast<int>(info.block_bytes) - 1};
        if (fields.first >= 0) high_bytes.push_back(fields.first + 1);
        if (fields.second >= 0) high_bytes.push_back(fields.second + 1);
        for (int b = 0; b < kGoldenBlocks; ++b) {
            for (const int at : high_bytes) {
                auto broken = bytes;
                std::byte* p = broken.data() + b * info.block_bytes + at;
                *p |= type == DType::kMXFP4 ? std::byte{0xFF} : std::byte{0x7F};
                if (type == DType::kF32 || type == DType::kBF16) p[-1] |= std::byte{0x80};
                EXPECT_FALSE(row_is_finite(type, broken.data(), elements)) << fmt::format("{} block {}", info.name, b);
                std::vector<float> x(static_cast<std::size_t>(elements));
                dequantize_row(type, broken.data(), elements, x.data());
                bool finite = true;
                for (const float v : x) finite = finite && std::isfinite(v);
                // A zero sub-scale can hide a broken scale only in the types that have one, and not in 256 elements.
                EXPECT_FALSE(finite) << fmt::format("{} block {}", info.name, b);
            }
        }
    }
}

}  // namespace
}  // namespace frontier

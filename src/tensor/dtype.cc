#include "tensor/dtype.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace frontier {
namespace {

constexpr std::array<DTypeInfo, kDTypeCount> kInfo = {{
    {DType::kF32, "F32", 1, 4, 0, false},
    {DType::kF16, "F16", 1, 2, 1, false},
    {DType::kBF16, "BF16", 1, 2, 30, false},
    {DType::kQ4_0, "Q4_0", 32, 18, 2, true},
    {DType::kQ4_1, "Q4_1", 32, 20, 3, true},
    {DType::kQ5_0, "Q5_0", 32, 22, 6, true},
    {DType::kQ5_1, "Q5_1", 32, 24, 7, true},
    {DType::kQ8_0, "Q8_0", 32, 34, 8, true},
    {DType::kQ2_K, "Q2_K", 256, 84, 10, true},
    {DType::kQ3_K, "Q3_K", 256, 110, 11, true},
    {DType::kQ4_K, "Q4_K", 256, 144, 12, true},
    {DType::kQ5_K, "Q5_K", 256, 176, 13, true},
    {DType::kQ6_K, "Q6_K", 256, 210, 14, true},
    {DType::kIQ4_NL, "IQ4_NL", 32, 18, 20, true},
    {DType::kIQ4_XS, "IQ4_XS", 256, 136, 23, true},
    {DType::kMXFP4, "MXFP4", 32, 17, 39, true},
}};

constexpr bool in_enum_order() {
    for (std::size_t i = 0; i < kInfo.size(); ++i)
        if (static_cast<std::size_t>(kInfo[i].type) != i) return false;
    return true;
}
static_assert(in_enum_order(), "dtype_info indexes the table by the enum's value");

bool same_ignoring_case(std::string_view a, std::string_view b) {
    return std::ranges::equal(a, b,
                              [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

}  // namespace

const DTypeInfo& dtype_info(DType type) {
    return kInfo[static_cast<std::size_t>(type)];
}

std::optional<DType> dtype_from_name(std::string_view name) {
    for (const DTypeInfo& info : kInfo)
        if (same_ignoring_case(info.name, name)) return info.type;
    return std::nullopt;
}

std::optional<DType> dtype_from_gguf_id(std::uint32_t id) {
    for (const DTypeInfo& info : kInfo)
        if (info.gguf_id == id) return info.type;
    return std::nullopt;
}

}  // namespace frontier

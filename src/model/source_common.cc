#include <algorithm>
#include <array>

#include "model/source.h"

namespace frontier {

std::string weight_type_of(const std::vector<TensorInfo>& tensors) {
    std::array<std::int64_t, kDTypeCount> bytes{};
    for (const TensorInfo& info : tensors)
        if (info.shape.size() >= 2) bytes[static_cast<std::size_t>(info.type)] += info.bytes();
    std::vector<DType> types;
    for (int i = 0; i < kDTypeCount; ++i)
        if (bytes[static_cast<std::size_t>(i)] > 0) types.push_back(static_cast<DType>(i));
    std::ranges::stable_sort(types, std::ranges::greater{},
                             [&](DType type) { return bytes[static_cast<std::size_t>(type)]; });
    std::string text;
    for (const DType type : types) {
        if (!text.empty()) text += "+";
        text += dtype_name(type);
    }
    return text;
}

}  // namespace frontier

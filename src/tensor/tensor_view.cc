#include "tensor/tensor_view.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace frontier {

std::string shape_text(std::span<const std::int64_t> shape) {
    return fmt::format("[{}]", fmt::join(shape, ", "));
}

}  // namespace frontier

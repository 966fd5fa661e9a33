// A tensor as it lies in its file: name, type, named shape outermost first, bytes. Does not own the bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tensor/dtype.h"

namespace frontier {

struct TensorInfo {
    std::string name;
    DType type = DType::kF32;
    // Outermost first; the last dimension is contiguous. A matrix is {rows = output features, cols = input features}.
    std::vector<std::int64_t> shape;

    std::int64_t elements() const {
        std::int64_t n = 1;
        for (const std::int64_t d : shape) n *= d;
        return n;
    }
    std::int64_t cols() const { return shape.empty() ? 1 : shape.back(); }
    std::int64_t rows() const {
        std::int64_t n = 1;
        for (std::size_t i = 0; i + 1 < shape.size(); ++i) n *= shape[i];
        return n;
    }
    std::int64_t bytes() const { return row_bytes(type, elements()); }
};

struct TensorView {
    TensorInfo info;
    std::span<const std::byte> data;  // info.bytes() long, row after row
};

// "[4096, 256]"
std::string shape_text(std::span<const std::int64_t> shape);

}  // namespace frontier

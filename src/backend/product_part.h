// What a product operation of the CPU backend consists of.
#pragma once

#include <cstdint>

#include "backend/cpu_weights.h"

namespace frontier {

// out[t][rows of matrix] = in[t] . matrix^T (+ bias)
struct ProductPart {
    const PackedMatrix* matrix = nullptr;
    const float* bias = nullptr;  // [rows] or null
    float* out = nullptr;         // [tokens][out_stride]
    std::int64_t out_stride = 0;  // floats, at least rows rounded up to whole panels
};

enum class Epilogue : std::uint8_t {
    kStore,        // out = product
    kAdd,          // out += product
    kSiluMultiply  // two parts of equal shape, gate and up: out of the first = silu(gate) * up
};

}  // namespace frontier

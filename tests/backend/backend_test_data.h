// Inputs for the backend tests, from fixed streams, and plain references in double.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "base/rng.h"
#include "kernels/packing.h"
#include "tensor/random_blocks.h"
#include "tensor/tensor_view.h"

namespace frontier {

// A tensor with storage and its exact values.
struct TestTensor {
    TensorInfo info;
    std::vector<std::byte> bytes;
    std::vector<float> values;  // row after row

    TensorView view() const { return {info, bytes}; }
    const float* row(std::int64_t r) const { return values.data() + r * info.cols(); }
};

inline TestTensor random_tensor(const std::string& name, DType type, std::vector<std::int64_t> shape,
                                std::uint64_t seed, float stddev = 0.05F) {
    TestTensor tensor;
    tensor.info = {name, type, std::move(shape)};
    const std::int64_t elements = tensor.info.elements();
    tensor.bytes.resize(static_cast<std::size_t>(tensor.info.bytes()));
    fill_random_blocks(type, seed, 0, 0, elements / dtype_info(type).block_elements, stddev, tensor.bytes.data());
    tensor.values.resize(static_cast<std::size_t>(elements));
    dequantize_row(type, tensor.bytes.data(), elements, tensor.values.data());
    return tensor;
}

inline std::vector<float> random_values(std::int64_t n, std::uint64_t seed) {
    RandomStream random(seed, 3);
    std::vector<float> values(static_cast<std::size_t>(n));
    for (float& v : values) v = static_cast<float>(2 * random.next_double() - 1);
    return values;
}

inline double dot(const float* a, const float* b, std::int64_t n) {
    double sum = 0;
    for (std::int64_t i = 0; i < n; ++i) sum += static_cast<double>(a[i]) * b[i];
    return sum;
}

// What a product of a row with activations may be off by. f32: one rounding per step, n + 2 of them, relative to the
// sum of magnitudes; with 8 bits for activations also half a quantisation step, max / 254 of their block of 32.
inline double product_bound(const float* weights, const float* x, std::int64_t n, double activation_step,
                            bool int8_activations) {
    constexpr double kUnit = 0x1p-24;
    double magnitude = 0;
    double quantisation = 0;
    for (std::int64_t block = 0; block < n; block += 32) {
        double largest = 0;
        double weight = 0;
        for (std::int64_t k = block; k < std::min(n, block + 32); ++k) {
            largest = std::max(largest, std::abs(static_cast<double>(x[k])));
            weight += std::abs(static_cast<double>(weights[k]));
            magnitude += std::abs(static_cast<double>(weights[k]) * x[k]);
        }
        if (int8_activations) quantisation += weight * largest / 254;
    }
    // 1.01: the magnitudes above are those of the exact activations.
    return 1.01 * (quantisation + magnitude * (static_cast<double>(n + 4) * kUnit + activation_step)) + 1e-30;
}

}  // namespace frontier

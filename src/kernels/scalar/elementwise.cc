// Elementwise kernels in plain C++: double inside, one rounding at the end. The definition of correct.
#include <cmath>
#include <cstring>

#include "kernels/isa_functions.h"
#include "tensor/half.h"

namespace frontier::scalar {
namespace {

void rms_norm(const float* x, const float* gain, float eps, std::int64_t n, float* out) {
    double sum = 0;
    for (std::int64_t i = 0; i < n; ++i) sum += static_cast<double>(x[i]) * x[i];
    const double factor = 1.0 / std::sqrt(sum / static_cast<double>(n) + static_cast<double>(eps));
    for (std::int64_t i = 0; i < n; ++i) out[i] = static_cast<float>(x[i] * factor * gain[i]);
}

void add(float* x, const float* y, std::int64_t n) {
    for (std::int64_t i = 0; i < n; ++i) x[i] += y[i];
}

void silu_multiply(const float* gate, const float* up, std::int64_t n, float* out) {
    for (std::int64_t i = 0; i < n; ++i) {
        const double g = gate[i];
        out[i] = static_cast<float>(g / (1.0 + std::exp(-g)) * up[i]);
    }
}

void rope(float* x, const float* cos_sin, int pairs, bool interleaved) {
    for (int i = 0; i < pairs; ++i) {
        float& first = interleaved ? x[2 * i] : x[i];
        float& second = interleaved ? x[2 * i + 1] : x[i + pairs];
        const double a = first;
        const double b = second;
        const double c = cos_sin[2 * i];
        const double s = cos_sin[2 * i + 1];
        first = static_cast<float>(a * c - b * s);
        second = static_cast<float>(b * c + a * s);
    }
}

// Element `index` of an array of the page's type.
void store_element(std::byte* base, std::int64_t index, KvType type, float value) {
    if (type == KvType::kF16) {
        const F16 half = to_f16(value);
        std::memcpy(base + 2 * index, &half, 2);
    } else {
        std::memcpy(base + 4 * index, &value, 4);
    }
}

void store_k(const float* k, int head_dim, KvType type, int token, std::byte* page) {
    for (int d = 0; d < head_dim; ++d) store_element(page, std::int64_t{d} * kPageTokens + token, type, k[d]);
}

void store_v(const float* v, int head_dim, KvType type, int token, std::byte* page) {
    for (int d = 0; d < head_dim; ++d) store_element(page, std::int64_t{token} * head_dim + d, type, v[d]);
}

}  // namespace

void fill_elementwise(KernelTable& table) {
    table.rms_norm = rms_norm;
    table.add = add;
    table.silu_multiply = silu_multiply;
    table.rope = rope;
    table.store_k = store_k;
    table.store_v = store_v;
}

}  // namespace frontier::scalar

// F32, F16 and BF16 panels in plain C++: f64 sums in ascending k. The definition of correct.
#include <cstring>

#include "kernels/isa_functions.h"
#include "tensor/half.h"

namespace frontier::scalar {
namespace {

// Each loads the 16 weights of one k.
struct F32Weights {
    static std::int64_t panel_bytes(std::int64_t cols) { return 64 * cols; }
    static void load(const std::byte* panel, std::int64_t k, float* w) { std::memcpy(w, panel + 64 * k, 64); }
};

template <typename Half>
struct PairWeights {
    static std::int64_t panel_bytes(std::int64_t cols) { return 64 * ((cols + 1) / 2); }
    static void load(const std::byte* panel, std::int64_t k, float* w) {
        for (int lane = 0; lane < kPanelRows; ++lane) {
            Half x;
            std::memcpy(&x, panel + 4 * (k / 2 * kPanelRows + lane) + 2 * (k % 2), 2);
            w[lane] = to_f32(x);
        }
    }
};

// Weights are widened once per k for up to kTokens tokens; the sums of a tile take 1 KiB.
constexpr int kTokens = 8;

template <typename Weights>
void tile(const std::byte* panel, std::int64_t cols, const float* activations, std::int64_t activation_stride,
          int tokens, float* out, std::int64_t out_stride) {
    double sums[kTokens][kPanelRows] = {};
    for (std::int64_t k = 0; k < cols; ++k) {
        float w[kPanelRows];
        Weights::load(panel, k, w);
        for (int t = 0; t < tokens; ++t) {
            const double a = activations[t * activation_stride + k];
            for (int lane = 0; lane < kPanelRows; ++lane) sums[t][lane] += static_cast<double>(w[lane]) * a;
        }
    }
    for (int t = 0; t < tokens; ++t)
        for (int lane = 0; lane < kPanelRows; ++lane) out[t * out_stride + lane] = static_cast<float>(sums[t][lane]);
}

template <typename Weights>
void panels_matmul(const std::byte* panels, int count, std::int64_t cols, const float* activations,
                   std::int64_t activation_stride, int tokens, float* out, std::int64_t out_stride) {
    const std::int64_t panel_bytes = Weights::panel_bytes(cols);
    for (int p = 0; p < count; ++p) {
        for (int t = 0; t < tokens; t += kTokens) {
            const int tile_tokens = tokens - t < kTokens ? tokens - t : kTokens;
            tile<Weights>(panels + p * panel_bytes, cols, activations + t * activation_stride, activation_stride,
                          tile_tokens, out + t * out_stride + p * kPanelRows, out_stride);
        }
    }
}

}  // namespace

void fill_matmul_float(KernelTable& table) {
    table.float_panels[static_cast<int>(DType::kF32)] = panels_matmul<F32Weights>;
    table.float_panels[static_cast<int>(DType::kF16)] = panels_matmul<PairWeights<F16>>;
    table.float_panels[static_cast<int>(DType::kBF16)] = panels_matmul<PairWeights<BF16>>;
}

}  // namespace frontier::scalar

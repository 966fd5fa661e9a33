// Inputs for the kernel tests: all from fixed streams.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "base/rng.h"
#include "kernels/kernels.h"
#include "kernels/packing.h"
#include "tensor/random_blocks.h"

namespace frontier {

inline std::vector<std::byte> random_rows(DType type, std::int64_t rows, std::int64_t cols, std::uint64_t seed,
                                          float stddev = 0.05F) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(rows * row_bytes(type, cols)));
    const std::int64_t blocks = rows * cols / dtype_info(type).block_elements;
    fill_random_blocks(type, seed, 0, 0, blocks, stddev, bytes.data());
    return bytes;
}

inline std::vector<std::byte> packed(DType type, const std::vector<std::byte>& rows, int valid_rows,
                                     std::int64_t cols) {
    std::vector<std::byte> panel(static_cast<std::size_t>(panel_bytes(type, cols)));
    pack_panel(type, rows.data(), valid_rows, cols, panel.data());
    return panel;
}

// Uniform in [-1, 1), with one value ten times larger in every 37: outliers as real activations have.
inline std::vector<float> random_activations(std::int64_t count, std::uint64_t seed) {
    RandomStream random(seed, 1);
    std::vector<float> x(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < x.size(); ++i)
        x[i] = static_cast<float>((2 * random.next_double() - 1) * (i % 37 == 5 ? 10 : 1));
    return x;
}

// Int8 activations with storage.
struct Quantized {
    Quantized(const KernelTable& table, const std::vector<float>& x, int tokens, std::int64_t cols)
        : quants(x.size()), scales(x.size() / 32), scaled_sums(x.size() / 32), sums(x.size() / 16) {
        view = {quants.data(), scales.data(), scaled_sums.data(), sums.data(), cols};
        for (int t = 0; t < tokens; ++t) table.quantize_q8(x.data() + t * cols, view.from_token(t));
    }
    std::vector<std::int8_t> quants;
    std::vector<float> scales;
    std::vector<float> scaled_sums;
    std::vector<std::int16_t> sums;
    Q8Activations view;
};

// An output matrix [tokens][stride] inside guard zones, all of it filled with one NaN pattern.
class GuardedOutput {
public:
    GuardedOutput(int tokens, std::int64_t stride, std::int64_t lanes = kPanelRows)
        : tokens_(tokens),
          stride_(stride),
          lanes_(lanes),
          data_(static_cast<std::size_t>(2 * kGuard + tokens * stride), filler()) {}
    float* data() { return data_.data() + kGuard; }
    std::int64_t stride() const { return stride_; }
    float at(int token, int lane) const { return data_[static_cast<std::size_t>(kGuard + token * stride_ + lane)]; }
    // Whether everything outside [tokens][lanes] still holds the filler, bit for bit.
    bool guards_intact() const {
        for (std::int64_t i = 0; i < static_cast<std::int64_t>(data_.size()); ++i) {
            const std::int64_t p = i - kGuard;
            const bool inside = p >= 0 && p < tokens_ * stride_ && p % stride_ < lanes_;
            if (!inside && std::bit_cast<std::uint32_t>(data_[static_cast<std::size_t>(i)]) != kFiller) return false;
        }
        return true;
    }

private:
    static constexpr std::uint32_t kFiller = 0x7FC5A5A5;
    static constexpr std::int64_t kGuard = 32;
    static float filler() { return std::bit_cast<float>(kFiller); }
    int tokens_;
    std::int64_t stride_;
    std::int64_t lanes_;
    std::vector<float> data_;
};

// Half an ulp of a number in [1, 2): the largest relative error of one f32 rounding.
inline constexpr double kF32Rounding = 0x1p-24;

}  // namespace frontier

// Differential: arbitrary weight bytes and activations through the kernels of every instruction set of this host. The
// integer path must give equal bits, the float path sums within the bound of their roundings. Input: type, tokens,
// blocks of columns, then bytes that are repeated as weights (made finite, as the loader guarantees) and activations.
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "kernels/kernels.h"

namespace {

using namespace frontier;

constexpr DType kTypes[] = {DType::kF32,  DType::kF16,  DType::kBF16, DType::kQ4_0,
                            DType::kQ8_0, DType::kQ4_K, DType::kQ5_K, DType::kQ6_K};
constexpr int kPanels = 3;

// A stream of the input's bytes, over and over.
class Bytes {
public:
    Bytes(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}
    std::uint8_t next() { return data_[at_++ % size_]; }

private:
    const std::uint8_t* data_;
    std::size_t size_;
    std::size_t at_ = 0;
};

struct Case {
    DType type = DType::kF32;
    int tokens = 0;
    std::int64_t cols = 0;
    std::vector<std::byte> panels;
    std::vector<float> activations;
};

// Small numbers of either sign, so that no sum overflows; now and then an outlier.
float activation(Bytes& bytes) {
    const auto x = static_cast<float>(static_cast<std::int8_t>(bytes.next()));
    return x * (bytes.next() % 64 == 0 ? 8.0F : 0.0625F);
}

bool read_case(const std::uint8_t* data, std::size_t size, Case& c) {
    if (size < 8) return false;
    Bytes bytes(data, size);
    c.type = kTypes[bytes.next() % std::size(kTypes)];
    c.tokens = 1 + bytes.next() % 33;
    const DTypeInfo& info = dtype_info(c.type);
    const std::int64_t blocks = 1 + bytes.next() % (info.block_elements == 256  ? 3
                                                    : info.block_elements == 32 ? 20
                                                                                : 67);
    c.cols = blocks * info.block_elements;
    c.panels.resize(static_cast<std::size_t>(kPanels * panel_bytes(c.type, c.cols)));
    std::vector<std::byte> row(static_cast<std::size_t>(row_bytes(c.type, c.cols)));
    std::vector<std::byte> rows;
    for (int p = 0; p < kPanels; ++p) {
        rows.clear();
        const int valid_rows = 1 + bytes.next() % kPanelRows;
        for (int r = 0; r < valid_rows; ++r) {
            for (std::byte& b : row) b = static_cast<std::byte>(bytes.next());
            // The loader refuses what is not finite.
            if (!row_is_finite(c.type, row.data(), c.cols)) std::memset(row.data(), 0x11, row.size());
            rows.insert(rows.end(), row.begin(), row.end());
        }
        pack_panel(c.type, rows.data(), valid_rows, c.cols, c.panels.data() + p * panel_bytes(c.type, c.cols));
    }
    c.activations.resize(static_cast<std::size_t>(c.tokens * c.cols));
    for (float& x : c.activations) x = activation(bytes);
    return true;
}

std::vector<float> multiply(const KernelTable& table, const Case& c) {
    constexpr std::int64_t kStride = kPanels * kPanelRows;
    std::vector<float> out(static_cast<std::size_t>(c.tokens * kStride));
    const auto type = static_cast<std::size_t>(c.type);
    if (table.int8_panels[type] == nullptr) {
        table.float_panels[type](c.panels.data(), kPanels, c.cols, c.activations.data(), c.cols, c.tokens, out.data(),
                                 kStride);
        return out;
    }
    std::vector<std::int8_t> quants(c.activations.size());
    std::vector<float> scales(c.activations.size() / kQ8Block);
    std::vector<float> scaled_sums(scales.size());
    std::vector<std::int16_t> sums(c.activations.size() / 16);
    const Q8Activations q8 = {quants.data(), scales.data(), scaled_sums.data(), sums.data(), c.cols};
    for (int t = 0; t < c.tokens; ++t) table.quantize_q8(c.activations.data() + t * c.cols, q8.from_token(t));
    table.int8_panels[type](c.panels.data(), kPanels, q8, c.tokens, out.data(), kStride);
    return out;
}

// Sum of the magnitudes of the products of one output: what the roundings are relative to.
double size_of(const Case& c, int token, int panel, int lane) {
    std::vector<float> w(static_cast<std::size_t>(c.cols));
    unpack_row(c.type, c.panels.data() + panel * panel_bytes(c.type, c.cols), lane, c.cols, w.data());
    double size = 0;
    for (std::int64_t k = 0; k < c.cols; ++k)
        size += std::abs(static_cast<double>(w[k]) * c.activations[token * c.cols + k]);
    return size;
}

void compare(const Case& c, const std::vector<float>& scalar, const std::vector<float>& other, bool integer) {
    for (std::size_t i = 0; i < scalar.size(); ++i) {
        if (std::bit_cast<std::uint32_t>(scalar[i]) == std::bit_cast<std::uint32_t>(other[i])) continue;
        if (integer) std::abort();
        const auto lane = static_cast<int>(i % (kPanels * kPanelRows));
        const auto token = static_cast<int>(i / (kPanels * kPanelRows));
        const double size = size_of(c, token, lane / kPanelRows, lane % kPanelRows);
        // Near f32's range sums overflow in one order and not in another, near its smallest numbers bits are lost.
        if (!(size < 1e37) || size < 1e-30) continue;
        if (!(std::abs(scalar[i] - other[i]) <= static_cast<double>(c.cols + 2) * 0x1p-24 * size)) std::abort();
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Case c;
    if (!read_case(data, size, c)) return 0;
    const bool integer = dtype_info(c.type).quantized;
    const std::vector<float> scalar = multiply(kernel_table(Isa::kScalar), c);
    for (const Isa isa : supported_isas())
        if (isa != Isa::kScalar) compare(c, scalar, multiply(kernel_table(isa), c), integer);
    return 0;
}

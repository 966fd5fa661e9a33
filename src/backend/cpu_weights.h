// Weights of the CPU backend: packed once at upload into panels of 16 rows, with the path their products take.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/pack_cache.h"
#include "platform/memory.h"
#include "platform/thread_pool.h"

namespace frontier {

enum class ProductPath : std::uint8_t {
    kInt8,       // int8 activations, integer block sums
    kFloat,      // the float kernel of the packed type
    kDequantize  // panel to f32 in scratch, then the f32 kernel
};

struct PackedMatrix {
    std::string name;
    DType type = DType::kF32;         // of the panels
    DType activations = DType::kF32;  // kBF16, kF16: activations are rounded so before a product
    ProductPath path = ProductPath::kFloat;
    std::int64_t rows = 0;
    std::int64_t cols = 0;
    std::int64_t panels = 0;
    std::int64_t panel_bytes = 0;
    std::int64_t file_bytes = 0;
    // Either packed: [panels][panel_bytes], in `data` or mapped by the PackCache; or in file order: [rows], not owned.
    const std::byte* packed = nullptr;
    const std::byte* file_rows = nullptr;
    AlignedBuffer data;

    // The panel, packed into `scratch` (panel_bytes long) where it lies in file order.
    const std::byte* panel(std::int64_t index, std::byte* scratch) const;
    void read_row(std::int64_t row, float* out) const;  // out: [cols]
    std::int64_t packed_bytes() const { return packed != nullptr ? panels * panel_bytes : 0; }
    std::string_view compute_name() const;  // "int8", "f32", "bf16", "f16"
};

// Checks the view, the finiteness of every row (the error names tensor and row) and packs, in parallel over panels.
// With `repack` off the rows stay where they are, checked all the same, unless `compute` wants another type. What the
// `cache` (may be null) holds was checked when it was packed: the tensor's bytes are not read.
Result<PackedMatrix> pack_matrix(const TensorView& tensor, ComputeType compute, const KernelTable& kernels,
                                 ThreadPool& pool, bool repack = true, PackCache* cache = nullptr);

// Any type to f32, finite.
Result<std::vector<float>> unpack_vector(const TensorView& tensor);

}  // namespace frontier

#include "backend/cpu_weights.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <limits>

#include "kernels/packing.h"
#include "platform/topology.h"
#include "tensor/half.h"

namespace frontier {
namespace {

// Rows that are converted while packed pass through this per-worker memory.
struct ConversionScratch {
    std::int64_t cols = 0;
    AlignedBuffer wide;  // f32[cols]
    AlignedBuffer rows;  // the target type, [16][cols]
};

// One file row to a row of the type it is stored in. False when a value is too large for that type.
bool convert_row(DType from, const std::byte* data, std::int64_t cols, DType to, float* wide, std::byte* out) {
    dequantize_row(from, data, cols, wide);
    bool finite = true;
    for (std::int64_t k = 0; k < cols; ++k) {
        const std::uint16_t bits = to == DType::kF16 ? to_f16(wide[k]).bits : to_bf16(wide[k]).bits;
        const std::uint16_t exponent = to == DType::kF16 ? 0x7C00U : 0x7F80U;
        finite = finite && (bits & exponent) != exponent;
        std::memcpy(out + 2 * k, &bits, 2);
    }
    return finite;
}

// The type of the panels: that of the file, unless --dtype asks for another float type.
DType packed_type(DType file_type, ComputeType compute) {
    if (dtype_info(file_type).quantized) return file_type;
    if (compute == ComputeType::kBF16) return DType::kBF16;
    if (compute == ComputeType::kF16) return DType::kF16;
    return file_type;
}

ProductPath choose_path(DType type, ComputeType compute, const KernelTable& kernels) {
    const auto index = static_cast<std::size_t>(type);
    if (dtype_info(type).quantized) {
        const bool int8 = compute != ComputeType::kF32 && kernels.int8_panels[index] != nullptr;
        return int8 ? ProductPath::kInt8 : ProductPath::kDequantize;
    }
    return kernels.float_panels[index] != nullptr ? ProductPath::kFloat : ProductPath::kDequantize;
}

Status check_view(const TensorView& tensor) {
    const TensorInfo& info = tensor.info;
    const DTypeInfo& type = dtype_info(info.type);
    if (std::any_of(info.shape.begin(), info.shape.end(), [](std::int64_t d) { return d < 1; })) {
        return bad_input("tensor '{}': shape {}, expected positive dimensions", info.name, shape_text(info.shape));
    }
    if (info.cols() % type.block_elements != 0) {
        return bad_input("tensor '{}': rows of {} elements, expected a multiple of {} ({})", info.name, info.cols(),
                         type.block_elements, type.name);
    }
    if (static_cast<std::int64_t>(tensor.data.size()) != info.bytes()) {
        return bad_input("tensor '{}': {} bytes of data, expected {} for {} {}", info.name, tensor.data.size(),
                         info.bytes(), type.name, shape_text(info.shape));
    }
    return {};
}

std::unexpected<Error> not_finite(const TensorInfo& info, std::int64_t row) {
    return bad_input("tensor '{}' ({}): row {} holds NaN or infinity, expected finite values", info.name,
                     dtype_name(info.type), row);
}

// Lowers `target` to `value`.
void keep_minimum(std::atomic<std::int64_t>& target, std::int64_t value) {
    std::int64_t current = target.load(std::memory_order_relaxed);
    while (value < current && !target.compare_exchange_weak(current, value, std::memory_order_relaxed)) {
    }
}

// All but the panels.
PackedMatrix describe(const TensorInfo& info, ComputeType compute, const KernelTable& kernels) {
    PackedMatrix matrix;
    matrix.name = info.name;
    matrix.type = packed_type(info.type, compute);
    matrix.path = choose_path(matrix.type, compute, kernels);
    const bool rounds =
        !dtype_info(info.type).quantized && (compute == ComputeType::kBF16 || compute == ComputeType::kF16);
    matrix.activations = rounds ? matrix.type : DType::kF32;
    matrix.rows = info.rows();
    matrix.cols = info.cols();
    matrix.panels = panel_count(matrix.rows);
    matrix.panel_bytes = panel_bytes(matrix.type, matrix.cols);
    matrix.file_bytes = info.bytes();
    return matrix;
}

constexpr std::int64_t kNoRow = std::numeric_limits<std::int64_t>::max();

// A chunk of 256 KB takes some 100 us: far above the cost of handing it out, small against a tensor.
constexpr std::int64_t kChunkBytes = 256 << 10;

// The first row that holds NaN or infinity, or kNoRow.
std::int64_t first_bad_row(const TensorView& tensor, ThreadPool& pool) {
    const std::int64_t cols = tensor.info.cols();
    const std::int64_t bytes = row_bytes(tensor.info.type, cols);
    std::atomic<std::int64_t> bad_row{kNoRow};
    const auto body = [&](std::int64_t begin, std::int64_t end, int) {
        for (std::int64_t row = begin; row < end; ++row)
            if (!row_is_finite(tensor.info.type, tensor.data.data() + row * bytes, cols)) keep_minimum(bad_row, row);
    };
    pool.parallel_for(tensor.info.rows(), std::max<std::int64_t>(1, kChunkBytes / bytes), std::ref(body));
    return bad_row;
}

// Checks and packs all rows into matrix.data.
Status pack_rows(const TensorView& tensor, ThreadPool& pool, PackedMatrix& matrix) {
    const TensorInfo& info = tensor.info;
    FR_ASSIGN(matrix.data, AlignedBuffer::allocate(static_cast<std::size_t>(matrix.panels * matrix.panel_bytes)));
    const bool converts = matrix.type != info.type;
    const std::int64_t packed_row_bytes = row_bytes(matrix.type, matrix.cols);
    std::vector<ConversionScratch> scratch(converts ? pool.threads() : 0);
    for (ConversionScratch& worker : scratch) {
        FR_ASSIGN(worker.wide, AlignedBuffer::allocate(static_cast<std::size_t>(matrix.cols) * sizeof(float)));
        FR_ASSIGN(worker.rows, AlignedBuffer::allocate(static_cast<std::size_t>(kPanelRows * packed_row_bytes)));
    }

    std::atomic<std::int64_t> bad_row{kNoRow};    // the first row that is not finite in the file
    std::atomic<std::int64_t> large_row{kNoRow};  // the first row that leaves the range of the packed type
    const std::int64_t file_row_bytes = row_bytes(info.type, matrix.cols);
    const auto pack = [&](std::int64_t begin, std::int64_t end, int worker) {
        for (std::int64_t p = begin; p < end; ++p) {
            const std::int64_t first_row = p * kPanelRows;
            const auto valid_rows = static_cast<int>(std::min<std::int64_t>(kPanelRows, matrix.rows - first_row));
            const std::byte* rows = tensor.data.data() + first_row * file_row_bytes;
            bool finite = true;
            for (int r = 0; r < valid_rows && finite; ++r) {
                finite = row_is_finite(info.type, rows + r * file_row_bytes, matrix.cols);
                if (!finite) keep_minimum(bad_row, first_row + r);
            }
            if (!finite) continue;
            if (converts) {
                std::byte* converted = scratch[worker].rows.data();
                for (int r = 0; r < valid_rows; ++r) {
                    if (!convert_row(info.type, rows + r * file_row_bytes, matrix.cols, matrix.type,
                                     scratch[worker].wide.as<float>(), converted + r * packed_row_bytes)) {
                        keep_minimum(large_row, first_row + r);
                    }
                }
                rows = converted;
            }
            pack_panel(matrix.type, rows, valid_rows, matrix.cols, matrix.data.data() + p * matrix.panel_bytes);
        }
    };
    pool.parallel_for(matrix.panels, std::max<std::int64_t>(1, kChunkBytes / matrix.panel_bytes), std::ref(pack));
    if (bad_row != kNoRow) return not_finite(info, bad_row);
    if (large_row != kNoRow) {
        return bad_input("tensor '{}' ({}): row {} exceeds the range of {}, use --dtype f32", info.name,
                         dtype_name(info.type), large_row.load(), dtype_name(matrix.type));
    }
    matrix.packed = matrix.data.data();
    return {};
}

}  // namespace

std::string_view PackedMatrix::compute_name() const {
    if (path == ProductPath::kInt8) return "int8";
    if (activations == DType::kBF16) return "bf16";
    return activations == DType::kF16 ? "f16" : "f32";
}

const std::byte* PackedMatrix::panel(std::int64_t index, std::byte* scratch) const {
    if (file_rows == nullptr) return packed + index * panel_bytes;
    const std::int64_t first_row = index * kPanelRows;
    pack_panel(type, file_rows + first_row * row_bytes(type, cols),
               static_cast<int>(std::min<std::int64_t>(kPanelRows, rows - first_row)), cols, scratch);
    return scratch;
}

void PackedMatrix::read_row(std::int64_t row, float* out) const {
    if (file_rows != nullptr) {
        dequantize_row(type, file_rows + row * row_bytes(type, cols), cols, out);
    } else {
        unpack_row(type, packed + row / kPanelRows * panel_bytes, static_cast<int>(row % kPanelRows), cols, out);
    }
}

Result<PackedMatrix> pack_matrix(const TensorView& tensor, ComputeType compute, const KernelTable& kernels,
                                 ThreadPool& pool, bool repack, PackCache* cache) {
    FR_TRY(check_view(tensor));
    PackedMatrix matrix = describe(tensor.info, compute, kernels);
    if (!repack && matrix.type == tensor.info.type) {
        matrix.file_rows = tensor.data.data();
        const std::int64_t bad_row = first_bad_row(tensor, pool);
        if (bad_row != kNoRow) return not_finite(tensor.info, bad_row);
        return matrix;
    }
    if (cache != nullptr) matrix.packed = cache->find(matrix, pool);
    if (matrix.packed == nullptr) FR_TRY(pack_rows(tensor, pool, matrix));
    if (cache != nullptr) cache->keep(matrix);
    return matrix;
}

Result<std::vector<float>> unpack_vector(const TensorView& tensor) {
    FR_TRY(check_view(tensor));
    const std::int64_t elements = tensor.info.elements();
    if (!row_is_finite(tensor.info.type, tensor.data.data(), elements)) return not_finite(tensor.info, 0);
    std::vector<float> values(static_cast<std::size_t>(elements));
    dequantize_row(tensor.info.type, tensor.data.data(), elements, values.data());
    return values;
}

}  // namespace frontier

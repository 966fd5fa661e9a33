#include "backend/cpu_products.h"

#include <algorithm>
#include <functional>
#include <type_traits>

#include "backend/cpu_parallel.h"
#include "platform/topology.h"
#include "tensor/half.h"

namespace frontier {
namespace {

// Tokens of one block at most. More would not reuse a weight more often per load from L2 in any way that shows, and
// the tiles of gate and up (2 x 128 x 16 floats = 16 KB) must stay in L1 beside the panel that streams through.
constexpr std::int64_t kMaxTokenBlock = 128;
// Token blocks are whole register tiles of every kernel (none takes more than 16 tokens at once).
constexpr std::int64_t kTokenTile = 16;
// Decode: a chunk of weights below this is not worth handing out (about 10 us of DRAM bandwidth of one core against
// 0.1 us for the counter), a larger one leaves threads waiting at the end of the operation.
constexpr std::int64_t kStreamChunkBytes = 128 << 10;
// Chunks per thread at least, where there are panels enough: bounds the wait for the last one.
constexpr std::int64_t kChunksPerThread = 4;
// Products below this many multiply-adds (about 5 us on one core) run on the caller: a barrier costs as much.
constexpr std::int64_t kSerialMultiplyAdds = 200'000;

using Q8Sum = std::remove_pointer_t<decltype(Q8Activations::sums)>;

std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
    return (a + b - 1) / b;
}

std::int64_t activation_bytes_per_token(const PackedMatrix& matrix) {
    if (matrix.path == ProductPath::kInt8) {
        return matrix.cols + matrix.cols / kQ8Block * 4 + matrix.cols / 16 * static_cast<std::int64_t>(sizeof(Q8Sum));
    }
    return matrix.cols * 4;
}

}  // namespace

// One call of run(): panels of all parts in a row, cut into groups, times blocks of tokens.
struct Products::Job {
    std::span<const ProductPart> parts;
    Epilogue epilogue = Epilogue::kStore;
    const float* in = nullptr;
    std::int64_t in_stride = 0;
    std::int64_t tokens = 0;
    std::int64_t cols = 0;
    std::int64_t panels = 0;  // over all parts; gate and up count together
    std::int64_t group_panels = 1;
    std::int64_t block_tokens = 1;
    std::int64_t blocks = 1;
    std::int64_t items = 0;  // groups * blocks
};

Status Products::grow(AlignedBuffer& buffer, std::int64_t bytes) {
    if (static_cast<std::int64_t>(buffer.size_bytes()) >= bytes) return {};
    buffer = AlignedBuffer();
    FR_ASSIGN(buffer, AlignedBuffer::allocate(static_cast<std::size_t>(bytes)));
    return {};
}

Status Products::prepare(const PackedMatrix& matrix, std::int64_t tokens) {
    FR_TRY(tiles_.prepare(matrix, tokens));
    workers_.resize(static_cast<std::size_t>(pool_.threads()));
    if (matrix.path == ProductPath::kInt8) {
        FR_TRY(grow(quants_, tokens * matrix.cols));
        FR_TRY(grow(scales_, tokens * (matrix.cols / kQ8Block) * 4));
        FR_TRY(grow(sums_, tokens * (matrix.cols / 16) * static_cast<std::int64_t>(sizeof(Q8Sum))));
    }
    if (matrix.activations == DType::kBF16) FR_TRY(grow(rounded_bf16_, tokens * matrix.cols * 4));
    if (matrix.activations == DType::kF16) FR_TRY(grow(rounded_f16_, tokens * matrix.cols * 4));
    for (WorkerScratch& worker : workers_) {
        FR_TRY(grow(worker.tile, 2 * kMaxTokenBlock * kPanelRows * 4));
        if (matrix.file_rows != nullptr) FR_TRY(grow(worker.packed, matrix.panel_bytes));
        if (matrix.path == ProductPath::kDequantize) FR_TRY(grow(worker.panel, matrix.cols * kPanelRows * 4));
    }
    return {};
}

std::int64_t Products::scratch_bytes() const {
    std::size_t bytes = static_cast<std::size_t>(tiles_.scratch_bytes()) + quants_.size_bytes() + scales_.size_bytes() +
                        sums_.size_bytes() + rounded_bf16_.size_bytes() + rounded_f16_.size_bytes();
    for (const WorkerScratch& worker : workers_)
        bytes += worker.tile.size_bytes() + worker.panel.size_bytes() + worker.packed.size_bytes();

    return static_cast<std::int64_t>(bytes);
}

void Products::prepare_rows(const Need& need, const Job& job, std::int64_t begin, std::int64_t end) {
    const std::int64_t cols = job.cols;
    for (std::int64_t t = begin; t < end; ++t) {
        const float* row = job.in + t * job.in_stride;
        if (need.int8) {
            kernels_.quantize_q8(row, cols, quants_.as<std::int8_t>() + t * cols,
                                 scales_.as<float>() + t * (cols / kQ8Block), sums_.as<Q8Sum>() + t * (cols / 16));
        }
        if (need.bf16) {
            float* out = rounded_bf16_.as<float>() + t * cols;
            for (std::int64_t k = 0; k < cols; ++k) out[k] = to_f32(to_bf16(row[k]));
        }
        if (need.f16) {
            float* out = rounded_f16_.as<float>() + t * cols;
            for (std::int64_t k = 0; k < cols; ++k) out[k] = to_f32(to_f16(row[k]));
        }
    }
}

void Products::run(std::span<const ProductPart> parts, Epilogue epilogue, const float* in, std::int64_t in_stride,
                   std::int64_t tokens) {
    const auto tiled = [&](const ProductPart& part) { return in_tiles(*part.matrix, tokens); };
    if (std::ranges::all_of(parts, tiled)) return tiles_.run(parts, epilogue, in, in_stride, tokens);
    if (epilogue != Epilogue::kSiluMultiply && std::ranges::any_of(parts, tiled)) {
        for (const ProductPart& part : parts) run({&part, 1}, epilogue, in, in_stride, tokens);
        return;
    }
    Job job;
    job.parts = parts;
    job.epilogue = epilogue;
    job.in = in;
    job.in_stride = in_stride;
    job.tokens = tokens;
    job.cols = parts.front().matrix->cols;

    Need need;
    std::int64_t panel_bytes_max = 1;
    std::int64_t token_bytes = 1;
    for (const ProductPart& part : parts) {
        const PackedMatrix& matrix = *part.matrix;
        need.int8 = need.int8 || matrix.path == ProductPath::kInt8;
        need.bf16 = need.bf16 || matrix.activations == DType::kBF16;
        need.f16 = need.f16 || matrix.activations == DType::kF16;
        job.panels = epilogue == Epilogue::kSiluMultiply ? matrix.panels : job.panels + matrix.panels;
        panel_bytes_max = std::max(panel_bytes_max, matrix.panel_bytes);
        token_bytes = std::max(token_bytes, activation_bytes_per_token(matrix));
    }
    if (epilogue == Epilogue::kSiluMultiply) panel_bytes_max *= 2;
    if (need.int8 || need.bf16 || need.f16) {
        const auto body = [&](std::int64_t begin, std::int64_t end, int) { prepare_rows(need, job, begin, end); };
        for_rows(pool_, tokens, job.cols, body);
    }

    // The block's activations take half of L2 and stay there for a group of panels (a quarter of L2, or the stream
    // chunk); neighbouring items are the blocks of one group, so that weights come from DRAM once for all tokens.
    const std::int64_t l2_bytes = topology().l2_bytes;
    const std::int64_t fitting = l2_bytes / 2 / token_bytes / kTokenTile * kTokenTile;
    job.block_tokens = std::clamp(fitting, kTokenTile, kMaxTokenBlock);
    job.blocks = ceil_div(tokens, job.block_tokens);
    const std::int64_t group_bytes = job.blocks > 1 ? l2_bytes / 4 : kStreamChunkBytes;
    const std::int64_t multiply_adds = job.panels * kPanelRows * job.cols * tokens;
    const std::int64_t chunks = pool_.threads() * kChunksPerThread;
    const std::int64_t balanced = std::max<std::int64_t>(1, ceil_div(job.panels * job.blocks, chunks));
    job.group_panels = std::clamp<std::int64_t>(ceil_div(group_bytes, panel_bytes_max), 1, balanced);
    job.items = ceil_div(job.panels, job.group_panels) * job.blocks;
    const auto body = [&](std::int64_t begin, std::int64_t end, int worker) {
        for (std::int64_t item = begin; item < end; ++item) run_item(job, item, worker);
    };
    pool_.parallel_for(job.items, multiply_adds <= kSerialMultiplyAdds ? job.items : 1, std::ref(body));
}

void Products::multiply_panel(const PackedMatrix& matrix, std::int64_t panel, const Job& job, std::int64_t first_token,
                              std::int64_t tokens, float* out, std::int64_t out_stride, int worker) {
    const auto type = static_cast<std::size_t>(matrix.type);
    const std::byte* data = matrix.panel(panel, workers_[worker].packed.data());
    const auto count = static_cast<int>(tokens);
    if (matrix.path == ProductPath::kInt8) {
        const Q8Activations activations{
            .quants = quants_.as<std::int8_t>() + first_token * job.cols,
            .scales = scales_.as<float>() + first_token * (job.cols / kQ8Block),
            .sums = sums_.as<Q8Sum>() + first_token * (job.cols / 16),
            .cols = job.cols,
        };
        kernels_.int8_panel[type](data, activations, count, out, out_stride);
        return;
    }
    const float* activations = job.in + first_token * job.in_stride;
    std::int64_t stride = job.in_stride;
    if (matrix.activations != DType::kF32) {
        AlignedBuffer& rounded = matrix.activations == DType::kBF16 ? rounded_bf16_ : rounded_f16_;
        activations = rounded.as<float>() + first_token * job.cols;
        stride = job.cols;
    }
    if (matrix.path == ProductPath::kFloat) {
        kernels_.float_panel[type](data, job.cols, activations, stride, count, out, out_stride);
        return;
    }
    float* unpacked = workers_[worker].panel.as<float>();
    dequantize_panel(matrix.type, data, job.cols, unpacked);
    kernels_.float_panel[static_cast<std::size_t>(DType::kF32)](reinterpret_cast<const std::byte*>(unpacked), job.cols,
                                                                activations, stride, count, out, out_stride);
}

void Products::run_item(const Job& job, std::int64_t item, int worker) {
    const std::int64_t first_panel = item / job.blocks * job.group_panels;
    const std::int64_t last_panel = std::min(job.panels, first_panel + job.group_panels);
    const std::int64_t first_token = item % job.blocks * job.block_tokens;
    const std::int64_t tokens = std::min(job.block_tokens, job.tokens - first_token);
    float* tile = workers_[worker].tile.as<float>();          // [tokens][16]
    float* second_tile = tile + kMaxTokenBlock * kPanelRows;  // [tokens][16]
    std::size_t part_index = 0;
    std::int64_t part_first = 0;  // panel at which the part begins
    for (std::int64_t p = first_panel; p < last_panel; ++p) {
        while (p - part_first >= job.parts[part_index].matrix->panels) {
            part_first += job.parts[part_index].matrix->panels;
            ++part_index;
        }
        const ProductPart& part = job.parts[part_index];
        const std::int64_t panel = p - part_first;
        float* out = part.out + first_token * part.out_stride + panel * kPanelRows;
        if (job.epilogue == Epilogue::kSiluMultiply) {
            multiply_panel(*part.matrix, panel, job, first_token, tokens, tile, kPanelRows, worker);
            multiply_panel(*job.parts[1].matrix, panel, job, first_token, tokens, second_tile, kPanelRows, worker);
            kernels_.silu_multiply(tile, second_tile, tokens * kPanelRows, tile);
            for (std::int64_t t = 0; t < tokens; ++t) {
                std::copy_n(tile + t * kPanelRows, kPanelRows, out + t * part.out_stride);
            }
            continue;
        }
        const std::int64_t lanes = std::min<std::int64_t>(kPanelRows, part.matrix->rows - panel * kPanelRows);
        const float* bias = part.bias == nullptr ? nullptr : part.bias + panel * kPanelRows;
        if (job.epilogue == Epilogue::kStore) {
            multiply_panel(*part.matrix, panel, job, first_token, tokens, out, part.out_stride, worker);
            for (std::int64_t t = 0; bias != nullptr && t < tokens; ++t) {
                for (std::int64_t i = 0; i < lanes; ++i) out[t * part.out_stride + i] += bias[i];
            }
            continue;
        }
        multiply_panel(*part.matrix, panel, job, first_token, tokens, tile, kPanelRows, worker);
        for (std::int64_t t = 0; t < tokens; ++t) {
            float* row = out + t * part.out_stride;
            const float* product = tile + t * kPanelRows;
            for (std::int64_t i = 0; i < lanes; ++i) row[i] += bias == nullptr ? product[i] : product[i] + bias[i];
        }
    }
}

}  // namespace frontier

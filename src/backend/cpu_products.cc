#include "backend/cpu_products.h"

#include <algorithm>
#include <functional>
#include <type_traits>

#include "backend/cpu_parallel.h"
#include "platform/topology.h"
#include "tensor/half.h"

namespace frontier {
namespace {

// Tokens of one block at most. Unpacking a panel costs what 3 (Q4_0) to 5 tokens (BF16) take, so that at 192 it is 2 to
// 3%; the activations of a kernel's stretch of k (at most 640 bytes a token) take half of a small L2 (256 KB). Whole
// register tiles of every kernel: tiles of 4, 6, 8, 12 and 16 tokens.
constexpr std::int64_t kTokenBlock = 192;
// Panels of one kernel call for a whole block of tokens: with 4 a stretch of activations is read from beyond L2 once
// for four times from L2, and the products of gate and of up (48 KB each) still fit there. Groups of fewer, cut so that
// their panels stay in L2 from one block of tokens to the next, cost 8% of BF16 prefill.
constexpr std::int64_t kPanelsTogether = 4;
// Tokens times panels of one kernel call.
constexpr std::int64_t kTileRows = kPanelsTogether * kTokenBlock;
// Weights of one group of panels, at most: some 30 us of DRAM bandwidth of one core, which a thread that the system has
// taken off its CPU may keep the others waiting for after its return.
constexpr std::int64_t kStreamGroupBytes = 512 << 10;
// And at least: below, handing it out (0.1 us) would show.
constexpr std::int64_t kSmallestGroupBytes = 16 << 10;
// A group is at most this part of what remains of a thread's share of the panels: they get smaller towards the end, and
// so does the wait for the last one.
constexpr std::int64_t kGroupsPerShare = 4;
// Products below this many multiply-adds (about 5 us on one core) run on the caller: a barrier costs as much.
constexpr std::int64_t kSerialMultiplyAdds = 200'000;

using Q8Sum = std::remove_pointer_t<decltype(Q8Activations::sums)>;

// Floats between the tokens of rounded activations: with 2048 columns and no gap, a stretch of k of 192 tokens falls
// into 1/16 of the sets of an L2 of 64 KB a way, which cannot hold it (3 to 4% of prefill).
std::int64_t rounded_stride(std::int64_t cols) {
    return cols + 16;
}

}  // namespace

// One call of run(): panels of all parts in a row, cut into groups (groups_), times blocks of tokens.
struct Products::Job {
    std::span<const ProductPart> parts;
    Epilogue epilogue = Epilogue::kStore;
    const float* in = nullptr;
    std::int64_t in_stride = 0;
    std::int64_t tokens = 0;
    std::int64_t cols = 0;
    std::int64_t panels = 0;  // over all parts; gate and up count together
    std::int64_t block_tokens = 1;
    std::int64_t blocks = 1;
};

Status Products::prepare(const PackedMatrix& matrix, std::int64_t tokens) {
    FR_TRY(tiles_.prepare(matrix, tokens));
    workers_.resize(static_cast<std::size_t>(pool_.threads()));
    if (matrix.path == ProductPath::kInt8) {
        FR_TRY(quants_.grow(tokens * matrix.cols));
        FR_TRY(scales_.grow(tokens * (matrix.cols / kQ8Block) * 4));
        FR_TRY(scaled_sums_.grow(tokens * (matrix.cols / kQ8Block) * 4));
        FR_TRY(sums_.grow(tokens * (matrix.cols / 16) * static_cast<std::int64_t>(sizeof(Q8Sum))));
    }
    if (matrix.activations == DType::kBF16) FR_TRY(rounded_bf16_.grow(tokens * rounded_stride(matrix.cols) * 4));
    if (matrix.activations == DType::kF16) FR_TRY(rounded_f16_.grow(tokens * rounded_stride(matrix.cols) * 4));
    for (WorkerScratch& worker : workers_) {
        FR_TRY(worker.tile.grow(2 * kTileRows * kPanelRows * 4));
        if (matrix.file_rows != nullptr) FR_TRY(worker.packed.grow(matrix.panel_bytes));
        if (matrix.path == ProductPath::kDequantize) FR_TRY(worker.panel.grow(matrix.cols * kPanelRows * 4));
    }
    return {};
}

std::int64_t Products::scratch_bytes() const {
    std::size_t bytes = static_cast<std::size_t>(tiles_.scratch_bytes()) + quants_.size_bytes() + scales_.size_bytes() +
                        scaled_sums_.size_bytes() + sums_.size_bytes() + rounded_bf16_.size_bytes() +
                        rounded_f16_.size_bytes();
    for (const WorkerScratch& worker : workers_)
        bytes += worker.tile.size_bytes() + worker.panel.size_bytes() + worker.packed.size_bytes();

    return static_cast<std::int64_t>(bytes);
}

Q8Activations Products::q8(std::int64_t cols) {
    return {quants_.as<std::int8_t>(), scales_.as<float>(), scaled_sums_.as<float>(), sums_.as<Q8Sum>(), cols};
}

void Products::prepare_rows(const Need& need, const Job& job, std::int64_t begin, std::int64_t end) {
    const std::int64_t cols = job.cols;
    for (std::int64_t t = begin; t < end; ++t) {
        const float* row = job.in + t * job.in_stride;
        if (need.int8) {
            kernels_.quantize_q8(row, q8(cols).from_token(t));
        }
        if (need.bf16) {
            float* out = rounded_bf16_.as<float>() + t * rounded_stride(cols);
            for (std::int64_t k = 0; k < cols; ++k) out[k] = to_f32(to_bf16(row[k]));
        }
        if (need.f16) {
            float* out = rounded_f16_.as<float>() + t * rounded_stride(cols);
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
    for (const ProductPart& part : parts) {
        const PackedMatrix& matrix = *part.matrix;
        need.int8 = need.int8 || matrix.path == ProductPath::kInt8;
        need.bf16 = need.bf16 || matrix.activations == DType::kBF16;
        need.f16 = need.f16 || matrix.activations == DType::kF16;
        job.panels = epilogue == Epilogue::kSiluMultiply ? matrix.panels : job.panels + matrix.panels;
        panel_bytes_max = std::max(panel_bytes_max, matrix.panel_bytes);
    }
    if (epilogue == Epilogue::kSiluMultiply) panel_bytes_max *= 2;
    if (need.int8 || need.bf16 || need.f16) {
        const auto body = [&](std::int64_t begin, std::int64_t end, int) { prepare_rows(need, job, begin, end); };
        for_rows(pool_, tokens, job.cols, body);
    }

    // Neighbouring items are the blocks of one group of panels, so that weights come from DRAM once for all tokens.
    job.block_tokens = std::min(tokens, kTokenBlock);
    job.blocks = ceil_div(tokens, job.block_tokens);
    const std::int64_t cached_bytes = std::max(topology().l2_bytes / 4, kPanelsTogether * panel_bytes_max);
    const std::int64_t most_bytes = job.blocks > 1 ? cached_bytes : kStreamGroupBytes;
    const std::int64_t most = ceil_div(most_bytes, panel_bytes_max);
    const std::int64_t least = std::min(most, ceil_div(kSmallestGroupBytes, panel_bytes_max));
    cut_groups(job, least, most);
    const std::int64_t items = (static_cast<std::int64_t>(groups_.size()) - 1) * job.blocks;
    const std::int64_t multiply_adds = job.panels * kPanelRows * job.cols * tokens;
    const auto body = [&](std::int64_t begin, std::int64_t end, int worker) {
        for (std::int64_t i = begin; i < end; ++i) run_item(job, queues_.take(worker), worker);
    };
    pool_.parallel_for(items, multiply_adds <= kSerialMultiplyAdds ? items : 1, std::ref(body));
}

// Groups of `least` to `most` panels, an equal share of them for each thread; whole runs of panels that a kernel reads
// side by side.
void Products::cut_groups(const Job& job, std::int64_t least, std::int64_t most) {
    const std::int64_t threads = pool_.threads();
    const auto whole_runs = [](std::int64_t panels) { return ceil_div(panels, kPanelsSideBySide) * kPanelsSideBySide; };
    groups_.assign(1, 0);
    ends_.clear();
    for (std::int64_t thread = 1; thread <= threads; ++thread) {
        const std::int64_t end = std::min(job.panels, whole_runs(ceil_div(job.panels * thread, threads)));
        for (std::int64_t p = groups_.back(); p < end;) {
            p = std::min(end, p + whole_runs(std::clamp((end - p) / kGroupsPerShare, least, most)));
            groups_.push_back(p);
        }
        ends_.push_back((static_cast<std::int64_t>(groups_.size()) - 1) * job.blocks);
    }
    queues_.assign(ends_);
}

// out[t][16 p + lane] for the panels from first_panel on. Panels in file order are packed, and panels without a kernel
// dequantised, one by one.
void Products::multiply_panels(const PackedMatrix& matrix, std::int64_t first_panel, std::int64_t count, const Job& job,
                               std::int64_t first_token, std::int64_t tokens, float* out, std::int64_t out_stride,
                               int worker) {
    const auto type = static_cast<std::size_t>(matrix.type);
    const bool one_by_one = matrix.file_rows != nullptr || matrix.path == ProductPath::kDequantize;
    if (one_by_one && count > 1) {
        for (std::int64_t p = 0; p < count; ++p)
            multiply_panels(matrix, first_panel + p, 1, job, first_token, tokens, out + p * kPanelRows, out_stride,
                            worker);
        return;
    }
    const std::byte* panels = matrix.panel(first_panel, workers_[worker].packed.data());
    const auto call_panels = static_cast<int>(count);
    const auto call_tokens = static_cast<int>(tokens);
    if (matrix.path == ProductPath::kInt8) {
        kernels_.int8_panels[type](panels, call_panels, q8(job.cols).from_token(first_token), call_tokens, out,
                                   out_stride);
        return;
    }
    const float* activations = job.in + first_token * job.in_stride;
    std::int64_t stride = job.in_stride;
    if (matrix.activations != DType::kF32) {
        AlignedBuffer& rounded = matrix.activations == DType::kBF16 ? rounded_bf16_ : rounded_f16_;
        stride = rounded_stride(job.cols);
        activations = rounded.as<float>() + first_token * stride;
    }
    if (matrix.path == ProductPath::kFloat) {
        kernels_.float_panels[type](panels, call_panels, job.cols, activations, stride, call_tokens, out, out_stride);
        return;
    }
    float* unpacked = workers_[worker].panel.as<float>();
    dequantize_panel(matrix.type, panels, job.cols, unpacked);
    kernels_.float_panels[static_cast<std::size_t>(DType::kF32)](
        reinterpret_cast<const std::byte*>(unpacked), 1, job.cols, activations, stride, call_tokens, out, out_stride);
}

// The panels of one part that an item covers, in runs whose products fit the tile.
void Products::run_item(const Job& job, std::int64_t item, int worker) {
    const auto group = static_cast<std::size_t>(item / job.blocks);
    const std::int64_t first_panel = groups_[group];
    const std::int64_t last_panel = groups_[group + 1];
    const std::int64_t first_token = item % job.blocks * job.block_tokens;
    const std::int64_t tokens = std::min(job.block_tokens, job.tokens - first_token);
    const std::int64_t most_panels = std::max<std::int64_t>(1, kTileRows / tokens);
    std::size_t part_index = 0;
    std::int64_t part_first = 0;  // panel at which the part begins
    for (std::int64_t p = first_panel; p < last_panel;) {
        while (p - part_first >= job.parts[part_index].matrix->panels) {
            part_first += job.parts[part_index].matrix->panels;
            ++part_index;
        }
        const ProductPart& part = job.parts[part_index];
        const std::int64_t part_end = std::min(last_panel, part_first + part.matrix->panels);
        const std::int64_t count = std::min(most_panels, part_end - p);
        run_panels(job, part, p - part_first, count, first_token, tokens, worker);
        p += count;
    }
}

void Products::run_panels(const Job& job, const ProductPart& part, std::int64_t first_panel, std::int64_t count,
                          std::int64_t first_token, std::int64_t tokens, int worker) {
    const PackedMatrix& matrix = *part.matrix;
    const std::int64_t columns = count * kPanelRows;
    const std::int64_t first_row = first_panel * kPanelRows;
    const std::int64_t lanes = std::min(columns, matrix.rows - first_row);
    const float* bias = part.bias == nullptr ? nullptr : part.bias + first_row;
    float* out = part.out + first_token * part.out_stride + first_row;
    if (job.epilogue == Epilogue::kStore) {
        multiply_panels(matrix, first_panel, count, job, first_token, tokens, out, part.out_stride, worker);
        for (std::int64_t t = 0; bias != nullptr && t < tokens; ++t)
            for (std::int64_t i = 0; i < lanes; ++i) out[t * part.out_stride + i] += bias[i];
        return;
    }
    float* tile = workers_[worker].tile.as<float>();  // [tokens][columns]
    multiply_panels(matrix, first_panel, count, job, first_token, tokens, tile, columns, worker);
    if (job.epilogue == Epilogue::kSiluMultiply) {
        float* up = tile + kTileRows * kPanelRows;
        multiply_panels(*job.parts[1].matrix, first_panel, count, job, first_token, tokens, up, columns, worker);
        kernels_.silu_multiply(tile, up, tokens * columns, tile);
        for (std::int64_t t = 0; t < tokens; ++t) std::copy_n(tile + t * columns, columns, out + t * part.out_stride);
        return;
    }
    for (std::int64_t t = 0; t < tokens; ++t) {
        float* row = out + t * part.out_stride;
        const float* product = tile + t * columns;
        for (std::int64_t i = 0; i < lanes; ++i) row[i] += bias == nullptr ? product[i] : product[i] + bias[i];
    }
}

}  // namespace frontier

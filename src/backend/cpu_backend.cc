// Runs the operations of a step one after another; each is one or a few parallel loops.
#include "backend/cpu_backend.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <variant>

#include "backend/cpu_attention.h"
#include "backend/cpu_parallel.h"
#include "backend/cpu_products.h"
#include "backend/cpu_weights.h"
#include "backend/step_check.h"
#include "base/check.h"

namespace frontier {
namespace {

constexpr std::int64_t kFloatBytes = sizeof(float);

// Floats between rows of a buffer. Whole panels of 16, so that the last one may write all its lanes; and not a
// multiple of 1 KB, so that a column of many rows spreads over the cache's sets.
std::int64_t row_stride(std::int64_t cols) {
    const std::int64_t stride = panel_count(cols) * kPanelRows;
    return stride % 256 == 0 ? stride + kPanelRows : stride;
}

class CpuBackend : public Backend {
public:
    explicit CpuBackend(const CpuBackendOptions& options)
        : options_(options),
          kernels_(kernel_table(options.isa)),
          pool_(options.threads),
          products_(kernels_, pool_),
          attention_(kernels_, pool_) {}

    Result<WeightId> upload_matrix(const TensorView& tensor) override;
    Result<WeightId> upload_vector(const TensorView& tensor) override;
    BufferId create_buffer(std::string name, std::int64_t cols) override;
    Status reserve(std::int32_t max_rows, std::int32_t max_logits_rows) override;
    void set_rope(RopeConfig rope) override;
    Status create_kv_cache(const KvCacheConfig& config) override;
    void copy_page(PageId from, PageId to) override { attention_.cache().copy_page(from, to); }
    Status submit(const Step& step) override;
    Result<std::span<float>> read_logits() override;
    BackendMemory memory() const override;
    std::string compute_type_name() const override;

private:
    // Either a packed matrix or an f32 vector.
    struct Weight {
        PackedMatrix matrix;
        std::vector<float> vector;
        // Some product has used it, in its own compute type or in bf16 tiles: it counts for compute_type_name.
        bool multiplied = false;
        bool in_tiles = false;
    };
    struct Buffer {
        std::string name;
        std::int64_t cols = 0;
        AlignedBuffer data;  // f32 [max_rows][row_stride(cols)]
    };

    Rows rows(BufferId id);
    const float* vector(WeightId id) { return id.valid() ? weights_[id.index].vector.data() : nullptr; }
    // The matrix as an operand of a product of `tokens` rows, with scratch for it; `partner` is multiplied with it.
    Result<const PackedMatrix*> operand(WeightId id, std::int64_t tokens, WeightId partner = {});

    Status run(const StepInput& input, const EmbedOp& op);
    Status run(const StepInput& input, const RmsNormOp& op);
    Status run(const StepInput& input, const QkvOp& op);
    Status run(const StepInput& input, const RopeKvWriteOp& op);
    Status run(const StepInput& input, const AttentionOp& op);
    Status run(const StepInput& input, const ProjectResidualOp& op);
    Status run(const StepInput& input, const GateUpOp& op);
    Status run(const StepInput& input, const LogitsOp& op);

    CpuBackendOptions options_;
    const KernelTable& kernels_;
    ThreadPool pool_;
    Products products_;
    Attention attention_;
    StepLimits limits_;  // shapes of weights and buffers, by id
    std::vector<Weight> weights_;
    std::vector<Buffer> buffers_;
    AlignedBuffer normed_;  // f32 [max_logits_rows][row_stride(dim)]: final norm of the rows with logits
    AlignedBuffer logits_;  // f32 [max_logits_rows][row_stride(vocab)]; [max_logits_rows][vocab] once read
    bool logits_padded_ = false;
    std::int64_t vocab_ = 0;  // of the last step's logits
    std::int64_t logits_rows_ = 0;
    std::int64_t file_bytes_ = 0;
};

Result<WeightId> CpuBackend::upload_matrix(const TensorView& tensor) {
    Weight weight;
    FR_ASSIGN(weight.matrix,
              pack_matrix(tensor, options_.compute, kernels_, pool_, options_.repack, options_.pack_cache.get()));
    limits_.weights.push_back({weight.matrix.rows, weight.matrix.cols, false});
    file_bytes_ += weight.matrix.file_bytes;
    weights_.push_back(std::move(weight));
    return WeightId{static_cast<std::int32_t>(weights_.size()) - 1};
}

Result<WeightId> CpuBackend::upload_vector(const TensorView& tensor) {
    Weight weight;
    FR_ASSIGN(weight.vector, unpack_vector(tensor));
    limits_.weights.push_back({1, static_cast<std::int64_t>(weight.vector.size()), true});
    file_bytes_ += static_cast<std::int64_t>(tensor.data.size());
    weights_.push_back(std::move(weight));
    return WeightId{static_cast<std::int32_t>(weights_.size()) - 1};
}

BufferId CpuBackend::create_buffer(std::string name, std::int64_t cols) {
    FR_CHECK(cols > 0 && limits_.max_rows == 0);
    buffers_.push_back({std::move(name), cols, {}});
    limits_.buffer_cols.push_back(cols);
    return BufferId{static_cast<std::int32_t>(buffers_.size()) - 1};
}

Status CpuBackend::reserve(std::int32_t max_rows, std::int32_t max_logits_rows) {
    FR_CHECK(max_rows > 0 && max_logits_rows >= 0);
    for (Buffer& buffer : buffers_) FR_TRY(buffer.data.grow(max_rows * row_stride(buffer.cols) * kFloatBytes));
    FR_TRY(attention_.reserve(max_rows));
    limits_.max_rows = max_rows;
    limits_.max_logits_rows = max_logits_rows;
    return {};
}

void CpuBackend::set_rope(RopeConfig rope) {
    limits_.rope_pairs = static_cast<std::int32_t>(rope.inv_freq.size());
    attention_.set_rope(std::move(rope));
}

Status CpuBackend::create_kv_cache(const KvCacheConfig& config) {
    limits_.kv = KvCacheConfig();
    FR_TRY(attention_.cache().create(config));
    limits_.kv = config;
    return {};
}

Rows CpuBackend::rows(BufferId id) {
    Buffer& buffer = buffers_[id.index];
    return {buffer.data.as<float>(), row_stride(buffer.cols), buffer.cols};
}

Result<const PackedMatrix*> CpuBackend::operand(WeightId id, std::int64_t tokens, WeightId partner) {
    Weight& weight = weights_[id.index];
    FR_TRY(products_.prepare(weight.matrix, limits_.max_rows));
    const bool tiled = products_.in_tiles(weight.matrix, tokens) &&
                       (!partner.valid() || products_.in_tiles(weights_[partner.index].matrix, tokens));
    (tiled ? weight.in_tiles : weight.multiplied) = true;
    return &weight.matrix;
}

Status CpuBackend::submit(const Step& step) {
    const std::string fault = check_step(limits_, step);
    if (!fault.empty()) check_failed(fault.c_str(), __FILE__, __LINE__);
    logits_rows_ = 0;
    FR_TRY(attention_.begin_step(step.input));
    for (const Op& op : step.ops) {
        FR_TRY(std::visit([&](const auto& concrete) { return run(step.input, concrete); }, op));
    }
    return {};
}

Status CpuBackend::run(const StepInput& input, const EmbedOp& op) {
    const PackedMatrix& table = weights_[op.table.index].matrix;
    const Rows out = rows(op.out);
    const auto body = [&](std::int64_t begin, std::int64_t end, int) {
        for (std::int64_t t = begin; t < end; ++t) {
            const TokenId token = input.tokens[t];
            table.read_row(token, out.row(t));
        }
    };
    for_rows(pool_, static_cast<std::int64_t>(input.tokens.size()), table.cols, body);
    return {};
}

Status CpuBackend::run(const StepInput& input, const RmsNormOp& op) {
    const Rows in = rows(op.in);
    const Rows out = rows(op.out);
    const float* gain = vector(op.gain);
    const auto body = [&](std::int64_t begin, std::int64_t end, int) {
        for (std::int64_t t = begin; t < end; ++t) kernels_.rms_norm(in.row(t), gain, op.eps, in.cols, out.row(t));
    };
    for_rows(pool_, static_cast<std::int64_t>(input.tokens.size()), in.cols, body);
    return {};
}

Status CpuBackend::run(const StepInput& input, const QkvOp& op) {
    const auto tokens = static_cast<std::int64_t>(input.tokens.size());
    const auto part = [&](WeightId weight, WeightId bias, BufferId buffer) -> Result<ProductPart> {
        FR_ASSIGN(const PackedMatrix* matrix, operand(weight, tokens));
        const Rows out = rows(buffer);
        return ProductPart{matrix, vector(bias), out.data, out.stride};
    };
    std::array<ProductPart, 3> parts;
    FR_ASSIGN(parts[0], part(op.q, op.q_bias, op.q_out));
    FR_ASSIGN(parts[1], part(op.k, op.k_bias, op.k_out));
    FR_ASSIGN(parts[2], part(op.v, op.v_bias, op.v_out));
    const Rows in = rows(op.in);
    products_.run(parts, Epilogue::kStore, in.data, in.stride, tokens);
    return {};
}

Status CpuBackend::run(const StepInput& input, const RopeKvWriteOp& op) {
    attention_.rope_and_store(input, op.layer, rows(op.q), rows(op.k), rows(op.v), vector(op.q_norm), vector(op.k_norm),
                              op.norm_eps);
    return {};
}

Status CpuBackend::run(const StepInput& input, const AttentionOp& op) {
    return attention_.attend(input, op, rows(op.q), rows(op.out));
}

Status CpuBackend::run(const StepInput& input, const ProjectResidualOp& op) {
    const auto tokens = static_cast<std::int64_t>(input.tokens.size());
    FR_ASSIGN(const PackedMatrix* matrix, operand(op.weight, tokens));
    const Rows in = rows(op.in);
    const Rows out = rows(op.residual);
    const ProductPart part{matrix, vector(op.bias), out.data, out.stride};
    products_.run({&part, 1}, Epilogue::kAdd, in.data, in.stride, tokens);
    return {};
}

Status CpuBackend::run(const StepInput& input, const GateUpOp& op) {
    const auto tokens = static_cast<std::int64_t>(input.tokens.size());
    std::array<ProductPart, 2> parts;
    const Rows in = rows(op.in);
    const Rows out = rows(op.out);
    FR_ASSIGN(parts[0].matrix, operand(op.gate, tokens, op.up));
    FR_ASSIGN(parts[1].matrix, operand(op.up, tokens, op.gate));
    parts[0].out = out.data;
    parts[0].out_stride = out.stride;
    products_.run(parts, Epilogue::kSiluMultiply, in.data, in.stride, tokens);
    return {};
}

Status CpuBackend::run(const StepInput& input, const LogitsOp& op) {
    const auto count = static_cast<std::int64_t>(input.logits_rows.size());
    if (count == 0) return {};
    FR_ASSIGN(const PackedMatrix* matrix, operand(op.weight, count));
    const Rows in = rows(op.in);
    const std::int64_t normed_stride = row_stride(in.cols);
    const std::int64_t logits_stride = row_stride(matrix->rows);
    FR_TRY(normed_.grow(limits_.max_logits_rows * normed_stride * kFloatBytes));
    FR_TRY(logits_.grow(limits_.max_logits_rows * logits_stride * kFloatBytes));
    const auto body = [&](std::int64_t begin, std::int64_t end, int) {
        for (std::int64_t i = begin; i < end; ++i) {
            kernels_.rms_norm(in.row(input.logits_rows[i]), vector(op.gain), op.eps, in.cols,
                              normed_.as<float>() + i * normed_stride);
        }
    };
    for_rows(pool_, count, in.cols, body);
    const ProductPart part{matrix, vector(op.bias), logits_.as<float>(), logits_stride};
    products_.run({&part, 1}, Epilogue::kStore, normed_.as<float>(), normed_stride, count);
    vocab_ = matrix->rows;
    logits_rows_ = count;
    logits_padded_ = row_stride(vocab_) != vocab_;
    return {};
}

// In place: at large vocabularies a second copy of the rows would be the largest buffer of all.
Result<std::span<float>> CpuBackend::read_logits() {
    float* logits = logits_.as<float>();
    if (logits_padded_) {
        for (std::int64_t i = 1; i < logits_rows_; ++i)
            std::memmove(logits + i * vocab_, logits + i * row_stride(vocab_),
                         static_cast<std::size_t>(vocab_) * sizeof(float));
        logits_padded_ = false;
    }
    return std::span<float>(logits, static_cast<std::size_t>(logits_rows_ * vocab_));
}

BackendMemory CpuBackend::memory() const {
    BackendMemory memory;
    memory.weight_file_bytes = file_bytes_;
    for (const Weight& weight : weights_) {
        memory.weight_bytes +=
            weight.matrix.packed_bytes() + static_cast<std::int64_t>(weight.vector.size() * sizeof(float));
    }
    memory.kv_bytes = attention_.cache().bytes();
    memory.scratch_bytes = products_.scratch_bytes() + attention_.scratch_bytes() +
                           static_cast<std::int64_t>(normed_.size_bytes() + logits_.size_bytes());
    for (const Buffer& buffer : buffers_) memory.scratch_bytes += static_cast<std::int64_t>(buffer.data.size_bytes());
    return memory;
}

std::string CpuBackend::compute_type_name() const {
    const bool any =
        std::any_of(weights_.begin(), weights_.end(), [](const Weight& w) { return w.multiplied || w.in_tiles; });
    std::string name;
    for (const std::string_view type : {"int8", "bf16", "f16", "f32"}) {
        const bool used = std::any_of(weights_.begin(), weights_.end(), [&](const Weight& w) {
            if (w.in_tiles && type == "bf16") return true;
            return w.vector.empty() && (w.multiplied || !any) && w.matrix.compute_name() == type;
        });
        if (!used) continue;
        if (!name.empty()) name += '+';
        name += type;
    }
    return name;
}

}  // namespace

std::unique_ptr<Backend> make_cpu_backend(const CpuBackendOptions& options) {
    return std::make_unique<CpuBackend>(options);
}

}  // namespace frontier

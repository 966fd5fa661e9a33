#include "backend/null_backend.h"

#include <cmath>
#include <variant>

#include "base/check.h"

namespace frontier {

Result<WeightId> NullBackend::upload(const TensorView& tensor, bool vector) {
    if (static_cast<std::int64_t>(tensor.data.size()) != tensor.info.bytes()) {
        return bad_input("tensor '{}': {} bytes, expected {}", tensor.info.name, tensor.data.size(),
                         tensor.info.bytes());
    }
    limits_.weights.push_back(
        {vector ? 1 : tensor.info.rows(), vector ? tensor.info.elements() : tensor.info.cols(), vector});
    uploads_.push_back({tensor.info, vector});
    file_bytes_ += tensor.info.bytes();
    return WeightId{static_cast<std::int32_t>(uploads_.size()) - 1};
}

Result<WeightId> NullBackend::upload_matrix(const TensorView& tensor) {
    return upload(tensor, false);
}

Result<WeightId> NullBackend::upload_vector(const TensorView& tensor) {
    return upload(tensor, true);
}

BufferId NullBackend::create_buffer(std::string name, std::int64_t cols) {
    FR_CHECK(cols > 0);
    buffers_.push_back({std::move(name), cols});
    limits_.buffer_cols.push_back(cols);
    return BufferId{static_cast<std::int32_t>(buffers_.size()) - 1};
}

Status NullBackend::reserve(std::int32_t max_rows, std::int32_t max_logits_rows) {
    limits_.max_rows = max_rows;
    limits_.max_logits_rows = max_logits_rows;
    return {};
}

void NullBackend::set_rope(RopeConfig rope) {
    rope_ = std::move(rope);
    limits_.rope_pairs = static_cast<std::int32_t>(rope_.inv_freq.size());
}

Status NullBackend::create_kv_cache(const KvCacheConfig& config) {
    limits_.kv = config;
    return {};
}

void NullBackend::copy_page(PageId from, PageId to) {
    FR_CHECK(from >= 0 && from < limits_.kv.pages && to >= 0 && to < limits_.kv.pages);
    page_copies_.push_back({from, to});
}

Status NullBackend::submit(const Step& step) {
    steps_.push_back(step);
    const std::string fault = check_step(limits_, step);
    if (!fault.empty()) return fail(ErrorCode::kFailed, "step refused: {}", fault);
    return {};
}

Result<std::span<float>> NullBackend::read_logits() {
    FR_CHECK(!steps_.empty() && !steps_.back().ops.empty());
    const Step& step = steps_.back();
    const auto* logits = std::get_if<LogitsOp>(&step.ops.back());
    FR_CHECK(logits != nullptr);
    const std::int64_t vocab = limits_.weights[logits->weight.index].rows;
    const auto rows = static_cast<std::int64_t>(step.input.logits_rows.size());
    logits_.resize(static_cast<std::size_t>(rows * vocab));
    for (std::int64_t i = 0; i < rows; ++i) {
        const std::int64_t expected = (step.input.tokens[step.input.logits_rows[i]] + 1) % vocab;
        for (std::int64_t v = 0; v < vocab; ++v) logits_[i * vocab + v] = -static_cast<float>(std::abs(v - expected));
    }
    return std::span<float>(logits_);
}

BackendMemory NullBackend::memory() const {
    BackendMemory memory;
    memory.weight_bytes = file_bytes_;
    memory.weight_file_bytes = file_bytes_;
    return memory;
}

}  // namespace frontier

// A backend that computes nothing: it checks shapes and order of every step and keeps what was recorded. For tests of
// the layers above.
#pragma once

#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/step_check.h"

namespace frontier {

class NullBackend : public Backend {
public:
    struct Upload {
        TensorInfo info;
        bool vector = false;
    };
    struct Buffer {
        std::string name;
        std::int64_t cols = 0;
    };
    struct PageCopy {
        PageId from = -1;
        PageId to = -1;
    };

    Result<WeightId> upload_matrix(const TensorView& tensor) override;
    Result<WeightId> upload_vector(const TensorView& tensor) override;
    BufferId create_buffer(std::string name, std::int64_t cols) override;
    Status reserve(std::int32_t max_rows, std::int32_t max_logits_rows) override;
    void set_rope(RopeConfig rope) override;
    Status create_kv_cache(const KvCacheConfig& config) override;
    void copy_page(PageId from, PageId to) override;
    // A step that check_step refuses is a kFailed error with its text; the step is kept all the same.
    Status submit(const Step& step) override;
    // Deterministic figures: logit v of row i is -|v - expected_token(i)| with expected_token = the row's input token
    // + 1 modulo the vocabulary, so that greedy generation counts upwards.
    Result<std::span<float>> read_logits() override;
    BackendMemory memory() const override;
    std::string compute_type_name() const override { return "none"; }

    const std::vector<Upload>& uploads() const { return uploads_; }  // by WeightId
    const std::vector<Buffer>& buffers() const { return buffers_; }  // by BufferId
    // Block tables of kept steps point into the caller's memory and may be stale.
    const std::vector<Step>& steps() const { return steps_; }
    const std::vector<PageCopy>& page_copies() const { return page_copies_; }
    const RopeConfig& rope() const { return rope_; }
    const KvCacheConfig& kv() const { return limits_.kv; }
    const StepLimits& limits() const { return limits_; }

private:
    Result<WeightId> upload(const TensorView& tensor, bool vector);

    StepLimits limits_;
    std::vector<Upload> uploads_;
    std::vector<Buffer> buffers_;
    std::vector<Step> steps_;
    std::vector<float> logits_;
    std::vector<PageCopy> page_copies_;
    RopeConfig rope_;
    std::int64_t file_bytes_ = 0;
};

}  // namespace frontier

// The KV cache of the CPU backend, and the operations that write and read it.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/backend.h"
#include "platform/memory.h"
#include "platform/thread_pool.h"

namespace frontier {

// Rows of activations: [rows][stride] f32 of which the first `cols` count.
struct Rows {
    float* data = nullptr;
    std::int64_t stride = 0;
    std::int64_t cols = 0;
    float* row(std::int64_t index) const { return data + index * stride; }
};

// [layers][pages][kv_heads][K, V][head_dim * 32]: a layer's pages are contiguous, a page's K and V of one head are
// neighbours, each a whole number of cache lines.
class KvCache {
public:
    // Frees the old cache first. kDoesNotFit names what is needed and what is available.
    Status create(const KvCacheConfig& config);
    const KvCacheConfig& config() const { return config_; }
    std::int64_t bytes() const { return static_cast<std::int64_t>(data_.size_bytes()); }

    std::byte* k_page(std::int64_t layer, std::int64_t page, std::int64_t head) {
        return data_.data() + (layer * config_.pages + page) * page_stride_bytes() + head * 2 * tile_bytes_;
    }
    std::byte* v_page(std::int64_t layer, std::int64_t page, std::int64_t head) {
        return k_page(layer, page, head) + tile_bytes_;
    }
    std::int64_t page_stride_bytes() const { return config_.kv_heads * 2 * tile_bytes_; }
    void copy_page(PageId from, PageId to);

private:
    KvCacheConfig config_;
    std::int64_t tile_bytes_ = 0;  // K or V of one head in one page
    AlignedBuffer data_;
};

// Normalises, rotates and stores; attends. Holds the scratch of both, kept between steps.
class Attention {
public:
    Attention(const KernelTable& kernels, ThreadPool& pool) : kernels_(kernels), pool_(pool) {}

    void set_rope(RopeConfig rope) { rope_ = std::move(rope); }
    const RopeConfig& rope() const { return rope_; }
    KvCache& cache() { return cache_; }
    const KvCache& cache() const { return cache_; }

    Status reserve(std::int32_t max_rows);
    // Once per step, before the first operation: cosines and sines of all rows.
    Status begin_step(const StepInput& input);

    // Null norms: none.
    void rope_and_store(const StepInput& input, std::int32_t layer, const Rows& q, const Rows& k, const Rows& v,
                        const float* q_norm, const float* k_norm, float norm_eps);
    Status attend(const StepInput& input, const AttentionOp& op, const Rows& q, const Rows& out);

    std::int64_t scratch_bytes() const;

private:
    struct Item {  // query rows of one sequence against one KV head
        std::int32_t sequence;
        std::int32_t kv_head;
        std::int32_t first_row;  // within the sequence's slice
        std::int32_t rows;
    };

    void rope_row(std::int64_t row, std::int32_t layer, PageId page, int token, const Rows& q, const Rows& k,
                  const Rows& v, const float* q_norm, const float* k_norm, float norm_eps);
    void attend_item(const StepInput& input, const AttentionOp& op, const Item& item, const Rows& q, const Rows& out,
                     int worker);

    const KernelTable& kernels_;
    ThreadPool& pool_;
    RopeConfig rope_;
    KvCache cache_;
    AlignedBuffer cos_sin_;               // f32 [rows][pairs][2]
    std::vector<AlignedBuffer> scratch_;  // per worker, attention_scratch_floats
    std::vector<Item> items_;
    std::vector<std::int32_t> row_sequence_;  // [rows] index into input.sequences
};

}  // namespace frontier

#include "backend/cpu_attention.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>

#include "backend/cpu_parallel.h"
#include "base/check.h"
#include "kernels/shared/attention_limits.h"
#include "platform/topology.h"

namespace frontier {
namespace {

// Query vectors (rows x heads of a group) of one task. Enough that converting a page to f32 is small against its use
// (1 in 64), few enough that queries, accumulators and scores (64 x 2 x head_dim x 4 bytes) stay in L2.
constexpr int kQueryVectors = 64;
// Below this many multiply-adds (about 10 us on one core) all heads run on the caller.
constexpr std::int64_t kSerialMultiplyAdds = 200'000;

// x0 x1 .. y0 y1 .. to x0 y0 x1 y1 ..
void interleave(float* head, int pairs) {
    float halves[kMaxAttentionHeadDim];
    std::copy_n(head, 2 * pairs, halves);
    for (int i = 0; i < pairs; ++i) {
        head[2 * i] = halves[i];
        head[2 * i + 1] = halves[pairs + i];
    }
}

std::int64_t element_bytes(KvType type) {
    return type == KvType::kF16 ? 2 : 4;
}

}  // namespace

std::int64_t kv_page_bytes(const KvCacheConfig& config) {
    return std::int64_t{config.layers} * config.kv_heads * 2 * kPageTokens * config.head_dim *
           element_bytes(config.type);
}

Status KvCache::create(const KvCacheConfig& config) {
    data_ = AlignedBuffer();
    config_ = KvCacheConfig();
    if (config.layers < 1 || config.kv_heads < 1 || config.pages < 1 || config.head_dim < 2) {
        return bad_input("KV cache: {} layers, {} heads of {}, {} pages, expected positive numbers", config.layers,
                         config.kv_heads, config.head_dim, config.pages);
    }
    if (config.head_dim % 2 != 0 || config.head_dim > kMaxAttentionHeadDim) {
        return bad_input("head dimension {}, expected an even number up to {}", config.head_dim, kMaxAttentionHeadDim);
    }
    // Products of 32-bit counts from files and flags: double is exact enough to refuse what cannot fit.
    const double needed = static_cast<double>(config.layers) * config.kv_heads * config.head_dim * config.pages * 2 *
                          kPageTokens * static_cast<double>(element_bytes(config.type));
    const auto available = static_cast<double>(memory_state().available_bytes);
    if (needed > available) {
        return fail(ErrorCode::kDoesNotFit,
                    "KV cache of {} tokens needs {:.1f} MB, {:.1f} MB are available, use a smaller context",
                    std::int64_t{config.pages} * kPageTokens, needed * 1e-6, available * 1e-6);
    }
    FR_ASSIGN(data_, AlignedBuffer::allocate(static_cast<std::size_t>(kv_page_bytes(config) * config.pages)));
    config_ = config;
    tile_bytes_ = std::int64_t{kPageTokens} * config.head_dim * element_bytes(config.type);
    return {};
}

void KvCache::copy_page(PageId from, PageId to) {
    FR_CHECK(from >= 0 && from < config_.pages && to >= 0 && to < config_.pages);
    if (from == to) return;
    for (std::int32_t layer = 0; layer < config_.layers; ++layer) {
        std::memcpy(k_page(layer, to, 0), k_page(layer, from, 0), static_cast<std::size_t>(page_stride_bytes()));
    }
}

Status Attention::reserve(std::int32_t max_rows) {
    const std::size_t bytes = static_cast<std::size_t>(max_rows) * std::max<std::size_t>(1, rope_.inv_freq.size()) * 8;
    return cos_sin_.grow(static_cast<std::int64_t>(bytes));
}

std::int64_t Attention::scratch_bytes() const {
    std::size_t bytes = cos_sin_.size_bytes();
    for (const AlignedBuffer& worker : scratch_) bytes += worker.size_bytes();
    return static_cast<std::int64_t>(bytes);
}

Status Attention::begin_step(const StepInput& input) {
    const auto rows = static_cast<std::int64_t>(input.positions.size());
    FR_TRY(reserve(static_cast<std::int32_t>(rows)));
    const auto pairs = static_cast<std::int64_t>(rope_.inv_freq.size());
    row_sequence_.resize(static_cast<std::size_t>(rows));
    for (std::size_t s = 0; s < input.sequences.size(); ++s) {
        const SequenceSlice& slice = input.sequences[s];
        std::fill_n(row_sequence_.begin() + slice.first_row, slice.rows, static_cast<std::int32_t>(s));
    }
    // The angle is formed in double: at position 100,000 an f32 angle would be off by up to 0.004.
    const auto body = [&](std::int64_t begin, std::int64_t end, int) {
        for (std::int64_t row = begin; row < end; ++row) {
            float* out = cos_sin_.as<float>() + row * pairs * 2;
            for (std::int64_t i = 0; i < pairs; ++i) {
                const double angle = static_cast<double>(input.positions[row]) * rope_.inv_freq[i];
                out[2 * i] = static_cast<float>(std::cos(angle) * rope_.magnitude);
                out[2 * i + 1] = static_cast<float>(std::sin(angle) * rope_.magnitude);
            }
        }
    };
    // A sine and a cosine cost as much as some 50 elementwise operations.
    for_rows(pool_, rows, pairs * 50, body);
    return {};
}

void Attention::rope_row(std::int64_t row, std::int32_t layer, PageId page, int token, const Rows& q, const Rows& k,
                         const Rows& v, const float* q_norm, const float* k_norm, float norm_eps) {
    const KvCacheConfig& kv = cache_.config();
    const auto pairs = static_cast<int>(rope_.inv_freq.size());
    const float* cos_sin = cos_sin_.as<float>() + row * pairs * 2;
    const auto norm_and_rotate = [&](float* head, const float* norm) {
        if (norm != nullptr) kernels_.rms_norm(head, norm, norm_eps, kv.head_dim, head);
        if (rope_.regroup) interleave(head, pairs);
        if (pairs > 0) kernels_.rope(head, cos_sin, pairs, rope_.interleaved || rope_.regroup);
    };
    for (std::int64_t column = 0; column < q.cols; column += kv.head_dim) norm_and_rotate(q.row(row) + column, q_norm);
    for (std::int32_t head = 0; head < kv.kv_heads; ++head) {
        float* key = k.row(row) + std::int64_t{head} * kv.head_dim;
        norm_and_rotate(key, k_norm);
        kernels_.store_k(key, kv.head_dim, kv.type, token, cache_.k_page(layer, page, head));
        kernels_.store_v(v.row(row) + std::int64_t{head} * kv.head_dim, kv.head_dim, kv.type, token,
                         cache_.v_page(layer, page, head));
    }
}

void Attention::rope_and_store(const StepInput& input, std::int32_t layer, const Rows& q, const Rows& k, const Rows& v,
                               const float* q_norm, const float* k_norm, float norm_eps) {
    const auto body = [&](std::int64_t begin, std::int64_t end, int) {
        for (std::int64_t row = begin; row < end; ++row) {
            const SequenceSlice& slice = input.sequences[row_sequence_[row]];
            const std::int32_t position = input.positions[row];
            rope_row(row, layer, slice.block_table[position / kPageTokens], position % kPageTokens, q, k, v, q_norm,
                     k_norm, norm_eps);
        }
    };
    for_rows(pool_, static_cast<std::int64_t>(input.positions.size()), q.cols + 3 * k.cols, body);
}

void Attention::attend_item(const StepInput& input, const AttentionOp& op, const Item& item, const Rows& q,
                            const Rows& out, int worker) {
    const KvCacheConfig& kv = cache_.config();
    const SequenceSlice& slice = input.sequences[item.sequence];
    const auto group_heads = static_cast<int>(q.cols / kv.head_dim / kv.kv_heads);
    const std::int64_t column = std::int64_t{item.kv_head} * group_heads * kv.head_dim;
    const std::int64_t row = std::int64_t{slice.first_row} + item.first_row;
    kernels_.attention({
        .q = q.row(row) + column,
        .q_stride = q.stride,
        .query_rows = item.rows,
        .group_heads = group_heads,
        .head_dim = kv.head_dim,
        .first_position = std::int64_t{slice.first_position} + item.first_row,
        .window_tokens = op.window_tokens,
        .scale = op.scale,
        .kv_type = kv.type,
        .k_base = cache_.k_page(op.layer, 0, item.kv_head),
        .v_base = cache_.v_page(op.layer, 0, item.kv_head),
        .page_stride_bytes = cache_.page_stride_bytes(),
        .block_table = slice.block_table.data(),
        .out = out.row(row) + column,
        .out_stride = out.stride,
        .scratch = scratch_[worker].as<float>(),
    });
}

Status Attention::attend(const StepInput& input, const AttentionOp& op, const Rows& q, const Rows& out) {
    const KvCacheConfig& kv = cache_.config();
    const auto group_heads = static_cast<std::int32_t>(q.cols / kv.head_dim / kv.kv_heads);
    const std::int32_t block_rows = std::max(1, kQueryVectors / group_heads);
    const std::int64_t floats = attention_scratch_floats(block_rows * group_heads, kv.head_dim);
    scratch_.resize(static_cast<std::size_t>(pool_.threads()));
    for (AlignedBuffer& worker : scratch_) FR_TRY(worker.grow(floats * static_cast<std::int64_t>(sizeof(float))));

    items_.clear();
    std::int64_t multiply_adds = 0;
    for (std::size_t s = 0; s < input.sequences.size(); ++s) {
        const SequenceSlice& slice = input.sequences[s];
        const std::int64_t context = std::int64_t{slice.first_position} + slice.rows;
        const std::int64_t seen = op.window_tokens > 0 ? std::min<std::int64_t>(context, op.window_tokens) : context;
        multiply_adds += 2 * seen * slice.rows * q.cols;
        // Later rows see more keys: they go first, so that no long item is left for the end.
        const std::int32_t last_block = (slice.rows - 1) / block_rows * block_rows;
        for (std::int32_t first = last_block; first >= 0; first -= block_rows) {
            for (std::int32_t head = 0; head < kv.kv_heads; ++head) {
                items_.push_back({static_cast<std::int32_t>(s), head, first, std::min(block_rows, slice.rows - first)});
            }
        }
    }
    const auto body = [&](std::int64_t begin, std::int64_t end, int worker) {
        for (std::int64_t i = begin; i < end; ++i) attend_item(input, op, items_[i], q, out, worker);
    };
    const auto count = static_cast<std::int64_t>(items_.size());
    if (multiply_adds <= kSerialMultiplyAdds) {
        body(0, count, 0);
    } else {
        pool_.parallel_for(count, 1, std::ref(body));
    }
    return {};
}

}  // namespace frontier

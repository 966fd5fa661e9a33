// Attention in plain C++, double inside. The definition of correct: the vector versions differ from it by rounding.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/isa_functions.h"
#include "kernels/shared/attention_limits.h"
#include "tensor/half.h"

namespace frontier {

std::int64_t attention_scratch_floats(int query_rows_times_heads, int head_dim) {
    // Per query vector: the scaled query and the accumulator (head_dim rounded up to the widest lanes, 16), 32 scores,
    // 16 partial sums, maximum and correction. Once: a K or V page as f32. The scalar version needs none of it.
    const std::int64_t padded_dim = (head_dim + 15) / 16 * 16;
    return query_rows_times_heads * (2 * padded_dim + kPageTokens + 16 + 2) + kPageTokens * padded_dim;
}

namespace scalar {
namespace {

float load_element(const std::byte* base, std::int64_t index, KvType type) {
    if (type == KvType::kF16) {
        F16 half{};
        std::memcpy(&half, base + 2 * index, 2);
        return to_f32(half);
    }
    float value = 0;
    std::memcpy(&value, base + 4 * index, 4);
    return value;
}

// One query vector over its visible pages.
void attend(const AttentionTask& task, const float* q, std::int64_t position, float* out) {
    const std::int64_t begin =
        task.window_tokens > 0 ? std::max<std::int64_t>(0, position - task.window_tokens + 1) : 0;
    const std::int64_t end = position + 1;
    double accumulated[kMaxAttentionHeadDim] = {};
    double weight_sum = 0;
    double maximum = -std::numeric_limits<double>::infinity();
    for (std::int64_t page = begin / kPageTokens; page * kPageTokens < end; ++page) {
        const std::int64_t first = page * kPageTokens;
        const auto token_begin = static_cast<int>(std::max<std::int64_t>(0, begin - first));
        const auto token_end = static_cast<int>(std::min<std::int64_t>(kPageTokens, end - first));
        const std::int64_t offset = task.block_table[page] * task.page_stride_bytes;
        double scores[kPageTokens];
        double page_maximum = maximum;
        for (int t = token_begin; t < token_end; ++t) {
            double score = 0;
            for (int d = 0; d < task.head_dim; ++d) {
                score +=
                    static_cast<double>(q[d]) * load_element(task.k_base + offset, d * kPageTokens + t, task.kv_type);
            }
            score *= static_cast<double>(task.scale);
            // A score of -infinity would get weight 0 and hide a fault in K: any non-finite one becomes NaN.
            scores[t] = score + (score - score);
            page_maximum = std::max(page_maximum, scores[t]);
        }
        const double correction = std::exp(maximum - page_maximum);
        maximum = page_maximum;
        weight_sum *= correction;
        for (int d = 0; d < task.head_dim; ++d) accumulated[d] *= correction;
        for (int t = token_begin; t < token_end; ++t) {
            const double weight = std::exp(scores[t] - maximum);
            weight_sum += weight;
            for (int d = 0; d < task.head_dim; ++d) {
                accumulated[d] +=
                    weight * load_element(task.v_base + offset, std::int64_t{t} * task.head_dim + d, task.kv_type);
            }
        }
    }
    for (int d = 0; d < task.head_dim; ++d) out[d] = static_cast<float>(accumulated[d] / weight_sum);
}

void attention(const AttentionTask& task) {
    for (int row = 0; row < task.query_rows; ++row) {
        for (int head = 0; head < task.group_heads; ++head) {
            const std::int64_t column = std::int64_t{head} * task.head_dim;
            attend(task, task.q + row * task.q_stride + column, task.first_position + row,
                   task.out + row * task.out_stride + column);
        }
    }
}

}  // namespace

void fill_attention(KernelTable& table) {
    table.attention = attention;
}

}  // namespace scalar
}  // namespace frontier

// A small decoder: random weights, a double-precision forward pass, and the same through a backend.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/cpu_backend.h"
#include "backend_test_data.h"

namespace frontier {

struct DecoderShape {
    std::string name;
    std::int64_t vocab = 77;  // odd sizes, so that panels and lanes have remainders
    std::int64_t hidden = 64;
    std::int64_t layers = 3;
    std::int64_t heads = 4;
    std::int64_t kv_heads = 2;
    std::int64_t head_dim = 16;
    std::int64_t ffn = 96;
    std::int64_t window = 0;
    std::int64_t rotated_dims = 16;
    bool interleaved = true;
    bool bias = false;
    bool qk_norm = false;
    bool tied = false;
};

DecoderShape llama_shape();
DecoderShape qwen2_shape();   // biases, half-split rotation, tied embedding
DecoderShape qwen3_shape();   // per-head norms
DecoderShape window_shape();  // sliding window, partial rotation, one KV head

struct DecoderLayer {
    TestTensor attn_norm, q, k, v, q_bias, k_bias, v_bias, q_norm, k_norm, attn_out, ffn_norm, gate, up, down;
};

struct DecoderWeights {
    DecoderShape shape;
    TestTensor embedding, output_norm, head;
    std::vector<DecoderLayer> layers;
    RopeConfig rope;

    std::vector<const TestTensor*> all() const;  // in the order of their upload
};

// Matrices of `type`, vectors f32.
DecoderWeights random_decoder(const DecoderShape& shape, DType type);

// Logits after each of `tokens`.
std::vector<std::vector<double>> reference_logits(const DecoderWeights& weights, const std::vector<TokenId>& tokens);

struct Chunk {
    int sequence = 0;
    int first_position = 0;
    std::vector<TokenId> tokens;
};

// The decoder in a CPU backend, with up to 4 sequences of up to 128 tokens in interleaved pages.
class DecoderRun {
public:
    static constexpr std::int32_t kPages = 16;

    DecoderRun(const DecoderWeights& weights, const CpuBackendOptions& options, KvType kv);

    // One step. Logits of the given batch rows, or of each chunk's last row.
    std::vector<float> forward(const std::vector<Chunk>& chunks,
                               const std::optional<std::vector<std::int32_t>>& logits_rows = std::nullopt);
    // Gives sequence `to` the cache of `from` (33..64 tokens): shares the first page, copies the second.
    void fork(int from, int to);

    Backend& backend() { return *backend_; }
    const KvCacheConfig& kv_config() const { return kv_; }

private:
    struct Ids {
        WeightId attn_norm, q, k, v, q_bias, k_bias, v_bias, q_norm, k_norm, attn_out, ffn_norm, gate, up, down;
    };
    WeightId matrix(const TestTensor& tensor);
    WeightId vector(const TestTensor& tensor);
    void record(Step& step) const;

    const DecoderShape shape_;
    std::unique_ptr<Backend> backend_;
    KvCacheConfig kv_;
    WeightId embedding_, output_norm_, head_;
    std::vector<Ids> layers_;
    BufferId hidden_, normed_, q_, k_, v_, attended_, ffn_;
    std::vector<std::vector<PageId>> block_tables_;
};

}  // namespace frontier

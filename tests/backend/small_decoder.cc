#include "small_decoder.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace frontier {
namespace {

constexpr float kEps = 1e-5F;

using Vector = std::vector<double>;

Vector times(const TestTensor& matrix, const Vector& x) {
    Vector out;
    for (std::int64_t r = 0; r < matrix.info.rows(); ++r) {
        double sum = 0;
        for (std::size_t k = 0; k < x.size(); ++k) sum += matrix.row(r)[k] * x[k];
        out.push_back(sum);
    }
    return out;
}

void add(Vector& x, const Vector& y) {
    for (std::size_t i = 0; i < x.size(); ++i) x[i] += y[i];
}

void add(Vector& x, const TestTensor& y) {
    for (std::size_t i = 0; i < x.size() && !y.values.empty(); ++i) x[i] += y.values[i];
}

// Of x[first, first + n).
void rms_norm(Vector& x, std::size_t first, std::size_t n, const TestTensor& gain) {
    double squares = 0;
    for (std::size_t i = 0; i < n; ++i) squares += x[first + i] * x[first + i];
    const double factor = 1 / std::sqrt(squares / static_cast<double>(n) + static_cast<double>(kEps));
    for (std::size_t i = 0; i < n; ++i) x[first + i] *= factor * gain.values[i];
}

void norm_and_rotate(Vector& x, const DecoderWeights& w, const TestTensor& norm, std::size_t position) {
    const auto head_dim = static_cast<std::size_t>(w.shape.head_dim);
    const std::size_t pairs = w.rope.inv_freq.size();
    for (std::size_t head = 0; head < x.size(); head += head_dim) {
        if (!norm.values.empty()) rms_norm(x, head, head_dim, norm);
        for (std::size_t i = 0; i < pairs; ++i) {
            const double angle = static_cast<double>(position) * w.rope.inv_freq[i];
            double& a = x[head + (w.rope.interleaved ? 2 * i : i)];
            double& b = x[head + (w.rope.interleaved ? 2 * i + 1 : i + pairs)];
            const double c = std::cos(angle) * w.rope.magnitude;
            const double s = std::sin(angle) * w.rope.magnitude;
            const double rotated = a * c - b * s;
            b = b * c + a * s;
            a = rotated;
        }
    }
}

Vector attend(const DecoderShape& shape, const Vector& q, const std::vector<Vector>& keys,
              const std::vector<Vector>& values) {
    Vector out(q.size(), 0);
    const auto last = static_cast<std::int64_t>(keys.size()) - 1;
    const std::int64_t first = shape.window > 0 ? std::max<std::int64_t>(0, last - shape.window + 1) : 0;
    for (std::int64_t head = 0; head < shape.heads; ++head) {
        const std::int64_t kv_column = head / (shape.heads / shape.kv_heads) * shape.head_dim;
        Vector weights;
        double sum = 0;
        for (std::int64_t t = first; t <= last; ++t) {
            double score = 0;
            for (std::int64_t d = 0; d < shape.head_dim; ++d) {
                score += q[head * shape.head_dim + d] * keys[t][kv_column + d];
            }
            weights.push_back(std::exp(score / std::sqrt(static_cast<double>(shape.head_dim))));
            sum += weights.back();
        }
        for (std::int64_t t = first; t <= last; ++t) {
            for (std::int64_t d = 0; d < shape.head_dim; ++d) {
                out[head * shape.head_dim + d] += weights[t - first] / sum * values[t][kv_column + d];
            }
        }
    }
    return out;
}

TestTensor gain(const std::string& name, std::int64_t n, std::uint64_t seed) {
    TestTensor tensor = random_tensor(name, DType::kF32, {n}, seed);
    for (float& value : tensor.values) value = 1 + 4 * value;
    std::memcpy(tensor.bytes.data(), tensor.values.data(), tensor.bytes.size());
    return tensor;
}

}  // namespace

DecoderShape llama_shape() {
    return {.name = "llama"};
}
DecoderShape qwen2_shape() {
    return {.name = "qwen2", .heads = 8, .kv_heads = 1, .interleaved = false, .bias = true, .tied = true};
}
DecoderShape qwen3_shape() {
    return {.name = "qwen3",
            .heads = 4,
            .kv_heads = 4,
            .head_dim = 24,
            .rotated_dims = 24,
            .interleaved = false,
            .qk_norm = true};
}
DecoderShape window_shape() {
    return {.name = "window", .heads = 6, .kv_heads = 2, .window = 20, .rotated_dims = 10};
}

std::vector<const TestTensor*> DecoderWeights::all() const {
    std::vector<const TestTensor*> tensors = {&embedding, &output_norm};
    if (!shape.tied) tensors.push_back(&head);
    for (const DecoderLayer& l : layers) {
        for (const TestTensor* tensor : {&l.attn_norm, &l.q, &l.k, &l.v, &l.q_bias, &l.k_bias, &l.v_bias, &l.q_norm,
                                         &l.k_norm, &l.attn_out, &l.ffn_norm, &l.gate, &l.up, &l.down}) {
            if (!tensor->values.empty()) tensors.push_back(tensor);
        }
    }
    return tensors;
}

DecoderWeights random_decoder(const DecoderShape& shape, DType type) {
    DecoderWeights w;
    w.shape = shape;
    std::uint64_t seed = 1;
    const auto matrix = [&](const std::string& name, std::int64_t rows, std::int64_t cols) {
        return random_tensor(name, type, {rows, cols}, ++seed, 1 / std::sqrt(static_cast<float>(cols)));
    };
    const std::int64_t q_dim = shape.heads * shape.head_dim;
    const std::int64_t kv_dim = shape.kv_heads * shape.head_dim;
    w.embedding = matrix("embedding", shape.vocab, shape.hidden);
    w.output_norm = gain("output_norm", shape.hidden, ++seed);
    w.head = shape.tied ? w.embedding : matrix("head", shape.vocab, shape.hidden);
    for (std::int64_t i = 0; i < shape.layers; ++i) {
        DecoderLayer l;
        l.attn_norm = gain("attn_norm", shape.hidden, ++seed);
        l.q = matrix("q", q_dim, shape.hidden);
        l.k = matrix("k", kv_dim, shape.hidden);
        l.v = matrix("v", kv_dim, shape.hidden);
        if (shape.bias) {
            l.q_bias = random_tensor("q_bias", DType::kF32, {q_dim}, ++seed, 0.5F);
            l.k_bias = random_tensor("k_bias", DType::kF32, {kv_dim}, ++seed, 0.5F);
            l.v_bias = random_tensor("v_bias", DType::kF32, {kv_dim}, ++seed, 0.5F);
        }
        if (shape.qk_norm) {
            l.q_norm = gain("q_norm", shape.head_dim, ++seed);
            l.k_norm = gain("k_norm", shape.head_dim, ++seed);
        }
        l.attn_out = matrix("attn_out", shape.hidden, q_dim);
        l.ffn_norm = gain("ffn_norm", shape.hidden, ++seed);
        l.gate = matrix("gate", shape.ffn, shape.hidden);
        l.up = matrix("up", shape.ffn, shape.hidden);
        l.down = matrix("down", shape.hidden, shape.ffn);
        w.layers.push_back(std::move(l));
    }
    w.rope.interleaved = shape.interleaved;
    w.rope.magnitude = 1.1F;
    for (std::int64_t i = 0; i < shape.rotated_dims / 2; ++i) {
        w.rope.inv_freq.push_back(static_cast<float>(std::pow(0.3, static_cast<double>(i))));
    }
    return w;
}

std::vector<std::vector<double>> reference_logits(const DecoderWeights& w, const std::vector<TokenId>& tokens) {
    const auto hidden = static_cast<std::size_t>(w.shape.hidden);
    std::vector<std::vector<Vector>> keys(w.layers.size());
    std::vector<std::vector<Vector>> values(w.layers.size());
    std::vector<Vector> logits;
    for (std::size_t position = 0; position < tokens.size(); ++position) {
        const float* embedded = w.embedding.row(tokens[position]);
        Vector x(embedded, embedded + hidden);
        for (std::size_t i = 0; i < w.layers.size(); ++i) {
            const DecoderLayer& l = w.layers[i];
            Vector normed = x;
            rms_norm(normed, 0, hidden, l.attn_norm);
            Vector q = times(l.q, normed);
            Vector k = times(l.k, normed);
            Vector v = times(l.v, normed);
            add(q, l.q_bias);
            add(k, l.k_bias);
            add(v, l.v_bias);
            norm_and_rotate(q, w, l.q_norm, position);
            norm_and_rotate(k, w, l.k_norm, position);
            keys[i].push_back(k);
            values[i].push_back(v);
            add(x, times(l.attn_out, attend(w.shape, q, keys[i], values[i])));
            normed = x;
            rms_norm(normed, 0, hidden, l.ffn_norm);
            Vector gate = times(l.gate, normed);
            const Vector up = times(l.up, normed);
            for (std::size_t j = 0; j < gate.size(); ++j) gate[j] = gate[j] / (1 + std::exp(-gate[j])) * up[j];
            add(x, times(l.down, gate));
        }
        rms_norm(x, 0, hidden, w.output_norm);
        logits.push_back(times(w.head, x));
    }
    return logits;
}

DecoderRun::DecoderRun(const DecoderWeights& weights, const CpuBackendOptions& options, KvType kv)
    : shape_(weights.shape), backend_(make_cpu_backend(options)) {
    embedding_ = matrix(weights.embedding);
    output_norm_ = vector(weights.output_norm);
    head_ = shape_.tied ? embedding_ : matrix(weights.head);
    for (const DecoderLayer& l : weights.layers) {
        layers_.push_back({vector(l.attn_norm), matrix(l.q), matrix(l.k), matrix(l.v), vector(l.q_bias),
                           vector(l.k_bias), vector(l.v_bias), vector(l.q_norm), vector(l.k_norm), matrix(l.attn_out),
                           vector(l.ffn_norm), matrix(l.gate), matrix(l.up), matrix(l.down)});
    }
    const std::int64_t q_dim = shape_.heads * shape_.head_dim;
    const std::int64_t kv_dim = shape_.kv_heads * shape_.head_dim;
    hidden_ = backend_->create_buffer("hidden", shape_.hidden);
    normed_ = backend_->create_buffer("normed", shape_.hidden);
    q_ = backend_->create_buffer("q", q_dim);
    k_ = backend_->create_buffer("k", kv_dim);
    v_ = backend_->create_buffer("v", kv_dim);
    attended_ = backend_->create_buffer("attended", q_dim);
    ffn_ = backend_->create_buffer("ffn", shape_.ffn);
    backend_->set_rope(weights.rope);
    EXPECT_TRUE(backend_->reserve(110, 8).has_value());
    kv_ = {.layers = static_cast<std::int32_t>(shape_.layers),
           .kv_heads = static_cast<std::int32_t>(shape_.kv_heads),
           .head_dim = static_cast<std::int32_t>(shape_.head_dim),
           .type = kv,
           .pages = kPages};
    EXPECT_TRUE(backend_->create_kv_cache(kv_).has_value());
    for (PageId s = 0; s < 4; ++s) block_tables_.push_back({s, s + 4, s + 8, s + 12});
}

WeightId DecoderRun::matrix(const TestTensor& tensor) {
    const Result<WeightId> id = backend_->upload_matrix(tensor.view());
    EXPECT_TRUE(id.has_value()) << id.error().text;
    return id.value_or(WeightId{});
}

WeightId DecoderRun::vector(const TestTensor& tensor) {
    if (tensor.values.empty()) return {};
    const Result<WeightId> id = backend_->upload_vector(tensor.view());
    EXPECT_TRUE(id.has_value()) << id.error().text;
    return id.value_or(WeightId{});
}

void DecoderRun::record(Step& step) const {
    step.ops.emplace_back(EmbedOp{embedding_, hidden_});
    for (std::size_t i = 0; i < layers_.size(); ++i) {
        const Ids& l = layers_[i];
        const auto layer = static_cast<std::int32_t>(i);
        step.ops.emplace_back(RmsNormOp{hidden_, l.attn_norm, kEps, normed_});
        step.ops.emplace_back(QkvOp{normed_, l.q, l.k, l.v, l.q_bias, l.k_bias, l.v_bias, q_, k_, v_});
        step.ops.emplace_back(RopeKvWriteOp{layer, q_, k_, v_, l.q_norm, l.k_norm, kEps});
        step.ops.emplace_back(AttentionOp{layer, q_, attended_, 1 / std::sqrt(static_cast<float>(shape_.head_dim)),
                                          static_cast<std::int32_t>(shape_.window)});
        step.ops.emplace_back(ProjectResidualOp{attended_, l.attn_out, {}, hidden_});
        step.ops.emplace_back(RmsNormOp{hidden_, l.ffn_norm, kEps, normed_});
        step.ops.emplace_back(GateUpOp{normed_, l.gate, l.up, Activation::kSilu, ffn_});
        step.ops.emplace_back(ProjectResidualOp{ffn_, l.down, {}, hidden_});
    }
    step.ops.emplace_back(LogitsOp{hidden_, output_norm_, kEps, head_, {}});
}

std::vector<float> DecoderRun::forward(const std::vector<Chunk>& chunks,
                                       const std::optional<std::vector<std::int32_t>>& logits_rows) {
    Step step;
    for (const Chunk& chunk : chunks) {
        const auto first_row = static_cast<std::int32_t>(step.input.tokens.size());
        const auto rows = static_cast<std::int32_t>(chunk.tokens.size());
        step.input.sequences.push_back({first_row, rows, chunk.first_position, block_tables_[chunk.sequence]});
        for (std::int32_t i = 0; i < rows; ++i) {
            step.input.tokens.push_back(chunk.tokens[i]);
            step.input.positions.push_back(chunk.first_position + i);
        }
        if (!logits_rows.has_value()) step.input.logits_rows.push_back(first_row + rows - 1);
    }
    if (logits_rows.has_value()) step.input.logits_rows = *logits_rows;
    record(step);
    EXPECT_TRUE(backend_->submit(step).has_value());
    const Result<std::span<float>> logits = backend_->read_logits();
    EXPECT_TRUE(logits.has_value());
    EXPECT_EQ(logits->size(), step.input.logits_rows.size() * static_cast<std::size_t>(shape_.vocab));
    EXPECT_TRUE(std::ranges::equal(*logits, backend_->read_logits().value()));  // may be read again
    return {logits->begin(), logits->end()};
}

void DecoderRun::fork(int from, int to) {
    block_tables_[to][0] = block_tables_[from][0];
    backend_->copy_page(block_tables_[from][1], block_tables_[to][1]);
}

}  // namespace frontier

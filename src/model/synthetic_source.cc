// Generation of synthetic weights, and the source that hands them to the loader.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "base/hash.h"
#include "formats/printable.h"
#include "model/rope_scaling.h"
#include "model/synthetic.h"
#include "platform/memory.h"
#include "platform/topology.h"
#include "tensor/random_blocks.h"

namespace frontier {
namespace {

constexpr std::string_view kPrefix = "synthetic:";
constexpr std::string_view kDefaultQuant = "Q4_0";
constexpr std::string_view kRopeFactors = "rope_freqs.weight";

bool same_ignoring_case(std::string_view a, std::string_view b) {
    return std::ranges::equal(a, b,
                              [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

template <typename Rows>
std::string names_of(const Rows& rows) {
    std::string names;
    for (const auto& row : rows) {
        if (!names.empty()) names += ", ";
        names += row.name;
    }
    return names;
}

template <typename Rows>
auto find_row(const Rows& rows, std::string_view name) -> decltype(&*rows.begin()) {
    for (const auto& row : rows)
        if (same_ignoring_case(row.name, name)) return &row;
    return nullptr;
}

std::uint64_t text_hash(std::string_view text) {
    return fnv1a64(text.data(), text.size());
}

// With a spread of 1 / sqrt(cols) a product keeps the size of its normalised input; gains are near 1.
struct Distribution {
    float mean = 0;
    float stddev = 0;
};
Distribution distribution_of(const TensorInfo& info) {
    if (info.shape.size() == 2) return {0, 1.0F / std::sqrt(static_cast<float>(info.cols()))};
    if (info.name.ends_with("norm.weight")) return {1, 0.1F};
    return {0, 0.1F};  // biases
}

ModelConfig config_of(const SyntheticShape& shape, std::span<const float> rope_factors) {
    ModelConfig config;
    config.architecture = find_architecture(shape.architecture);
    FR_CHECK(config.architecture != nullptr);
    config.name = shape.name;
    config.vocab_size = shape.vocab_size;
    config.hidden_size = shape.hidden_size;
    config.layers = shape.layers;
    config.heads = shape.heads;
    config.kv_heads = shape.kv_heads;
    config.head_dim = shape.head_dim;
    config.ffn_size = shape.ffn_size;
    config.context_tokens = shape.context_tokens;
    config.rms_norm_eps = static_cast<float>(shape.rms_norm_eps);
    config.tied_embeddings = shape.tied_embeddings;
    config.qkv_bias = config.architecture->qkv_bias;
    config.sliding_window_tokens = shape.sliding_window_tokens;
    config.attention_scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(shape.head_dim)));
    config.rope = make_rope(shape.rope_theta, shape.head_dim, {}, rope_factors);
    config.rope.interleaved = config.architecture->gguf_rope_interleaved;
    return config;
}

}  // namespace

Result<SyntheticModel> SyntheticModel::create(std::string_view spec) {
    const std::string_view given = spec;
    if (spec.starts_with(kPrefix)) spec.remove_prefix(kPrefix.size());
    const std::size_t colon = spec.find(':');
    const std::string_view shape_name = spec.substr(0, colon);
    const std::string_view quant_name = colon == std::string_view::npos ? kDefaultQuant : spec.substr(colon + 1);

    SyntheticModel model;
    model.shape_ = find_row(synthetic_shapes(), shape_name);
    if (model.shape_ == nullptr)
        return bad_input("{}: SHAPE: expected one of {}, got '{}'", printable(given), names_of(synthetic_shapes()),
                         printable(shape_name));
    model.quant_ = find_row(synthetic_quants(), quant_name);
    if (model.quant_ == nullptr)
        return bad_input("{}: QUANT: expected one of {}, got '{}'", printable(given), names_of(synthetic_quants()),
                         printable(quant_name));
    const SyntheticShape& shape = *model.shape_;
    if (shape.llama3_factor > 0) {
        RopeScaling scaling{.kind = RopeScaling::Kind::kLlama3, .factor = shape.llama3_factor};
        scaling.original_context_tokens = 8192;  // all Llama 3 models
        model.rope_factors_ = llama3_rope_factors(shape.rope_theta, shape.head_dim, scaling);
    }
    model.config_ = config_of(shape, model.rope_factors_);
    model.add_tensors();
    return model;
}

void SyntheticModel::add_tensors() {
    if (!rope_factors_.empty())
        tensors_.push_back({std::string(kRopeFactors), DType::kF32, {std::int64_t{config_.head_dim} / 2}});
    for (const WeightSpec& spec : weight_specs(config_))
        tensors_.push_back({spec.name, synthetic_tensor_type(*quant_, config_, spec), spec.shape});
}

void SyntheticModel::generate(std::size_t index, std::span<std::byte> out, ThreadPool& pool) const {
    const TensorInfo& info = tensors_[index];
    FR_CHECK(static_cast<std::int64_t>(out.size()) == info.bytes());
    if (info.name == kRopeFactors) {
        std::memcpy(out.data(), rope_factors_.data(), out.size());
        return;
    }
    const DTypeInfo& type = dtype_info(info.type);
    const Distribution distribution = distribution_of(info);
    const std::int64_t blocks = info.elements() / type.block_elements;
    // About 64 KiB a chunk: far above the cost of handing it out, far below a tensor.
    const std::int64_t grain = std::max<std::int64_t>(1, 65536 / type.block_bytes);
    const std::uint64_t seed = text_hash(shape_->name);
    const std::uint64_t stream = text_hash(info.name);
    pool.parallel_for(blocks, grain, [&](std::int64_t begin, std::int64_t end, int) {
        fill_random_blocks(info.type, seed, stream, begin, end - begin, distribution.stddev,
                           out.data() + begin * type.block_bytes);
    });
    if (distribution.mean == 0) return;
    for (std::size_t i = 0; i < out.size(); i += sizeof(float)) {  // vectors are F32
        float value = 0;
        std::memcpy(&value, out.data() + i, sizeof(float));
        value += distribution.mean;
        std::memcpy(out.data() + i, &value, sizeof(float));
    }
}

namespace {

class SyntheticSource : public ModelSource {
public:
    explicit SyntheticSource(SyntheticModel model)
        : model_(std::move(model)), where_(fmt::format("{}{}:{}", kPrefix, model_.shape().name, model_.quant().name)) {}

    std::string_view format() const override { return "synthetic"; }
    const std::string& where() const override { return where_; }
    std::string architecture_name() const override { return std::string(model_.config().architecture->name); }
    const ModelConfig& config() const override { return model_.config(); }
    bool has_model() const override { return true; }
    const std::vector<TensorInfo>& tensors() const override { return model_.tensors(); }
    const TensorInfo* find(std::string_view name) const override {
        const auto& list = model_.tensors();
        const auto it = std::ranges::find(list, name, &TensorInfo::name);
        return it == list.end() ? nullptr : &*it;
    }

    Result<TensorView> map(std::string_view name) override {
        const TensorInfo* info = find(name);
        if (info == nullptr) return bad_input("{}: tensor {} is missing", where_, name);
        const auto bytes = static_cast<std::size_t>(info->bytes());
        if (buffer_.size_bytes() < bytes) {
            buffer_ = AlignedBuffer();  // the old one goes before the new one comes
            FR_ASSIGN(buffer_, AlignedBuffer::allocate(bytes));
        }
        // Threads live only while they work; a norm is made by the caller alone.
        constexpr std::size_t kParallelBytes = 1 << 20;
        ThreadPool pool(bytes < kParallelBytes ? 1 : topology().default_threads);
        model_.generate(static_cast<std::size_t>(info - model_.tensors().data()), buffer_.bytes().first(bytes), pool);
        return TensorView{*info, buffer_.bytes().first(bytes)};
    }
    // A buffer as large as an embedding would count against the memory bound of loading.
    void release(std::string_view) override {
        constexpr std::size_t kKeptBytes = 32 << 20;
        if (buffer_.size_bytes() > kKeptBytes) buffer_ = AlignedBuffer();
    }

    Result<std::shared_ptr<const Tokenizer>> tokenizer() override {
        if (!tokenizer_) {
            FR_ASSIGN(tokenizer_, Tokenizer::create(synthetic_tokenizer_spec(model_.shape())));
        }
        return tokenizer_;
    }
    std::string chat_template_source() const override { return {}; }
    GenerationDefaults generation_defaults() const override { return {}; }
    std::string weight_type() const override { return weight_type_of(model_.tensors()); }
    std::int64_t file_bytes() const override {
        std::int64_t bytes = 0;
        for (const TensorInfo& info : model_.tensors()) bytes += info.bytes();
        return bytes;
    }

private:
    SyntheticModel model_;
    std::string where_;
    AlignedBuffer buffer_;
    std::shared_ptr<const Tokenizer> tokenizer_;
};

}  // namespace

Result<std::unique_ptr<ModelSource>> open_synthetic_source(std::string_view spec) {
    FR_ASSIGN(SyntheticModel model, SyntheticModel::create(spec));
    return std::make_unique<SyntheticSource>(std::move(model));
}

}  // namespace frontier

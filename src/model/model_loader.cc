// Binding of a source's tensors to a model: all checks first, then the uploads in file order.
#include <algorithm>
#include <unordered_map>

#include "base/log.h"
#include "formats/printable.h"
#include "model/model.h"
#include "model/weight_specs.h"
#include "platform/topology.h"

namespace frontier {

class ModelLoader {
public:
    ModelLoader(ModelSource& source, Backend& backend) : source_(source), backend_(backend) {}

    Result<std::unique_ptr<Model>> load(const Model::Progress& progress);

private:
    Status check_tensors();
    Status check_memory() const;
    Status check_leftovers() const;
    Status upload(const Model::Progress& progress);
    void account();
    void create_buffers();
    WeightId& slot(const WeightSpec& spec);

    ModelSource& source_;
    Backend& backend_;
    std::unique_ptr<Model> model_;
    std::vector<WeightSpec> specs_;
    std::unordered_map<std::string_view, const WeightSpec*> by_name_;  // keys live in specs_
    std::int64_t total_bytes_ = 0;
};

namespace {

// Tensors of a layer that we do not bind would have taken part in the forward pass of the model's author. Tables of
// rotary frequencies are the exception: they are computed from the config.
bool is_rotary_table(std::string_view name) {
    return name.find("rotary") != std::string_view::npos || name.find("rope") != std::string_view::npos;
}

bool changes_the_result(std::string_view name) {
    constexpr std::string_view kOthers[] = {"output.bias", "output_norm.bias", "token_embd_norm.weight",
                                            "token_embd_norm.bias"};
    if (std::ranges::find(kOthers, name) != std::end(kOthers)) return true;
    return name.starts_with("blk.") && !is_rotary_table(name);
}

bool is_float(DType type) {
    return type == DType::kF32 || type == DType::kF16 || type == DType::kBF16;
}

}  // namespace

Status ModelLoader::check_tensors() {
    for (const WeightSpec& spec : specs_) {
        const TensorInfo* info = source_.find(spec.name);
        if (info == nullptr) {
            const std::string reason = source_.why_unusable(spec.name);
            if (!reason.empty())
                return bad_input("{}: tensor {}: expected F32, F16 or BF16, got {}", source_.where(), spec.name,
                                 reason);
            return bad_input("{}: tensor {} is missing, expected shape {}", source_.where(), spec.name,
                             shape_text(spec.shape));
        }
        if (info->shape != spec.shape)
            return bad_input("{}: tensor {}: expected shape {}, got {}", source_.where(), spec.name,
                             shape_text(spec.shape), shape_text(info->shape));
        if (!spec.is_matrix() && !is_float(info->type))
            return bad_input("{}: tensor {}: expected a vector of F32, F16 or BF16, got {}", source_.where(), spec.name,
                             dtype_name(info->type));
        total_bytes_ += info->bytes();
    }
    return check_leftovers();
}

Status ModelLoader::check_leftovers() const {
    for (const TensorInfo& info : source_.tensors()) {
        if (by_name_.contains(info.name)) continue;
        // A head beside tied embeddings is a copy of them; transformers ignores it too.
        if (changes_the_result(info.name))
            return bad_input("{}: tensor {} {}: expected only tensors of a {} model with {} layers", source_.where(),
                             info.name, shape_text(info.shape), source_.config().architecture->name,
                             source_.config().layers);
        spdlog::debug("{}: tensor {} is not used", printable(source_.where()), printable(info.name));
    }
    return {};
}

// The largest packed layout (Q4_K, see kernels/packing.h) takes 2.8% more than its file bytes.
Status ModelLoader::check_memory() const {
    const std::int64_t needed = total_bytes_ + total_bytes_ / 32;
    const std::int64_t available = memory_state().available_bytes;
    if (needed > available)
        return fail(ErrorCode::kDoesNotFit, "{}: the weights need {:.2f} GB of memory, {:.2f} GB are available",
                    source_.where(), static_cast<double>(needed) / 1e9, static_cast<double>(available) / 1e9);
    return {};
}

WeightId& ModelLoader::slot(const WeightSpec& spec) {
    if (spec.role == WeightRole::kTokenEmbedding) return model_->embedding_;
    if (spec.role == WeightRole::kOutputNorm) return model_->output_norm_;
    if (spec.role == WeightRole::kOutput) return model_->head_;
    Model::Layer& layer = model_->layers_[static_cast<std::size_t>(spec.layer)];
    switch (spec.role) {
        case WeightRole::kAttnNorm:
            return layer.attn_norm;
        case WeightRole::kAttnQ:
            return layer.q;
        case WeightRole::kAttnK:
            return layer.k;
        case WeightRole::kAttnV:
            return layer.v;
        case WeightRole::kAttnQBias:
            return layer.q_bias;
        case WeightRole::kAttnKBias:
            return layer.k_bias;
        case WeightRole::kAttnVBias:
            return layer.v_bias;
        case WeightRole::kAttnQNorm:
            return layer.q_norm;
        case WeightRole::kAttnKNorm:
            return layer.k_norm;
        case WeightRole::kAttnOut:
            return layer.attn_out;
        case WeightRole::kAttnOutBias:
            return layer.attn_out_bias;
        case WeightRole::kFfnNorm:
            return layer.ffn_norm;
        case WeightRole::kFfnGate:
            return layer.gate;
        case WeightRole::kFfnUp:
            return layer.up;
        default:
            return layer.down;
    }
}

Status ModelLoader::upload(const Model::Progress& progress) {
    std::int64_t done_bytes = 0;
    // Copied: a source may reorder nothing, but its list must not be walked while it maps.
    const std::vector<TensorInfo> order = source_.tensors();
    for (const TensorInfo& info : order) {
        const auto found = by_name_.find(info.name);
        if (found == by_name_.end()) continue;
        const WeightSpec& spec = *found->second;
        FR_ASSIGN(const TensorView view, source_.map(info.name));
        auto id = spec.is_matrix() ? backend_.upload_matrix(view) : backend_.upload_vector(view);
        if (!id) {
            Error error = std::move(id).error();
            error.text = fmt::format("{}: {}", source_.where(), error.text);
            return std::unexpected(std::move(error));
        }
        slot(spec) = *id;
        source_.release(info.name);
        done_bytes += info.bytes();
        if (progress) progress(done_bytes, total_bytes_);
    }
    if (model_->config_.tied_embeddings) model_->head_ = model_->embedding_;
    return {};
}

void ModelLoader::account() {
    const bool tied = model_->config_.tied_embeddings;
    for (const WeightSpec& spec : specs_) {
        const TensorInfo& info = *source_.find(spec.name);
        const bool one_row = spec.role == WeightRole::kTokenEmbedding && !tied;
        model_->decode_bytes_ += one_row ? info.bytes() / info.rows() : info.bytes();
        if (!spec.is_matrix() || one_row) continue;
        model_->flops_per_token_ += 2 * info.elements();
        if (spec.role == WeightRole::kTokenEmbedding || spec.role == WeightRole::kOutput)
            model_->head_flops_per_row_ += 2 * info.elements();
    }
}

void ModelLoader::create_buffers() {
    const ModelConfig& c = model_->config_;
    model_->hidden_ = backend_.create_buffer("hidden", c.hidden_size);
    model_->normed_ = backend_.create_buffer("normed", c.hidden_size);
    model_->q_ = backend_.create_buffer("q", c.q_dim());
    model_->k_ = backend_.create_buffer("k", c.kv_dim());
    model_->v_ = backend_.create_buffer("v", c.kv_dim());
    model_->attended_ = backend_.create_buffer("attended", c.q_dim());
    model_->ffn_ = backend_.create_buffer("ffn", c.ffn_size);
}

Result<std::unique_ptr<Model>> ModelLoader::load(const Model::Progress& progress) {
    model_ = std::unique_ptr<Model>(new Model);
    model_->config_ = source_.config();
    model_->layers_.resize(static_cast<std::size_t>(model_->config_.layers));
    specs_ = weight_specs(model_->config_);
    for (const WeightSpec& spec : specs_) by_name_.emplace(spec.name, &spec);

    FR_TRY(check_tensors());
    FR_TRY(check_memory());
    FR_TRY(upload(progress));
    account();
    create_buffers();
    backend_.set_rope(model_->config_.rope);
    return std::move(model_);
}

Result<std::unique_ptr<Model>> Model::load(ModelSource& source, Backend& backend, const Progress& progress) {
    if (!source.has_model())
        return bad_input("{}: expected a model, got a file that holds only a tokenizer", source.where());
    return ModelLoader(source, backend).load(progress);
}

}  // namespace frontier

// Random weights in the shape of a well-known model, made when asked for: the same bytes in memory and as a GGUF file.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/config.h"
#include "model/source.h"
#include "model/weight_specs.h"
#include "platform/thread_pool.h"
#include "text/tokenizer_spec.h"

namespace frontier {

enum class SyntheticVocabulary : std::uint8_t { kSentencePiece, kLlama3, kQwen2 };

// The public hyper-parameters of a model; one row per name in synthetic_shapes.cc.
struct SyntheticShape {
    std::string_view name;
    std::string_view architecture;
    std::int32_t vocab_size = 0;
    std::int32_t hidden_size = 0;
    std::int32_t ffn_size = 0;
    std::int32_t layers = 0;
    std::int32_t heads = 0;
    std::int32_t kv_heads = 0;
    std::int32_t head_dim = 0;
    std::int32_t context_tokens = 0;
    double rms_norm_eps = 1e-5;
    double rope_theta = 10000;
    double llama3_factor = 0;  // 0: no scaling; else over an original context of 8192
    bool tied_embeddings = false;
    std::int32_t sliding_window_tokens = 0;
    SyntheticVocabulary vocabulary = SyntheticVocabulary::kSentencePiece;
    std::int32_t normal_tokens = 0;  // kLlama3, kQwen2: ids below are text, from here on control tokens
};
std::span<const SyntheticShape> synthetic_shapes();

// What QUANT stands for. Follows llama-quantize where it knows the name, so that sizes compare: matrices in the base
// type, output.weight (or the tied embedding) in Q6_K, some layers of the _M and _L mixtures in a larger type; rows
// that a block type does not divide fall back as there. F32, F16 and BF16: every matrix. Vectors are F32.
struct SyntheticQuant {
    std::string_view name;
    DType base = DType::kQ4_0;
    std::int32_t gguf_file_type = 0;  // general.file_type: llama.cpp's llama_ftype
};
std::span<const SyntheticQuant> synthetic_quants();
DType synthetic_tensor_type(const SyntheticQuant& quant, const ModelConfig& config, const WeightSpec& spec);

// Hyper-parameters, tensors and their bytes.
class SyntheticModel {
public:
    // "SHAPE[:QUANT]", an optional "synthetic:" before it; QUANT defaults to Q4_0. Unknown names are kBadInput with
    // the names there are.
    static Result<SyntheticModel> create(std::string_view spec);

    const SyntheticShape& shape() const { return *shape_; }
    const SyntheticQuant& quant() const { return *quant_; }
    const ModelConfig& config() const { return config_; }
    const std::vector<TensorInfo>& tensors() const { return tensors_; }

    // The bytes depend only on shape, type and tensor name. out: tensors()[index].bytes() of them.
    void generate(std::size_t index, std::span<std::byte> out, ThreadPool& pool) const;

private:
    SyntheticModel() = default;
    void add_tensors();

    const SyntheticShape* shape_ = nullptr;
    const SyntheticQuant* quant_ = nullptr;
    ModelConfig config_;
    std::vector<TensorInfo> tensors_;
    std::vector<float> rope_factors_;  // [head_dim / 2], empty without scaling
};

// A made-up vocabulary of the right kind and size: bytes, letters, and words of growing length that merge step by step.
TokenizerSpec synthetic_tokenizer_spec(const SyntheticShape& shape);

Result<std::unique_ptr<ModelSource>> open_synthetic_source(std::string_view spec);

// Writes the model as a GGUF file that llama.cpp loads. `vocab_path`: a GGUF file whose tokenizer it gets instead of a
// generated one, with unused tokens behind it where the shape's vocabulary is larger.
// `progress` may be empty; an Error of it ends the work, and no file is left.
Status write_synthetic_gguf(
    std::string_view spec, const std::string& path,
    const std::function<Status(std::int64_t done_bytes, std::int64_t total_bytes)>& progress = {},
    const std::string& vocab_path = {});

}  // namespace frontier

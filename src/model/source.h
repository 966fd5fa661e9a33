// Where a model comes from: a GGUF file, a Hugging Face folder, or synthetic weights; one face for the loader.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/config.h"
#include "tensor/tensor_view.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace frontier {

// generation_config.json, or the few GGUF keys; changes nothing unless --model-defaults is given.
struct GenerationDefaults {
    std::optional<double> temperature, top_p, min_p, repeat_penalty;
    std::optional<std::int64_t> top_k;
};

class ModelSource {
public:
    virtual ~ModelSource() = default;

    virtual std::string_view format() const = 0;  // "gguf", "huggingface", "synthetic"
    virtual const std::string& where() const = 0;
    virtual std::string architecture_name() const = 0;  // as the file says, also of tokenizer-only files
    virtual const ModelConfig& config() const = 0;      // FR_CHECKs that the source holds a model, see has_model()
    virtual bool has_model() const = 0;                 // false for tokenizer-only files

    // Canonical names, those of GGUF: token_embd.weight, blk.N.attn_q.weight, ..., output_norm.weight, output.weight.
    // Hugging Face names are translated. In the order in which they should be uploaded.
    virtual const std::vector<TensorInfo>& tensors() const = 0;
    virtual const TensorInfo* find(std::string_view name) const = 0;
    // Why a tensor that the file lists cannot be found: its type, e.g. "I32". "" when the file does not list it.
    virtual std::string why_unusable(std::string_view) const { return {}; }
    // The tensor's bytes: mapped, or generated now. Valid until release(name) or the next map of a synthetic source.
    virtual Result<TensorView> map(std::string_view name) = 0;
    virtual void release(std::string_view name) = 0;

    virtual Result<std::shared_ptr<const Tokenizer>> tokenizer() = 0;  // built once
    virtual std::string chat_template_source() const = 0;              // "" = none
    virtual GenerationDefaults generation_defaults() const = 0;
    virtual std::string weight_type() const = 0;  // "Q4_0", or the mixture: "Q4_K+Q6_K" by bytes, largest first
    virtual std::int64_t file_bytes() const = 0;
    // Another text for other tensors: names the files that hold them and their state (config.json and tokenizers are
    // not among them). "" when they lie in no file.
    virtual std::string tensor_identity() const { return {}; }
};

// The sources by kind. A folder needs config.json or, as only a tokenizer, tokenizer.json; a GGUF file needs tensors or
// a tokenizer.
Result<std::unique_ptr<ModelSource>> open_gguf_source(const std::string& path);
Result<std::unique_ptr<ModelSource>> open_hf_source(const std::string& folder);
Result<std::unique_ptr<ModelSource>> open_hf_tokenizer(const std::string& folder);  // whatever else lies there

// MODEL of the command line: a .gguf path, a folder, synthetic:SHAPE[:QUANT], or the name of a bundled model; empty
// is the default bundled model. Names that fit nothing are kBadInput with the nearest possibilities.
Result<std::unique_ptr<ModelSource>> open_model(const std::string& spec);

// Types of the matrices by bytes, largest first: "Q4_K+Q6_K".
std::string weight_type_of(const std::vector<TensorInfo>& tensors);

}  // namespace frontier

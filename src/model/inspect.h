// What a model file holds, as data: the `inspect` command prints it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/source.h"

namespace frontier {

struct ModelInspection {
    std::string where;
    std::string format;
    std::string architecture;           // as the file names it
    std::optional<ModelConfig> config;  // none: only a tokenizer
    std::string weight_type;            // of the matrices, by bytes
    std::int64_t parameters = 0;
    std::int64_t tensor_bytes = 0;
    std::int64_t file_bytes = 0;
    double bits_per_weight = 0;  // 0 without tensors

    struct TypeShare {
        DType type = DType::kF32;
        std::int64_t tensors = 0;
        std::int64_t parameters = 0;
        std::int64_t bytes = 0;
    };
    std::vector<TypeShare> types;     // largest first
    std::vector<TensorInfo> tensors;  // in file order, canonical names

    struct SpecialToken {
        TokenId id = 0;
        std::string piece;
    };
    struct TokenizerFacts {
        std::string kind;           // "sentencepiece", "byte-level bpe", "merge bpe"
        std::string pre_tokenizer;  // GGUF name; "" when the file spells out its steps
        std::int64_t tokens = 0;
        std::int64_t merges = 0;
        std::int64_t control_tokens = 0;
        std::optional<SpecialToken> bos, eos, unk, pad;
        std::vector<SpecialToken> end_of_generation;  // eos included
        bool add_bos = false;
        bool add_eos = false;
    };
    std::optional<TokenizerFacts> tokenizer;
    std::string tokenizer_error;  // why there is none; weights can be looked at without one
    std::string chat_template;    // "": none
    GenerationDefaults generation_defaults;
};

ModelInspection inspect_model(ModelSource& source);

}  // namespace frontier

// TokenizerSpec from the metadata of a GGUF file, just as much as the tests' vocabularies need.
#pragma once

#include <string>

#include "formats/gguf.h"
#include "text/tokenizer.h"

namespace frontier::test {

inline Result<TokenizerSpec> spec_from_gguf(const std::string& path) {
    FR_ASSIGN(const GgufFile file, GgufFile::open(path));
    TokenizerSpec spec;
    spec.where = path;
    FR_ASSIGN(const auto model, file.get_string("tokenizer.ggml.model"));
    FR_ASSIGN(const auto pre, file.get_string("tokenizer.ggml.pre"));
    FR_TRY(apply_gguf_pre_tokenizer(spec, model.value_or(""), pre.value_or("")));
    FR_ASSIGN(const auto pieces, file.get_strings("tokenizer.ggml.tokens"));
    if (pieces) spec.pieces.assign(pieces->begin(), pieces->end());
    FR_ASSIGN(const auto merges, file.get_strings("tokenizer.ggml.merges"));
    if (merges) spec.merges.assign(merges->begin(), merges->end());
    FR_ASSIGN(const auto scores, file.get_floats("tokenizer.ggml.scores"));
    if (scores) spec.scores = *scores;
    FR_ASSIGN(const auto types, file.get_ints("tokenizer.ggml.token_type"));
    if (types)
        for (const auto type : *types) spec.types.push_back(static_cast<TokenType>(type - 1));
    FR_ASSIGN(const auto bos, file.get_int("tokenizer.ggml.bos_token_id"));
    if (bos) spec.bos = static_cast<TokenId>(*bos);
    FR_ASSIGN(const auto eos, file.get_int("tokenizer.ggml.eos_token_id"));
    if (eos) spec.eos = static_cast<TokenId>(*eos);
    FR_ASSIGN(const auto add_bos, file.get_bool("tokenizer.ggml.add_bos_token"));
    if (add_bos) spec.add_bos = *add_bos;
    FR_ASSIGN(const auto add_space, file.get_bool("tokenizer.ggml.add_space_prefix"));
    if (add_space) spec.add_space_prefix = *add_space;
    return spec;
}

}  // namespace frontier::test

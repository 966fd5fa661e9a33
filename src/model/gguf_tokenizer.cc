#include "model/gguf_tokenizer.h"

#include <array>
#include <utility>

#include "base/log.h"
#include "formats/printable.h"
#include "model/config.h"

namespace frontier {
namespace {

// llama.cpp's token types in GGUF start at 1; 0 is "undefined" and treated as normal.
Result<TokenType> token_type(const GgufFile& file, std::int64_t value, std::size_t index) {
    constexpr std::array kTypes = {TokenType::kNormal,  TokenType::kNormal,      TokenType::kUnknown,
                                   TokenType::kControl, TokenType::kUserDefined, TokenType::kUnused,
                                   TokenType::kByte};
    if (value < 0 || value >= static_cast<std::int64_t>(kTypes.size()))
        return bad_input("{}: tokenizer.ggml.token_type[{}]: expected 0..6, got {}", file.where(), index, value);
    return kTypes[static_cast<std::size_t>(value)];
}

Status check_count(const GgufFile& file, std::string_view key, std::size_t count, std::size_t expected) {
    if (count != expected)
        return bad_input("{}: {}: expected {} entries as in tokenizer.ggml.tokens, got {}", file.where(), key, expected,
                         count);
    return {};
}

Status read_vocabulary(const GgufFile& file, TokenizerSpec& spec) {
    FR_ASSIGN(const auto pieces, file.get_strings("tokenizer.ggml.tokens"));
    if (!pieces || pieces->empty()) return bad_input("{}: tokenizer.ggml.tokens is missing or empty", file.where());
    if (pieces->size() > static_cast<std::size_t>(kMaxVocab))
        return bad_input("{}: tokenizer.ggml.tokens: expected at most {} entries, got {}", file.where(), kMaxVocab,
                         pieces->size());
    spec.pieces.assign(pieces->begin(), pieces->end());
    // As llama.cpp does: an unnamed token keeps its id but can never be found.
    for (std::size_t i = 0; i < spec.pieces.size(); ++i)
        if (spec.pieces[i].empty()) spec.pieces[i] = fmt::format("[EMPTY_{}]", i);

    FR_ASSIGN(auto scores, file.get_floats("tokenizer.ggml.scores"));
    if (scores) {
        FR_TRY(check_count(file, "tokenizer.ggml.scores", scores->size(), spec.pieces.size()));
        spec.scores = std::move(*scores);
    } else if (spec.kind == TokenizerKind::kSentencePiece) {
        return bad_input("{}: tokenizer.ggml.scores is missing", file.where());
    }

    FR_ASSIGN(const auto types, file.get_ints("tokenizer.ggml.token_type"));
    if (types) {
        FR_TRY(check_count(file, "tokenizer.ggml.token_type", types->size(), spec.pieces.size()));
        spec.types.reserve(types->size());
        for (std::size_t i = 0; i < types->size(); ++i) {
            FR_ASSIGN(const TokenType type, token_type(file, (*types)[i], i));
            spec.types.push_back(type);
        }
    }

    FR_ASSIGN(const auto merges, file.get_strings("tokenizer.ggml.merges"));
    if (merges)
        spec.merges.assign(merges->begin(), merges->end());
    else if (spec.kind == TokenizerKind::kByteLevelBpe)
        return bad_input("{}: tokenizer.ggml.merges is missing", file.where());
    return {};
}

// Ids outside the vocabulary occur in published files (-1 for "none", ids of dropped tokens); they mean no token.
Result<std::optional<TokenId>> special_id(const GgufFile& file, const TokenizerSpec& spec, std::string_view key,
                                          std::optional<TokenId> fallback) {
    FR_ASSIGN(const std::optional<std::int64_t> id, file.get_int(key));
    if (!id) {
        if (fallback && static_cast<std::size_t>(*fallback) < spec.pieces.size()) return fallback;
        return std::nullopt;
    }
    if (*id >= 0 && *id < static_cast<std::int64_t>(spec.pieces.size())) return static_cast<TokenId>(*id);
    if (*id != -1 && *id != std::int64_t{0xFFFFFFFF})
        spdlog::warn("{}: {}: expected 0..{}, got {}; ignored", printable(file.where()), key, spec.pieces.size() - 1,
                     *id);
    return std::nullopt;
}

Status read_special_tokens(const GgufFile& file, TokenizerSpec& spec) {
    // The fallbacks are those of the kind, already in spec: SentencePiece files may leave out what all of them have.
    FR_ASSIGN(spec.unk, special_id(file, spec, "tokenizer.ggml.unknown_token_id", spec.unk));
    FR_ASSIGN(spec.bos, special_id(file, spec, "tokenizer.ggml.bos_token_id", spec.bos));
    FR_ASSIGN(spec.eos, special_id(file, spec, "tokenizer.ggml.eos_token_id", spec.eos));
    FR_ASSIGN(spec.pad, special_id(file, spec, "tokenizer.ggml.padding_token_id", spec.pad));
    for (const std::string_view key : {"tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"}) {
        FR_ASSIGN(const std::optional<TokenId> id, special_id(file, spec, key, std::nullopt));
        if (id) spec.end_of_generation.push_back(*id);
    }
    return {};
}

Status read_flags(const GgufFile& file, TokenizerSpec& spec) {
    const std::pair<std::string_view, bool*> flags[] = {
        {"tokenizer.ggml.add_bos_token", &spec.add_bos},
        {"tokenizer.ggml.add_eos_token", &spec.add_eos},
        {"tokenizer.ggml.add_space_prefix", &spec.add_space_prefix},
        {"tokenizer.ggml.remove_extra_whitespaces", &spec.remove_extra_whitespaces}};
    for (const auto& [key, flag] : flags) {
        FR_ASSIGN(const std::optional<bool> value, file.get_bool(key));
        if (value) *flag = *value;
    }
    return {};
}

}  // namespace

bool gguf_has_tokenizer(const GgufFile& file) {
    return file.find("tokenizer.ggml.tokens") != nullptr;
}

Result<TokenizerSpec> tokenizer_spec_from_gguf(const GgufFile& file) {
    TokenizerSpec spec;
    spec.where = file.where();
    FR_ASSIGN(const auto model, file.get_string("tokenizer.ggml.model"));
    if (!model) return bad_input("{}: tokenizer.ggml.model is missing: the file holds no tokenizer", file.where());
    FR_ASSIGN(const auto pre, file.get_string("tokenizer.ggml.pre"));
    FR_TRY(apply_gguf_pre_tokenizer(spec, *model, pre.value_or("")));
    FR_TRY(read_vocabulary(file, spec));
    FR_TRY(read_special_tokens(file, spec));
    FR_TRY(read_flags(file, spec));
    return spec;
}

}  // namespace frontier

#include "model/inspect.h"

#include <algorithm>
#include <array>
#include <iterator>

namespace frontier {
namespace {

void count_tensors(const ModelSource& source, ModelInspection& out) {
    std::array<ModelInspection::TypeShare, kDTypeCount> shares{};
    for (const TensorInfo& info : source.tensors()) {
        ModelInspection::TypeShare& share = shares[static_cast<std::size_t>(info.type)];
        share.type = info.type;
        ++share.tensors;
        share.parameters += info.elements();
        share.bytes += info.bytes();
        out.parameters += info.elements();
        out.tensor_bytes += info.bytes();
    }
    std::ranges::copy_if(shares, std::back_inserter(out.types), [](const auto& share) { return share.tensors > 0; });
    std::ranges::stable_sort(out.types, std::ranges::greater{}, &ModelInspection::TypeShare::bytes);
    if (out.parameters > 0)
        out.bits_per_weight = 8.0 * static_cast<double>(out.tensor_bytes) / static_cast<double>(out.parameters);
}

std::string kind_name(TokenizerKind kind) {
    switch (kind) {
        case TokenizerKind::kSentencePiece:
            return "sentencepiece";
        case TokenizerKind::kByteLevelBpe:
            return "byte-level bpe";
        case TokenizerKind::kMergeBpe:
            break;
    }
    return "merge bpe";
}

ModelInspection::TokenizerFacts facts_of(const Tokenizer& tokenizer) {
    const TokenizerSpec& spec = tokenizer.spec();
    const auto named = [&](std::optional<TokenId> id) -> std::optional<ModelInspection::SpecialToken> {
        if (!id) return std::nullopt;
        return ModelInspection::SpecialToken{*id, spec.pieces[static_cast<std::size_t>(*id)]};
    };
    ModelInspection::TokenizerFacts facts;
    facts.kind = kind_name(spec.kind);
    facts.pre_tokenizer = spec.pre_tokenizer;
    facts.tokens = tokenizer.vocab_size();
    facts.merges = static_cast<std::int64_t>(spec.merges.size());
    facts.bos = named(spec.bos);
    facts.eos = named(spec.eos);
    facts.unk = named(spec.unk);
    facts.pad = named(spec.pad);
    facts.add_bos = spec.add_bos;
    facts.add_eos = spec.add_eos;
    for (TokenId id = 0; id < tokenizer.vocab_size(); ++id) {
        if (tokenizer.is_control(id)) ++facts.control_tokens;
        if (tokenizer.ends_generation(id)) facts.end_of_generation.push_back(*named(id));
    }
    return facts;
}

}  // namespace

ModelInspection inspect_model(ModelSource& source) {
    ModelInspection out;
    out.where = source.where();
    out.format = source.format();
    out.architecture = source.architecture_name();
    if (source.has_model()) out.config = source.config();
    out.weight_type = source.weight_type();
    out.file_bytes = source.file_bytes();
    out.tensors = source.tensors();
    count_tensors(source, out);
    if (auto tokenizer = source.tokenizer())
        out.tokenizer = facts_of(**tokenizer);
    else
        out.tokenizer_error = tokenizer.error().text;
    out.chat_template = source.chat_template_source();
    out.generation_defaults = source.generation_defaults();
    return out;
}

}  // namespace frontier

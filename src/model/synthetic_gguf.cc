// A synthetic model as an ordinary GGUF file, with the metadata that llama.cpp asks for.
#include <algorithm>

#include "formats/gguf.h"
#include "model/gguf_tokenizer.h"
#include "model/synthetic.h"
#include "platform/memory.h"
#include "platform/topology.h"

namespace frontier {
namespace {

void add_hyper_parameters(GgufWriter& writer, const SyntheticModel& model) {
    const ModelConfig& c = model.config();
    const std::string arch(c.architecture->name);
    const auto count = [&](std::string_view suffix, std::int32_t value) {
        writer.add_uint32(fmt::format("{}.{}", arch, suffix), static_cast<std::uint32_t>(value));
    };
    writer.add_string("general.architecture", arch);
    writer.add_string("general.type", "model");
    writer.add_string("general.name", std::string(model.shape().name));
    writer.add_string("general.description", "Random weights in the shape of this model, for measurements");
    writer.add_uint32("general.file_type", static_cast<std::uint32_t>(model.quant().gguf_file_type));
    writer.add_uint32("general.quantization_version", 2);
    count("vocab_size", c.vocab_size);
    count("context_length", c.context_tokens);
    count("embedding_length", c.hidden_size);
    count("block_count", c.layers);
    count("feed_forward_length", c.ffn_size);
    count("attention.head_count", c.heads);
    count("attention.head_count_kv", c.kv_heads);
    count("attention.key_length", c.head_dim);
    count("attention.value_length", c.head_dim);
    count("rope.dimension_count", c.head_dim);
    if (c.sliding_window_tokens > 0) count("attention.sliding_window", c.sliding_window_tokens);
    writer.add_float32(arch + ".rope.freq_base", static_cast<float>(model.shape().rope_theta));
    writer.add_float32(arch + ".attention.layer_norm_rms_epsilon", c.rms_norm_eps);
}

std::int32_t gguf_token_type(TokenType type) {
    switch (type) {
        case TokenType::kUnknown:
            return 2;
        case TokenType::kControl:
            return 3;
        case TokenType::kUserDefined:
            return 4;
        case TokenType::kUnused:
            return 5;
        case TokenType::kByte:
            return 6;
        case TokenType::kNormal:
            break;
    }
    return 1;
}

void add_tokenizer(GgufWriter& writer, TokenizerSpec spec) {
    const bool spm = spec.kind == TokenizerKind::kSentencePiece;
    std::vector<std::int32_t> types;
    types.reserve(spec.types.size());
    for (const TokenType type : spec.types) types.push_back(gguf_token_type(type));
    writer.add_string("tokenizer.ggml.model", spm ? "llama" : "gpt2");
    writer.add_string("tokenizer.ggml.pre", spm ? "default" : spec.pre_tokenizer);
    writer.add_strings("tokenizer.ggml.tokens", std::move(spec.pieces));
    if (spm) writer.add_floats("tokenizer.ggml.scores", std::move(spec.scores));
    writer.add_int32s("tokenizer.ggml.token_type", std::move(types));
    if (!spm) writer.add_strings("tokenizer.ggml.merges", std::move(spec.merges));
    if (spec.bos) writer.add_uint32("tokenizer.ggml.bos_token_id", static_cast<std::uint32_t>(*spec.bos));
    if (spec.eos) writer.add_uint32("tokenizer.ggml.eos_token_id", static_cast<std::uint32_t>(*spec.eos));
    if (spec.unk) writer.add_uint32("tokenizer.ggml.unknown_token_id", static_cast<std::uint32_t>(*spec.unk));
    writer.add_bool("tokenizer.ggml.add_bos_token", spec.add_bos);
    writer.add_bool("tokenizer.ggml.add_eos_token", spec.add_eos);
}

// The tokenizer of another file, padded to the vocabulary of the shape.
Status add_tokenizer_of(GgufWriter& writer, const std::string& path, const SyntheticShape& shape) {
    FR_ASSIGN(const GgufFile file, GgufFile::open(path));
    FR_ASSIGN(TokenizerSpec spec, tokenizer_spec_from_gguf(file));
    FR_TRY(Tokenizer::create(spec));  // a damaged vocabulary should not be found by the reader of the result
    const std::size_t count = spec.pieces.size();
    const auto wanted = static_cast<std::size_t>(shape.vocab_size);
    if (count > wanted)
        return bad_input("{}: expected a vocabulary of at most {} tokens, as {} has, got {}", path, wanted, shape.name,
                         count);
    spec.types.resize(count, TokenType::kNormal);
    spec.types.resize(wanted, TokenType::kUnused);
    if (!spec.scores.empty()) spec.scores.resize(wanted, -1e4F);  // as converters score what is never to be merged
    for (std::size_t id = count; id < wanted; ++id) spec.pieces.push_back(fmt::format("[PAD{}]", id));
    if (spec.kind == TokenizerKind::kSentencePiece)
        writer.add_bool("tokenizer.ggml.add_space_prefix", spec.add_space_prefix);
    add_tokenizer(writer, std::move(spec));
    FR_ASSIGN(const auto eot, file.get_int("tokenizer.ggml.eot_token_id"));
    if (eot && *eot >= 0 && static_cast<std::uint64_t>(*eot) < count)
        writer.add_uint32("tokenizer.ggml.eot_token_id", static_cast<std::uint32_t>(*eot));
    FR_ASSIGN(const auto chat_template, file.get_string("tokenizer.chat_template"));
    if (chat_template) writer.add_string("tokenizer.chat_template", std::string(*chat_template));
    return {};
}

}  // namespace

Status write_synthetic_gguf(std::string_view spec, const std::string& path,
                            const std::function<Status(std::int64_t, std::int64_t)>& progress,
                            const std::string& vocab_path) {
    FR_ASSIGN(const SyntheticModel model, SyntheticModel::create(spec));
    GgufWriter writer;
    add_hyper_parameters(writer, model);
    if (vocab_path.empty())
        add_tokenizer(writer, synthetic_tokenizer_spec(model.shape()));
    else
        FR_TRY(add_tokenizer_of(writer, vocab_path, model.shape()));
    std::int64_t total_bytes = 0;
    std::int64_t largest_bytes = 0;
    for (const TensorInfo& info : model.tensors()) {
        writer.add_tensor(info);
        total_bytes += info.bytes();
        largest_bytes = std::max(largest_bytes, info.bytes());
    }
    FR_ASSIGN(AlignedBuffer buffer, AlignedBuffer::allocate(static_cast<std::size_t>(largest_bytes)));
    ThreadPool pool(topology().default_threads);
    std::int64_t done_bytes = 0;
    return writer.write(path, [&](std::size_t index) -> Result<std::span<const std::byte>> {
        const std::int64_t bytes = model.tensors()[index].bytes();
        const auto out = buffer.bytes().first(static_cast<std::size_t>(bytes));
        model.generate(index, out, pool);
        done_bytes += bytes;
        if (progress) FR_TRY(progress(done_bytes, total_bytes));
        return out;
    });
}

}  // namespace frontier

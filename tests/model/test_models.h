// Small models in temporary folders for the tests of this layer.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/result.h"
#include "formats/gguf.h"
#include "model/synthetic.h"

namespace frontier {

class TemporaryFolder {
public:
    TemporaryFolder() {
        std::string pattern = (std::filesystem::temp_directory_path() / "frontier_model_XXXXXX").string();
        if (::mkdtemp(pattern.data()) == nullptr) std::abort();
        path_ = pattern;
    }
    ~TemporaryFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;

    std::string file(const std::string& name) const { return path_ + "/" + name; }
    const std::string& path() const { return path_; }
    std::string write(const std::string& name, const std::string& text) const {
        std::ofstream(file(name), std::ios::binary) << text;
        return file(name);
    }

private:
    std::string path_;
};

inline std::string read_file(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

// One line, kBadInput, holding all of `parts`.
template <typename T>
void expect_bad_input(const Result<T>& result, const std::vector<std::string>& parts) {
    ASSERT_FALSE(result.has_value()) << "expected an error with: " << testing::PrintToString(parts);
    EXPECT_EQ(result.error().code, ErrorCode::kBadInput) << result.error().text;
    EXPECT_THAT(result.error().text, testing::Not(testing::HasSubstr("\n")));
    for (const std::string& part : parts) EXPECT_THAT(result.error().text, testing::HasSubstr(part));
}

inline bool same_config(const ModelConfig& a, const ModelConfig& b) {
    return a.architecture == b.architecture && a.vocab_size == b.vocab_size && a.hidden_size == b.hidden_size &&
           a.layers == b.layers && a.heads == b.heads && a.kv_heads == b.kv_heads && a.head_dim == b.head_dim &&
           a.ffn_size == b.ffn_size && a.context_tokens == b.context_tokens && a.rms_norm_eps == b.rms_norm_eps &&
           a.tied_embeddings == b.tied_embeddings && a.qkv_bias == b.qkv_bias && a.attn_out_bias == b.attn_out_bias &&
           a.sliding_window_tokens == b.sliding_window_tokens && a.attention_scale == b.attention_scale &&
           a.rope.inv_freq == b.rope.inv_freq && a.rope.magnitude == b.rope.magnitude;
}

// A GGUF file of any metadata and zero tensors, F32 unless said otherwise.
struct GgufMaker {
    std::map<std::string, std::uint32_t> counts;
    std::map<std::string, float> numbers;
    std::map<std::string, std::string> texts;
    std::map<std::string, bool> flags;
    std::map<std::string, std::vector<std::int32_t>> int_arrays;
    std::map<std::string, std::vector<std::string>> text_arrays;
    std::map<std::string, std::vector<float>> float_arrays;
    std::vector<TensorInfo> tensors;

    // A complete llama of 2 layers.
    static GgufMaker llama(const std::string& arch = "llama") {
        GgufMaker m;
        m.texts["general.architecture"] = arch;
        m.counts = {{arch + ".block_count", 2},          {arch + ".embedding_length", 64},
                    {arch + ".feed_forward_length", 96}, {arch + ".context_length", 128},
                    {arch + ".attention.head_count", 4}, {arch + ".attention.head_count_kv", 2}};
        m.numbers = {{arch + ".attention.layer_norm_rms_epsilon", 1e-5F}};
        m.tensors = {{"token_embd.weight", DType::kF32, {100, 64}}, {"output.weight", DType::kF32, {100, 64}}};
        return m;
    }

    Status write(const std::string& path, float fill = 0) const {
        GgufWriter writer;
        for (const auto& [key, value] : texts) writer.add_string(key, value);
        for (const auto& [key, value] : counts) writer.add_uint32(key, value);
        for (const auto& [key, value] : numbers) writer.add_float32(key, value);
        for (const auto& [key, value] : flags) writer.add_bool(key, value);
        for (const auto& [key, value] : int_arrays) writer.add_int32s(key, value);
        for (const auto& [key, value] : text_arrays) writer.add_strings(key, value);
        for (const auto& [key, value] : float_arrays) writer.add_floats(key, value);
        for (const TensorInfo& info : tensors) writer.add_tensor(info);
        std::vector<float> data;
        return writer.write(path, [&](std::size_t index) -> Result<std::span<const std::byte>> {
            const auto bytes = static_cast<std::size_t>(tensors[index].bytes());
            data.assign(bytes / sizeof(float) + 1, fill);
            return std::as_bytes(std::span(data)).first(bytes);
        });
    }
};

}  // namespace frontier

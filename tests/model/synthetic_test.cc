#include "model/synthetic.h"

#include <cmath>
#include <numeric>

#include "test_models.h"

namespace frontier {
namespace {

std::vector<std::byte> generated(const SyntheticModel& model, std::size_t index, int threads) {
    std::vector<std::byte> out(static_cast<std::size_t>(model.tensors()[index].bytes()));
    ThreadPool pool(threads);
    model.generate(index, out, pool);
    return out;
}

TEST(Synthetic, TheSameBytesForAnyThreadsAndInTheFile) {
    for (const char* spec : {"tiny-llama:Q4_K_M", "tiny-llama3:BF16", "tiny-qwen2:Q8_0", "tiny-qwen3:Q4_0"}) {
        SCOPED_TRACE(spec);
        TemporaryFolder folder;
        const std::string path = folder.file("m.gguf");
        const Status written = write_synthetic_gguf(spec, path);
        ASSERT_TRUE(written) << written.error().text;
        const auto file = GgufFile::open(path);
        ASSERT_TRUE(file) << file.error().text;
        const auto model = SyntheticModel::create(spec);
        ASSERT_TRUE(model);
        ASSERT_EQ(file->tensors().size(), model->tensors().size());
        for (std::size_t i = 0; i < model->tensors().size(); ++i) {
            SCOPED_TRACE(model->tensors()[i].name);
            const std::vector<std::byte> one = generated(*model, i, 1);
            EXPECT_EQ(one, generated(*model, i, 3));
            EXPECT_EQ(file->tensors()[i].info.name, model->tensors()[i].name);
            EXPECT_TRUE(std::ranges::equal(file->tensors()[i].data, one));
        }
        const auto config = config_from_gguf(*file);
        ASSERT_TRUE(config) << config.error().text;
        EXPECT_TRUE(same_config(*config, model->config()));
        EXPECT_EQ(config->rope.interleaved, model->config().rope.interleaved);
    }
}

TEST(Synthetic, TensorsAndShapesDiffer) {
    const auto llama = SyntheticModel::create("tiny-llama:F32");
    const auto qwen = SyntheticModel::create("tiny-qwen2:F32");
    EXPECT_NE(generated(*llama, 0, 1), generated(*qwen, 0, 1));  // both token_embd.weight [1024, 256]
    const auto find = [&](const char* name) {
        return static_cast<std::size_t>(std::ranges::find(llama->tensors(), name, &TensorInfo::name) -
                                        llama->tensors().begin());
    };
    EXPECT_NE(generated(*llama, find("blk.0.ffn_up.weight"), 1), generated(*llama, find("blk.0.ffn_gate.weight"), 1));
    EXPECT_NE(generated(*llama, find("blk.0.ffn_up.weight"), 1), generated(*llama, find("blk.1.ffn_up.weight"), 1));
}

TEST(Synthetic, ValuesKeepActivationsSane) {
    const auto model = SyntheticModel::create("tiny-qwen2:F32");
    for (std::size_t i = 0; i < model->tensors().size(); ++i) {
        const TensorInfo& info = model->tensors()[i];
        SCOPED_TRACE(info.name);
        const std::vector<std::byte> bytes = generated(*model, i, 1);
        std::vector<float> values(bytes.size() / sizeof(float));
        std::memcpy(values.data(), bytes.data(), bytes.size());
        const auto n = static_cast<double>(values.size());
        const double mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
        double square = 0;
        for (const float v : values) square += (v - mean) * (v - mean) / n;
        const bool gain = info.name.ends_with("norm.weight");
        const double stddev = info.shape.size() == 2 ? 1 / std::sqrt(static_cast<double>(info.cols())) : 0.1;
        // 5 standard errors of the mean (stddev / sqrt n) and of the spread (stddev / sqrt 2n).
        EXPECT_NEAR(mean, gain ? 1 : 0, 5 * stddev / std::sqrt(n));
        EXPECT_NEAR(std::sqrt(square), stddev, 5 * stddev / std::sqrt(2 * n));
    }
}

TEST(Synthetic, MixturesFollowLlamaQuantize) {
    const auto type_of = [](const char* spec, const char* name) {
        const auto model = SyntheticModel::create(spec);
        return std::string(dtype_name(std::ranges::find(model->tensors(), name, &TensorInfo::name)->type));
    };
    EXPECT_EQ(type_of("tinyllama-1.1b:Q4_0", "token_embd.weight"), "Q4_0");
    EXPECT_EQ(type_of("tinyllama-1.1b:Q4_0", "output.weight"), "Q6_K");
    EXPECT_EQ(type_of("tinyllama-1.1b:Q8_0", "output.weight"), "Q8_0");
    EXPECT_EQ(type_of("tinyllama-1.1b:BF16", "output.weight"), "BF16");
    EXPECT_EQ(type_of("tinyllama-1.1b:Q4_0", "blk.3.attn_norm.weight"), "F32");
    EXPECT_EQ(type_of("llama-3.2-1b:Q4_0", "token_embd.weight"), "Q6_K");  // tied
    // 22 layers: the first 2, those from 19 on, and of the rest every third: 4, 7, ...
    std::string more_bits;
    for (int layer = 0; layer < 22; ++layer) {
        const std::string name = fmt::format("blk.{}.ffn_down.weight", layer);
        const std::string type = type_of("tinyllama-1.1b:Q4_K_M", name.c_str());
        EXPECT_EQ(type, type_of("tinyllama-1.1b:Q4_K_M", fmt::format("blk.{}.attn_v.weight", layer).c_str()));
        more_bits += type == "Q6_K" ? '6' : '4';
    }
    EXPECT_EQ(more_bits, "6644644644644644644666");
    EXPECT_EQ(type_of("tinyllama-1.1b:Q4_K_M", "blk.0.ffn_up.weight"), "Q4_K");
    // 896 columns: no multiple of 256.
    EXPECT_EQ(type_of("qwen2.5-0.5b:Q4_K_M", "blk.5.attn_q.weight"), "Q5_0");
    EXPECT_EQ(type_of("qwen2.5-0.5b:Q6_K", "blk.5.attn_q.weight"), "Q8_0");
    EXPECT_EQ(type_of("qwen2.5-0.5b:Q4_0", "token_embd.weight"), "Q8_0");
    EXPECT_EQ(type_of("qwen2.5-0.5b:Q4_K_M", "blk.4.ffn_down.weight"), "Q4_K");  // 4864 = 19 * 256
}

TEST(Synthetic, KnownModelsHaveTheirPublishedParameterCounts) {
    const std::vector<std::pair<const char*, std::int64_t>> expected = {
        {"tinyllama-1.1b", 1100048384}, {"llama-3.2-1b", 1235814400}, {"llama-3.2-3b", 3212749824},
        {"llama-3.1-8b", 8030261248},   {"mistral-7b", 7248023552},   {"qwen2.5-0.5b", 494032768},
        {"qwen2.5-1.5b", 1543714304},   {"qwen2.5-7b", 7615616512},   {"qwen3-0.6b", 596049920},
        {"qwen3-4b", 4022468096},       {"qwen3-8b", 8190735360}};
    for (const auto& [name, parameters] : expected) {
        const auto model = SyntheticModel::create(name);
        ASSERT_TRUE(model);
        std::int64_t sum = 0;
        for (const TensorInfo& info : model->tensors())
            if (info.name != "rope_freqs.weight") sum += info.elements();
        EXPECT_EQ(sum, parameters) << name;
    }
}

TEST(Synthetic, EveryTypeOfATinyModelIsWhole) {
    for (const SyntheticQuant& quant : synthetic_quants()) {
        const auto model = SyntheticModel::create(fmt::format("tiny-qwen2:{}", quant.name));
        ASSERT_TRUE(model);
        for (const TensorInfo& info : model->tensors())
            EXPECT_EQ(info.cols() % dtype_info(info.type).block_elements, 0) << info.name;
    }
}

TEST(Synthetic, NamesAreChecked) {
    EXPECT_TRUE(SyntheticModel::create("synthetic:TinyLlama-1.1B:q4_0"));
    EXPECT_EQ(SyntheticModel::create("tiny-llama")->quant().name, "Q4_0");
    expect_bad_input(SyntheticModel::create("synthetic:gpt-5:Q4_0"),
                     {"SHAPE", "tinyllama-1.1b", "qwen3-8b", "'gpt-5'"});
    expect_bad_input(SyntheticModel::create("synthetic:tiny-llama:Q9"), {"QUANT", "Q4_K_M", "'Q9'"});
    expect_bad_input(SyntheticModel::create("synthetic:"), {"SHAPE"});
    expect_bad_input(SyntheticModel::create("tiny-llama:"), {"QUANT"});
    expect_bad_input(SyntheticModel::create("tiny-llama:Q4_0:x"), {"QUANT", "'Q4_0:x'"});
}

TEST(Synthetic, AFileThatCannotBeWrittenIsAnError) {
    TemporaryFolder folder;
    EXPECT_FALSE(write_synthetic_gguf("tiny-llama", folder.file("no/such/folder/m.gguf")));
    EXPECT_FALSE(write_synthetic_gguf("no-such-shape", folder.file("m.gguf")));
}

TEST(Synthetic, VocabulariesTokenizeAndComeBack) {
    const std::string text = "The quick brown fox, 123 times;\n\tover 'lazy' dogs \xC3\xA9\xE4\xBD\xA0 <|im_end|>";
    for (const char* spec : {"tiny-llama", "tiny-llama3", "tiny-qwen2", "tinyllama-1.1b", "qwen3-0.6b"}) {
        SCOPED_TRACE(spec);
        const auto source = open_synthetic_source(spec);
        ASSERT_TRUE(source);
        const auto tokenizer = (*source)->tokenizer();
        ASSERT_TRUE(tokenizer) << tokenizer.error().text;
        EXPECT_EQ((*tokenizer)->vocab_size(), (*source)->config().vocab_size);
        const std::vector<TokenId> ids = *(*tokenizer)->encode(text, {.add_special = false});
        EXPECT_EQ((*tokenizer)->decode(ids), text);
        EXPECT_LT(ids.size(), text.size());  // words do merge
        // A vocabulary read back from the file is the same.
        TemporaryFolder folder;
        if (std::string_view(spec).starts_with("tiny-")) {
            ASSERT_TRUE(write_synthetic_gguf(spec, folder.file("m.gguf")));
            const auto file = open_gguf_source(folder.file("m.gguf"));
            ASSERT_TRUE(file) << file.error().text;
            const auto again = (*file)->tokenizer();
            ASSERT_TRUE(again) << again.error().text;
            EXPECT_EQ(*(*again)->encode(text), *(*tokenizer)->encode(text));
            EXPECT_EQ((*again)->spec().pieces, (*tokenizer)->spec().pieces);
            EXPECT_EQ((*again)->spec().bos, (*tokenizer)->spec().bos);
            EXPECT_EQ((*again)->spec().eos, (*tokenizer)->spec().eos);
        }
    }
}

TEST(SyntheticGguf, TakesTheVocabularyOfAnotherFile) {
    TemporaryFolder folder;
    const std::string real = std::string(FRONTIER_SOURCE_DIR) + "/models/stories260K-f32.gguf";
    const auto expected = (*open_model(real))->tokenizer();
    ASSERT_TRUE(expected);
    const auto written = write_synthetic_gguf("tiny-llama:F32", folder.file("m.gguf"), {}, real);
    ASSERT_TRUE(written) << written.error().text;
    const auto source = open_model(folder.file("m.gguf"));
    ASSERT_TRUE(source) << source.error().text;
    const auto tokenizer = (*source)->tokenizer();
    ASSERT_TRUE(tokenizer) << tokenizer.error().text;
    EXPECT_EQ((*tokenizer)->vocab_size(), 1024);
    EXPECT_EQ(*(*tokenizer)->encode("Once upon a time"), *(*expected)->encode("Once upon a time"));

    const std::string large = std::string(FRONTIER_SOURCE_DIR) + "/models/tale-7m-f16.gguf";
    const auto refused = write_synthetic_gguf("tiny-llama:F32", folder.file("n.gguf"), {}, large);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kBadInput);
    EXPECT_NE(refused.error().text.find("at most 1024 tokens"), std::string::npos) << refused.error().text;
    EXPECT_NE(refused.error().text.find("got 4096"), std::string::npos) << refused.error().text;
}

}  // namespace
}  // namespace frontier

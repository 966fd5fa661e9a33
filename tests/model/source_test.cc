// Opening models: files, folders, names; either format of a model gives the same config, tensors and tokenizer.
#include "model/source.h"

#include <filesystem>

#include "backend/null_backend.h"
#include "model/model.h"
#include "model/model_store.h"
#include "tensor/half.h"
#include "test_models.h"

namespace frontier {
namespace {

namespace fs = std::filesystem;

const std::string kModels = FRONTIER_SOURCE_DIR "/models/";

float element(const TensorView& view, std::size_t index) {
    std::uint16_t half = 0;
    float single = 0;
    switch (view.info.type) {
        case DType::kF16:
            std::memcpy(&half, view.data.data() + 2 * index, 2);
            return to_f32(F16{half});
        case DType::kBF16:
            std::memcpy(&half, view.data.data() + 2 * index, 2);
            return to_f32(BF16{half});
        default:
            std::memcpy(&single, view.data.data() + 4 * index, 4);
            return single;
    }
}

// GGUF llama files interleave the rotary pairs: row 2i of a head is row i of the half-split form, row 2i + 1 row
// i + head_dim / 2.
std::int64_t half_split_row(std::int64_t row, std::int64_t head_dim) {
    const std::int64_t in_head = row % head_dim;
    return row - in_head + in_head / 2 + (in_head % 2) * head_dim / 2;
}

TEST(Source, EitherFormatOfABundledModelIsTheSame) {
    for (const char* name : {"tale-7m", "tale-1m"}) {
        SCOPED_TRACE(name);
        auto gguf = open_model(kModels + name + "-f16.gguf");
        auto hf = open_model(kModels + name);
        ASSERT_TRUE(gguf) << gguf.error().text;
        ASSERT_TRUE(hf) << hf.error().text;
        EXPECT_EQ((*gguf)->format(), "gguf");
        EXPECT_EQ((*hf)->format(), "huggingface");
        EXPECT_EQ((*gguf)->weight_type(), "F16");
        EXPECT_EQ((*hf)->weight_type(), "BF16");
        const ModelConfig& config = (*gguf)->config();
        EXPECT_TRUE(same_config(config, (*hf)->config()));
        EXPECT_TRUE(config.rope.interleaved);
        EXPECT_FALSE((*hf)->config().rope.interleaved);
        EXPECT_TRUE((*hf)->config().rope.regroup);
        ASSERT_EQ((*gguf)->tensors().size(), (*hf)->tensors().size());
        for (const TensorInfo& info : (*gguf)->tensors()) {
            SCOPED_TRACE(info.name);
            const auto a = (*gguf)->map(info.name);
            const auto b = (*hf)->map(info.name);
            ASSERT_TRUE(a && b);
            ASSERT_EQ(a->info.shape, b->info.shape);
            const bool permuted = info.name.ends_with("attn_q.weight") || info.name.ends_with("attn_k.weight");
            for (std::int64_t row = 0; row < info.rows(); ++row) {
                const std::int64_t other = permuted ? half_split_row(row, config.head_dim) : row;
                // A few columns of every row; F16 holds these BF16 values to 3e-8 (SOURCES.md).
                for (std::int64_t col = 0; col < info.cols(); col += 37)
                    ASSERT_NEAR(element(*a, static_cast<std::size_t>(row * info.cols() + col)),
                                element(*b, static_cast<std::size_t>(other * info.cols() + col)), 4e-8);
            }
            (*gguf)->release(info.name);
            (*hf)->release(info.name);
        }
    }
}

TEST(Source, TokenizersOfEitherFormatGiveTheGoldenIds) {
    const auto golden = parse_json(read_file(FRONTIER_SOURCE_DIR "/tests/golden/golden.json"), "golden.json");
    ASSERT_TRUE(golden);
    for (const char* name : {"tale-7m-f16.gguf", "tale-7m"}) {
        SCOPED_TRACE(name);
        auto source = open_model(kModels + name);
        ASSERT_TRUE(source);
        const auto tokenizer = (*source)->tokenizer();
        ASSERT_TRUE(tokenizer) << tokenizer.error().text;
        for (const Json& test : (*golden)["tale_tokenizer_cases"])
            EXPECT_EQ(*(*tokenizer)->encode(test["text"].get<std::string>(), {.parse_special = true}),
                      test["ids"].get<std::vector<TokenId>>())
                << test["text"];
        EXPECT_TRUE((*tokenizer)->ends_generation(1));
        EXPECT_TRUE((*tokenizer)->ends_generation(4));
        EXPECT_FALSE((*tokenizer)->ends_generation(2));
        EXPECT_THAT((*source)->chat_template_source(), testing::HasSubstr("add_generation_prompt"));
    }
    auto stories = open_model("stories260K-f32");
    ASSERT_TRUE(stories) << stories.error().text;
    for (const Json& prompt : (*golden)["models"]["stories260K"]["prompts"])
        EXPECT_EQ(*(*(*stories)->tokenizer())->encode(prompt["prompt"].get<std::string>()),
                  prompt["ids"].get<std::vector<TokenId>>());
}

TEST(Source, BundledModelsLoad) {
    for (const char* name : {"tale-7m-f16", "tale-7m", "tale-1m-f16", "tale-1m", "stories260K-f32"}) {
        auto source = open_model(name);
        ASSERT_TRUE(source) << source.error().text;
        NullBackend backend;
        const auto model = Model::load(**source, backend);
        EXPECT_TRUE(model) << model.error().text;
    }
}

TEST(OpenModel, NamesPathsAndTheDefault) {
    auto standard = open_model("");
    ASSERT_TRUE(standard) << standard.error().text;
    EXPECT_EQ((*standard)->config().name, "tale-7m");
    EXPECT_EQ((*standard)->format(), "gguf");
    EXPECT_EQ((*open_model("synthetic:tiny-qwen3"))->format(), "synthetic");
    EXPECT_EQ((*open_model(kModels + "tale-1m/"))->config().name, "tale-1m");
    EXPECT_EQ((*open_model(kModels + "tale-1m/config.json"))->format(), "huggingface");
    EXPECT_EQ((*open_model(kModels + "tale-1m/model.safetensors"))->format(), "huggingface");

    expect_bad_input(open_model("tale-8m"), {"tale-8m", "nearest", "tale-7m", "frontier list"});
    expect_bad_input(open_model("/no/such/file.gguf"), {"/no/such/file.gguf"});
    expect_bad_input(open_model("synthetic:no-such"), {"no-such", "tinyllama-1.1b"});
    expect_bad_input(open_model("hf:org/repo"), {"hf:org/repo", "local"});
    expect_bad_input(open_model(std::string(100000, 'x') + "\n"), {"x"});
    expect_bad_input(open_model(std::string("a\0b", 3)), {"nearest"});
    EXPECT_FALSE(open_model("/dev/null"));
}

TEST(OpenModel, FoldersHoldOneModel) {
    TemporaryFolder folder;
    expect_bad_input(open_model(folder.path()), {folder.path(), "config.json", "0 .gguf"});
    ASSERT_TRUE(write_synthetic_gguf("tiny-llama", folder.file("a.gguf")));
    EXPECT_TRUE(open_model(folder.path()));
    ASSERT_TRUE(write_synthetic_gguf("tiny-llama", folder.file("b.gguf")));
    expect_bad_input(open_model(folder.path()), {folder.path(), "2 .gguf"});

    set_model_search_path({folder.path()});
    EXPECT_TRUE(open_model("b"));
    const std::vector<ModelListEntry> list = list_models();
    set_model_search_path({});
    std::map<std::string, ModelListEntry> by_name;
    for (const ModelListEntry& entry : list) by_name[entry.name] = entry;
    EXPECT_EQ(by_name["a"].architecture, "llama");
    EXPECT_EQ(by_name["tale-7m"].parameters, 7344384);
    EXPECT_EQ(by_name["tale-7m-f16"].weight_type, "F16");
    EXPECT_EQ(by_name["tale-7m-f16"].bytes, static_cast<std::int64_t>(fs::file_size(kModels + "tale-7m-f16.gguf")));
    EXPECT_TRUE(by_name["tale-7m-f16"].is_default);
    EXPECT_FALSE(open_model("b"));
}

TEST(OpenModel, ABrokenFileIsListedWithItsError) {
    TemporaryFolder folder;
    folder.write("broken.gguf", "GGUF but no more");
    set_model_search_path({folder.path()});
    const std::vector<ModelListEntry> list = list_models();
    set_model_search_path({});
    const auto entry = std::ranges::find(list, "broken", &ModelListEntry::name);
    ASSERT_NE(entry, list.end());
    EXPECT_THAT(entry->error, testing::HasSubstr("broken.gguf"));
}

TEST(GgufSource, TokenizerOnlyFiles) {
    TemporaryFolder folder;
    GgufMaker maker;
    maker.texts = {{"general.architecture", "gpt2"},
                   {"tokenizer.ggml.model", "llama"},
                   {"tokenizer.chat_template", "{{ messages[0].content }}"}};
    const TokenizerSpec spec = synthetic_tokenizer_spec(SyntheticModel::create("tiny-llama")->shape());
    maker.text_arrays["tokenizer.ggml.tokens"] = spec.pieces;
    maker.float_arrays["tokenizer.ggml.scores"] = spec.scores;
    maker.flags["tokenizer.ggml.add_eos_token"] = true;
    ASSERT_TRUE(maker.write(folder.file("t.gguf")));
    auto source = open_model(folder.file("t.gguf"));
    ASSERT_TRUE(source) << source.error().text;
    EXPECT_FALSE((*source)->has_model());
    EXPECT_EQ((*source)->architecture_name(), "gpt2");
    EXPECT_EQ((*source)->chat_template_source(), "{{ messages[0].content }}");
    const auto tokenizer = (*source)->tokenizer();
    ASSERT_TRUE(tokenizer) << tokenizer.error().text;
    EXPECT_EQ((*tokenizer)->spec().bos, 1);
    EXPECT_TRUE((*tokenizer)->spec().add_bos);
    EXPECT_TRUE((*tokenizer)->spec().add_eos);
    EXPECT_TRUE((*tokenizer)->spec().add_space_prefix);
    NullBackend backend;
    expect_bad_input(Model::load(**source, backend), {"t.gguf", "tokenizer"});

    GgufMaker empty;
    empty.texts = {{"general.architecture", "llama"}};
    ASSERT_TRUE(empty.write(folder.file("e.gguf")));
    expect_bad_input(open_model(folder.file("e.gguf")), {"e.gguf", "neither"});
}

TEST(GgufSource, AFileNamedLikeAShardCountsOnlyItself) {
    TemporaryFolder folder;
    const fs::path whole = kModels + "tale-1m-f16.gguf";
    for (const char* name : {"s-00001-of-00003.gguf", "s-00002-of-00003.gguf"}) fs::copy_file(whole, folder.file(name));
    const auto source = open_model(folder.file("s-00001-of-00003.gguf"));
    ASSERT_TRUE(source) << source.error().text;
    EXPECT_EQ((*source)->file_bytes(), static_cast<std::int64_t>(fs::file_size(whole)));
}

TEST(GgufSource, TokenizerErrorsNameTheKey) {
    TemporaryFolder folder;
    const auto tokenizer_of = [&](const GgufMaker& maker) -> Result<std::shared_ptr<const Tokenizer>> {
        FR_TRY(maker.write(folder.file("t.gguf")));
        FR_ASSIGN(auto source, open_gguf_source(folder.file("t.gguf")));
        return source->tokenizer();
    };
    GgufMaker good;
    good.texts = {{"tokenizer.ggml.model", "llama"}};
    good.text_arrays["tokenizer.ggml.tokens"] = {"<unk>", "<s>", "</s>", "a", "b"};
    good.float_arrays["tokenizer.ggml.scores"] = {0, 0, 0, 0, 0};
    good.int_arrays["tokenizer.ggml.token_type"] = {2, 3, 3, 1, 1};
    ASSERT_TRUE(tokenizer_of(good)) << tokenizer_of(good).error().text;

    GgufMaker maker = good;
    maker.texts["tokenizer.ggml.model"] = "bert";
    expect_bad_input(tokenizer_of(maker), {"t.gguf", "tokenizer.ggml.model", "bert"});
    maker = good;
    maker.texts["tokenizer.ggml.model"] = "gpt2";
    maker.texts["tokenizer.ggml.pre"] = "no-such";
    expect_bad_input(tokenizer_of(maker), {"tokenizer.ggml.pre", "no-such"});
    maker = good;
    maker.texts["tokenizer.ggml.model"] = "gpt2";
    expect_bad_input(tokenizer_of(maker), {"tokenizer.ggml.merges", "missing"});
    maker = good;
    maker.float_arrays["tokenizer.ggml.scores"].pop_back();
    expect_bad_input(tokenizer_of(maker), {"tokenizer.ggml.scores", "5", "got 4"});
    maker = good;
    maker.float_arrays.clear();
    expect_bad_input(tokenizer_of(maker), {"tokenizer.ggml.scores", "missing"});
    maker = good;
    maker.int_arrays["tokenizer.ggml.token_type"][3] = 7;
    expect_bad_input(tokenizer_of(maker), {"tokenizer.ggml.token_type[3]", "got 7"});
    maker = good;
    maker.texts["tokenizer.ggml.bos_token_id"] = "one";
    expect_bad_input(tokenizer_of(maker), {"tokenizer.ggml.bos_token_id"});
    // Ids outside the vocabulary mean no token; an unnamed token is not found.
    maker = good;
    maker.counts["tokenizer.ggml.bos_token_id"] = 0xFFFFFFFFU;
    maker.text_arrays["tokenizer.ggml.tokens"][4] = "";
    const auto tokenizer = tokenizer_of(maker);
    ASSERT_TRUE(tokenizer) << tokenizer.error().text;
    EXPECT_FALSE((*tokenizer)->spec().bos);
    EXPECT_EQ((*tokenizer)->spec().pieces[4], "[EMPTY_4]");
}

// A copy of tale-1m that a test may change.
class HfFolder : public testing::Test {
protected:
    void SetUp() override {
        for (const auto& entry : fs::directory_iterator(kModels + "tale-1m"))
            fs::copy_file(entry.path(), folder_.file(entry.path().filename().string()));
        fs::permissions(folder_.path(), fs::perms::owner_all);
    }
    Json json(const char* name) const { return Json::parse(read_file(folder_.file(name))); }
    void write(const char* name, const Json& value) const {
        fs::remove(folder_.file(name));
        folder_.write(name, value.dump());
    }

    TemporaryFolder folder_;
};

TEST_F(HfFolder, ShardedWeightsAreTheSameModel) {
    const std::string whole = read_file(folder_.file("model.safetensors"));
    std::uint64_t header_bytes = 0;
    std::memcpy(&header_bytes, whole.data(), 8);
    const Json header = Json::parse(whole.substr(8, header_bytes));
    const std::string data = whole.substr(8 + header_bytes);
    // Tensors go alternately to three shards.
    Json headers[3];
    std::string parts[3];
    Json index;
    std::size_t next = 0;
    for (const auto& [name, value] : header.items()) {
        if (name == "__metadata__") continue;
        const std::size_t shard = next++ % 3;
        const auto begin = value["data_offsets"][0].get<std::size_t>();
        const auto end = value["data_offsets"][1].get<std::size_t>();
        Json moved = value;
        moved["data_offsets"] = {parts[shard].size(), parts[shard].size() + end - begin};
        parts[shard] += data.substr(begin, end - begin);
        headers[shard][name] = moved;
        index["weight_map"][name] = fmt::format("model-{:05}-of-00003.safetensors", shard + 1);
    }
    for (std::size_t shard = 0; shard < 3; ++shard) {
        const std::string text = headers[shard].dump();
        const std::uint64_t size = text.size();
        folder_.write(fmt::format("model-{:05}-of-00003.safetensors", shard + 1),
                      std::string(reinterpret_cast<const char*>(&size), 8) + text + parts[shard]);
    }
    write("model.safetensors.index.json", index);
    fs::remove(folder_.file("model.safetensors"));

    auto sharded = open_model(folder_.path());
    auto single = open_model(kModels + "tale-1m");
    ASSERT_TRUE(sharded) << sharded.error().text;
    ASSERT_EQ((*sharded)->tensors().size(), (*single)->tensors().size());
    for (const TensorInfo& info : (*single)->tensors()) {
        const auto a = (*single)->map(info.name);
        const auto b = (*sharded)->map(info.name);
        ASSERT_TRUE(b) << info.name;
        EXPECT_EQ(a->info.shape, b->info.shape);
        EXPECT_TRUE(std::ranges::equal(a->data, b->data)) << info.name;
    }
    NullBackend backend;
    EXPECT_TRUE(Model::load(**sharded, backend));

    fs::remove(folder_.file("model-00002-of-00003.safetensors"));
    expect_bad_input(open_model(folder_.path()), {"model-00002-of-00003.safetensors"});
}

TEST_F(HfFolder, MissingPartsAreNamed) {
    fs::remove(folder_.file("tokenizer.json"));
    auto source = open_model(folder_.path());
    ASSERT_TRUE(source);  // weights can be used without
    expect_bad_input((*source)->tokenizer(), {"tokenizer.json", "missing"});
    folder_.write("tokenizer.model", "x");
    expect_bad_input((*source)->tokenizer(), {"tokenizer.json", "tokenizer.model"});
    fs::remove(folder_.file("model.safetensors"));
    expect_bad_input(open_model(folder_.path()), {"model.safetensors"});
}

TEST_F(HfFolder, OnlyATokenizer) {
    const auto whole = open_model(folder_.path());
    ASSERT_TRUE(whole);
    EXPECT_TRUE((*whole)->has_model());
    const auto expected = *(*(*whole)->tokenizer())->encode("Once upon a time");
    // The file itself, also beside a model; then the folder.
    const auto file = open_model(folder_.file("tokenizer.json"));
    for (const char* name : {"config.json", "model.safetensors", "generation_config.json"})
        fs::remove(folder_.file(name));
    const auto folder = open_model(folder_.path());
    for (const auto* source : {&file, &folder}) {
        ASSERT_TRUE(*source) << source->error().text;
        EXPECT_FALSE((**source)->has_model());
        EXPECT_EQ((**source)->format(), "huggingface");
        EXPECT_EQ((**source)->file_bytes(), 0);
        const auto tokenizer = (**source)->tokenizer();
        ASSERT_TRUE(tokenizer) << tokenizer.error().text;
        EXPECT_EQ(*(*tokenizer)->encode("Once upon a time"), expected);
        NullBackend backend;
        expect_bad_input(Model::load(***source, backend), {"expected a model", "only a tokenizer"});
    }
    fs::remove(folder_.file("tokenizer.json"));
    expect_bad_input(open_model(folder_.path()), {"tokenizer.json"});
}

TEST_F(HfFolder, WrongShapesAndTypesAreNamedOnLoading) {
    Json config = json("config.json");
    config["intermediate_size"] = 512;
    write("config.json", config);
    auto source = open_model(folder_.path());
    ASSERT_TRUE(source);
    NullBackend backend;
    expect_bad_input(Model::load(**source, backend), {"blk.0.ffn_gate.weight", "[512, 128]", "[384, 128]"});

    config = json("config.json");
    config["intermediate_size"] = 384;
    config["tie_word_embeddings"] = false;
    write("config.json", config);
    source = open_model(folder_.path());
    ASSERT_TRUE(source);
    expect_bad_input(Model::load(**source, backend), {"output.weight", "missing"});
}

TEST_F(HfFolder, BrokenConfigs) {
    fs::remove(folder_.file("config.json"));
    folder_.write("config.json", "{\"hidden_size\": ");
    expect_bad_input(open_model(folder_.path()), {"config.json"});
    write("config.json", Json::array());
    expect_bad_input(open_model(folder_.path()), {"config.json", "object"});
}

TEST_F(HfFolder, GenerationConfig) {
    write("generation_config.json", Json::parse(R"({"eos_token_id": [1, 3], "temperature": 0.6, "top_p": 0.9,
        "top_k": 20, "repetition_penalty": 1.1, "min_p": null})"));
    auto source = open_model(folder_.path());
    ASSERT_TRUE(source) << source.error().text;
    const GenerationDefaults defaults = (*source)->generation_defaults();
    EXPECT_EQ(defaults.temperature, 0.6);
    EXPECT_EQ(defaults.top_p, 0.9);
    EXPECT_EQ(defaults.top_k, 20);
    EXPECT_EQ(defaults.repeat_penalty, 1.1);
    EXPECT_EQ(defaults.min_p, std::nullopt);
    EXPECT_TRUE((*(*source)->tokenizer())->ends_generation(3));

    write("generation_config.json", Json::parse(R"({"eos_token_id": 3, "temperature": 0.6, "do_sample": false})"));
    EXPECT_EQ((*open_model(folder_.path()))->generation_defaults().temperature, 0.0);
    for (const char* bad : {R"({"eos_token_id": "x"})", R"({"eos_token_id": [-1]})", R"({"temperature": "hot"})",
                            R"({"top_k": 1.5})", "[]"}) {
        write("generation_config.json", Json::parse(bad));
        expect_bad_input(open_model(folder_.path()), {"generation_config.json"});
    }
    // Without the file, config.json's end token counts.
    fs::remove(folder_.file("generation_config.json"));
    Json config = json("config.json");
    config["eos_token_id"] = {1, 2};
    write("config.json", config);
    EXPECT_TRUE((*(*open_model(folder_.path()))->tokenizer())->ends_generation(2));
}

TEST_F(HfFolder, ChatTemplateInItsThreePlaces) {
    Json config = json("tokenizer_config.json");
    config["chat_template"] =
        Json::parse(R"([{"name": "tool_use", "template": "tools"}, {"name": "default", "template": "plain"}])");
    write("tokenizer_config.json", config);
    EXPECT_EQ((*open_model(folder_.path()))->chat_template_source(), "plain");
    folder_.write("chat_template.jinja", "from the file");
    EXPECT_EQ((*open_model(folder_.path()))->chat_template_source(), "from the file");
    fs::remove(folder_.file("chat_template.jinja"));
    config["chat_template"] = 5;
    write("tokenizer_config.json", config);
    expect_bad_input(open_model(folder_.path()), {"tokenizer_config.json", "chat_template"});
    config.erase("chat_template");
    write("tokenizer_config.json", config);
    EXPECT_EQ((*open_model(folder_.path()))->chat_template_source(), "");
}

TEST(WeightType, LargestFirst) {
    EXPECT_EQ(weight_type_of({}), "");
    const auto q4 = SyntheticModel::create("tinyllama-1.1b:Q4_K_M");
    EXPECT_EQ(weight_type_of(q4->tensors()), "Q4_K+Q6_K");
    EXPECT_EQ(weight_type_of(SyntheticModel::create("tiny-llama:F32")->tensors()), "F32");
}

}  // namespace
}  // namespace frontier

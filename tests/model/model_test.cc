// The model against a backend that computes nothing: what is uploaded, what is recorded, what is refused.
#include "model/model.h"

#include "backend/null_backend.h"
#include "platform/memory.h"
#include "test_models.h"

namespace frontier {
namespace {

// A source whose tensors can be tampered with; all bytes are zero.
class FakeSource : public ModelSource {
public:
    explicit FakeSource(std::string_view spec) {
        const auto model = SyntheticModel::create(spec);
        config_ = model->config();
        tensors_ = model->tensors();
    }

    std::string_view format() const override { return "fake"; }
    const std::string& where() const override { return where_; }
    std::string architecture_name() const override { return std::string(config_.architecture->name); }
    const ModelConfig& config() const override { return config_; }
    bool has_model() const override { return true; }
    const std::vector<TensorInfo>& tensors() const override { return tensors_; }
    const TensorInfo* find(std::string_view name) const override {
        for (const TensorInfo& info : tensors_)
            if (info.name == name) return &info;
        return nullptr;
    }
    std::string why_unusable(std::string_view name) const override { return name == unusable ? "I32" : ""; }
    Result<TensorView> map(std::string_view name) override {
        const TensorInfo* info = find(name);
        mapped.emplace_back(name);
        const auto bytes = static_cast<std::size_t>(info->bytes());
        if (zeros_.size_bytes() < bytes) {
            FR_ASSIGN(zeros_, AlignedBuffer::allocate(bytes));
        }
        return TensorView{*info, zeros_.bytes().first(bytes)};
    }
    void release(std::string_view name) override { released.emplace_back(name); }
    Result<std::shared_ptr<const Tokenizer>> tokenizer() override { return bad_input("none"); }
    std::string chat_template_source() const override { return {}; }
    GenerationDefaults generation_defaults() const override { return {}; }
    std::string weight_type() const override { return "F32"; }
    std::int64_t file_bytes() const override { return 0; }

    TensorInfo& at(std::string_view name) { return *const_cast<TensorInfo*>(find(name)); }
    void erase(std::string_view name) {
        std::erase_if(tensors_, [&](const TensorInfo& info) { return info.name == name; });
    }
    void add(TensorInfo info) { tensors_.push_back(std::move(info)); }
    void reverse() { std::reverse(tensors_.begin(), tensors_.end()); }

    std::string unusable;
    std::vector<std::string> mapped, released;

private:
    std::string where_ = "fake.gguf";
    ModelConfig config_;
    std::vector<TensorInfo> tensors_;
    AlignedBuffer zeros_;
};

const char* op_name(const Op& op) {
    struct Names {
        const char* operator()(const EmbedOp&) const { return "embed"; }
        const char* operator()(const RmsNormOp&) const { return "norm"; }
        const char* operator()(const QkvOp&) const { return "qkv"; }
        const char* operator()(const RopeKvWriteOp&) const { return "rope"; }
        const char* operator()(const AttentionOp&) const { return "attention"; }
        const char* operator()(const ProjectResidualOp&) const { return "project"; }
        const char* operator()(const GateUpOp&) const { return "gate_up"; }
        const char* operator()(const LogitsOp&) const { return "logits"; }
    };
    return std::visit(Names{}, op);
}

class Forward : public testing::TestWithParam<const char*> {};

TEST_P(Forward, RecordsTheLayersInOrderAndTheBackendAcceptsThem) {
    FakeSource source(GetParam());
    NullBackend backend;
    const auto model = Model::load(source, backend);
    ASSERT_TRUE(model) << model.error().text;
    const ModelConfig& c = (*model)->config();
    ASSERT_TRUE(backend.create_kv_cache(
        {.layers = c.layers, .kv_heads = c.kv_heads, .head_dim = c.head_dim, .type = KvType::kF16, .pages = 2}));
    ASSERT_TRUE(backend.reserve(8, 2));

    Step step;
    const std::vector<PageId> table = {0, 1};
    step.input.tokens = {1, 2, 3};
    step.input.positions = {0, 1, 2};
    step.input.sequences = {{.first_row = 0, .rows = 3, .first_position = 0, .block_table = table}};
    step.input.logits_rows = {2};
    (*model)->record_forward(step);
    const Status submitted = backend.submit(step);
    ASSERT_TRUE(submitted) << submitted.error().text;

    std::vector<std::string> expected = {"embed"};
    for (std::int32_t layer = 0; layer < c.layers; ++layer)
        for (const char* name : {"norm", "qkv", "rope", "attention", "project", "norm", "gate_up", "project"})
            expected.emplace_back(name);
    expected.emplace_back("logits");
    std::vector<std::string> recorded;
    for (const Op& op : step.ops) recorded.emplace_back(op_name(op));
    EXPECT_EQ(recorded, expected);

    // Every operand is the tensor of that name and layer.
    const auto name_of = [&](WeightId id) {
        return id.valid() ? backend.uploads()[static_cast<std::size_t>(id.index)].info.name : std::string();
    };
    const bool bias = c.qkv_bias;
    const bool norm = c.architecture->qk_norm;
    for (std::int32_t layer = 0; layer < c.layers; ++layer) {
        const auto* ops = &step.ops[1 + 8 * static_cast<std::size_t>(layer)];
        const auto of = [&](const char* suffix) { return fmt::format("blk.{}.{}", layer, suffix); };
        EXPECT_EQ(name_of(std::get<RmsNormOp>(ops[0]).gain), of("attn_norm.weight"));
        EXPECT_EQ(std::get<RmsNormOp>(ops[0]).eps, c.rms_norm_eps);
        const auto& qkv = std::get<QkvOp>(ops[1]);
        EXPECT_EQ(name_of(qkv.q), of("attn_q.weight"));
        EXPECT_EQ(name_of(qkv.k), of("attn_k.weight"));
        EXPECT_EQ(name_of(qkv.v), of("attn_v.weight"));
        EXPECT_EQ(name_of(qkv.q_bias), bias ? of("attn_q.bias") : "");
        EXPECT_EQ(name_of(qkv.k_bias), bias ? of("attn_k.bias") : "");
        EXPECT_EQ(name_of(qkv.v_bias), bias ? of("attn_v.bias") : "");
        const auto& rope = std::get<RopeKvWriteOp>(ops[2]);
        EXPECT_EQ(rope.layer, layer);
        EXPECT_EQ(name_of(rope.q_norm), norm ? of("attn_q_norm.weight") : "");
        EXPECT_EQ(name_of(rope.k_norm), norm ? of("attn_k_norm.weight") : "");
        const auto& attention = std::get<AttentionOp>(ops[3]);
        EXPECT_EQ(attention.layer, layer);
        EXPECT_EQ(attention.scale, 0.125F);  // 1 / sqrt(64)
        EXPECT_EQ(attention.window_tokens, c.sliding_window_tokens);
        EXPECT_EQ(name_of(std::get<ProjectResidualOp>(ops[4]).weight), of("attn_output.weight"));
        EXPECT_EQ(name_of(std::get<RmsNormOp>(ops[5]).gain), of("ffn_norm.weight"));
        EXPECT_EQ(name_of(std::get<GateUpOp>(ops[6]).gate), of("ffn_gate.weight"));
        EXPECT_EQ(name_of(std::get<GateUpOp>(ops[6]).up), of("ffn_up.weight"));
        EXPECT_EQ(name_of(std::get<ProjectResidualOp>(ops[7]).weight), of("ffn_down.weight"));
    }
    const auto& logits = std::get<LogitsOp>(step.ops.back());
    EXPECT_EQ(name_of(logits.gain), "output_norm.weight");
    EXPECT_EQ(name_of(logits.weight), c.tied_embeddings ? "token_embd.weight" : "output.weight");
    EXPECT_EQ(backend.rope().interleaved, c.architecture->name == "llama");
}

INSTANTIATE_TEST_SUITE_P(Architectures, Forward,
                         testing::Values("tiny-llama", "tiny-llama3", "tiny-mistral", "tiny-qwen2", "tiny-qwen3"));

TEST(ModelLoad, UploadsOnceInFileOrderAndReleasesEach) {
    FakeSource source("tiny-qwen3:Q4_K_M");
    source.reverse();
    NullBackend backend;
    std::vector<std::pair<std::int64_t, std::int64_t>> progress;
    const auto model = Model::load(source, backend,
                                   [&](std::int64_t done, std::int64_t total) { progress.emplace_back(done, total); });
    ASSERT_TRUE(model);
    std::vector<std::string> names;
    for (const TensorInfo& info : source.tensors()) names.push_back(info.name);
    EXPECT_EQ(source.mapped, names);
    EXPECT_EQ(source.released, names);
    EXPECT_EQ(progress.size(), names.size());
    EXPECT_EQ(progress.back().first, progress.back().second);
    EXPECT_TRUE(std::ranges::is_sorted(progress));
    for (const NullBackend::Upload& upload : backend.uploads())
        EXPECT_EQ(upload.vector, upload.info.shape.size() == 1) << upload.info.name;
}

TEST(ModelLoad, BytesAndFlopsOfAKnownModel) {
    FakeSource source("tinyllama-1.1b:Q4_0");
    NullBackend backend;
    const auto model = Model::load(source, backend);
    ASSERT_TRUE(model) << model.error().text;
    // Per layer: 2048 x (2048 + 256 + 256 + 2048) and 3 x 2048 x 5632 weights at 18 bytes per 32; two norms in F32.
    const std::int64_t layer_weights = 2048LL * 4608 + 3LL * 2048 * 5632;
    const std::int64_t head_weights = 32000LL * 2048;
    const std::int64_t row = 2048 / 32 * 18;
    EXPECT_EQ((*model)->decode_bytes(),
              22 * (layer_weights / 32 * 18 + 2 * 2048 * 4) + head_weights / 256 * 210 + 2048 * 4 + row);
    EXPECT_NEAR(static_cast<double>((*model)->decode_bytes()), 0.600e9, 0.001e9);  // as llama-quantize makes it
    EXPECT_EQ((*model)->flops_per_token(), 2 * (22 * layer_weights + head_weights));
    EXPECT_EQ((*model)->head_flops_per_row(), 2 * head_weights);
}

TEST(ModelLoad, ATiedEmbeddingIsReadWhole) {
    FakeSource source("tiny-qwen3:F32");
    NullBackend backend;
    const auto model = Model::load(source, backend);
    ASSERT_TRUE(model);
    std::int64_t bytes = 0;
    for (const TensorInfo& info : source.tensors()) bytes += info.bytes();
    EXPECT_EQ((*model)->decode_bytes(), bytes);
}

// Loads after `tamper`, expects the error and that nothing was uploaded before it was found.
template <typename Tamper>
void expect_refused(std::string_view spec, const Tamper& tamper, const std::vector<std::string>& parts) {
    FakeSource source(spec);
    tamper(source);
    NullBackend backend;
    const auto model = Model::load(source, backend);
    std::vector<std::string> all = parts;
    all.emplace_back("fake.gguf");
    expect_bad_input(model, all);
    EXPECT_TRUE(backend.uploads().empty());
}

TEST(ModelLoad, RefusesWhatDoesNotFitTheConfig) {
    expect_refused("tiny-llama", [](FakeSource& s) { s.erase("blk.2.ffn_down.weight"); },
                   {"blk.2.ffn_down.weight", "missing", "[256, 768]"});
    expect_refused("tiny-qwen2", [](FakeSource& s) { s.erase("blk.1.attn_k.bias"); },
                   {"blk.1.attn_k.bias", "missing", "[128]"});
    expect_refused("tiny-llama", [](FakeSource& s) { s.at("blk.0.attn_q.weight").shape = {256, 512}; },
                   {"blk.0.attn_q.weight", "[256, 256]", "[256, 512]"});
    expect_refused("tiny-llama", [](FakeSource& s) { s.at("output.weight").shape = {1056, 256}; },
                   {"output.weight", "[1024, 256]", "[1056, 256]"});
    expect_refused("tiny-llama", [](FakeSource& s) { s.at("blk.0.attn_norm.weight").shape = {1, 256}; },
                   {"blk.0.attn_norm.weight", "[256]", "[1, 256]"});
    expect_refused("tiny-llama", [](FakeSource& s) { s.at("output_norm.weight").type = DType::kQ8_0; },
                   {"output_norm.weight", "F32, F16 or BF16", "Q8_0"});
    expect_refused("tiny-llama",
                   [](FakeSource& s) {
                       s.erase("blk.0.ffn_up.weight");
                       s.unusable = "blk.0.ffn_up.weight";
                   },
                   {"blk.0.ffn_up.weight", "F32, F16 or BF16", "I32"});
    // Tensors that belong to another architecture would have changed the result.
    expect_refused("tiny-llama", [](FakeSource& s) { s.add({"blk.0.ffn_gate.bias", DType::kF32, {768}}); },
                   {"blk.0.ffn_gate.bias", "llama"});
    expect_refused("tiny-llama", [](FakeSource& s) { s.add({"blk.3.attn_q.weight", DType::kF32, {256, 256}}); },
                   {"blk.3.attn_q.weight", "3 layers"});
}

TEST(ModelLoad, IgnoresWhatDoesNotMatter) {
    FakeSource source("tiny-llama");
    source.add({"model.layers.0.self_attn.rotary_emb.inv_freq", DType::kF32, {32}});
    source.add({"blk.0.attn_rotary.inv_freq", DType::kF32, {32}});
    source.add({"v.patch_embd.weight", DType::kF32, {32}});
    NullBackend backend;
    EXPECT_TRUE(Model::load(source, backend));
}

TEST(ModelLoad, WeightsBeyondTheMemoryDoNotFit) {
    FakeSource source("tiny-llama:F32");
    // A model of 1024 layers of the largest size we accept: hundreds of terabytes.
    auto& config = const_cast<ModelConfig&>(source.config());
    const std::int64_t ffn = kMaxFfn;
    config.ffn_size = static_cast<std::int32_t>(ffn);
    config.hidden_size = static_cast<std::int32_t>(kMaxHidden);
    config.vocab_size = static_cast<std::int32_t>(kMaxVocab);
    while (!source.tensors().empty()) source.erase(source.tensors().front().name);
    for (const WeightSpec& spec : weight_specs(config)) source.add({spec.name, DType::kF32, spec.shape});
    NullBackend backend;
    const auto model = Model::load(source, backend);
    ASSERT_FALSE(model);
    EXPECT_EQ(model.error().code, ErrorCode::kDoesNotFit);
    EXPECT_THAT(model.error().text, testing::ContainsRegex("need [0-9.]+ GB .* [0-9.]+ GB are available"));
    EXPECT_TRUE(backend.uploads().empty());
}

}  // namespace
}  // namespace frontier

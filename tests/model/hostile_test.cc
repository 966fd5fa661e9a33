// Damaged model files through everything this layer reads of them: an error of one line or a working model, never a
// crash. The formats' own fields have their tests in tests/formats; here the damage gets as far as the config, the
// tokenizer and the binding of tensors.
#include "backend/null_backend.h"
#include "base/rng.h"
#include "model/inspect.h"
#include "model/model.h"
#include "test_models.h"

namespace frontier {
namespace {

void open_and_load(const std::string& path) {
    auto source = open_model(path);
    if (!source) {
        EXPECT_NE(source.error().text, "");
        EXPECT_THAT(source.error().text, testing::Not(testing::HasSubstr("\n")));
        EXPECT_EQ(source.error().code, ErrorCode::kBadInput) << source.error().text;
        return;
    }
    inspect_model(**source);
    if (!(*source)->has_model()) return;
    NullBackend backend;
    const auto model = Model::load(**source, backend);
    if (model) return;
    EXPECT_TRUE(model.error().code == ErrorCode::kBadInput || model.error().code == ErrorCode::kDoesNotFit);
    EXPECT_THAT(model.error().text, testing::Not(testing::HasSubstr("\n")));
}

// The long checks (FRONTIER_SOAK=1) flip 30 times as many bytes.
int rounds_of(int sample) {
    const char* soak = std::getenv("FRONTIER_SOAK");
    return soak != nullptr && std::string_view(soak) == "1" ? 30 * sample : sample;
}

void flip_bytes(const std::string& path, std::size_t first, std::size_t count, int rounds, std::uint64_t seed) {
    const std::string good = read_file(path);
    RandomStream random(seed);
    for (int round = 0; round < rounds; ++round) {
        std::string bytes = good;
        const std::size_t at = first + static_cast<std::size_t>(random.next() % count);
        bytes[at] = static_cast<char>(random.next());
        SCOPED_TRACE(testing::Message() << path << " byte " << at << " = " << int{bytes[at]});
        std::ofstream(path, std::ios::binary) << bytes;
        open_and_load(path);
    }
    std::ofstream(path, std::ios::binary) << good;
}

TEST(Hostile, FlippedMetadataOfAGgufFile) {
    TemporaryFolder folder;
    for (const char* spec : {"tiny-llama3:Q4_0", "tiny-qwen2:Q4_0", "tiny-llama:Q4_0"}) {
        ASSERT_TRUE(write_synthetic_gguf(spec, folder.file("m.gguf")));
        // The hyper-parameters lie in the first 1.2 kB, vocabulary and tensor list in the 30 kB after.
        flip_bytes(folder.file("m.gguf"), 24, 1200, rounds_of(150), 1);
        flip_bytes(folder.file("m.gguf"), 1200, 30000, rounds_of(50), 2);
    }
}

TEST(Hostile, FlippedTextsOfAHuggingFaceFolder) {
    TemporaryFolder folder;
    for (const auto& entry : std::filesystem::directory_iterator(FRONTIER_SOURCE_DIR "/models/tale-1m"))
        std::ofstream(folder.file(entry.path().filename().string()), std::ios::binary)
            << read_file(entry.path().string());
    for (const auto& [name, rounds] : std::map<std::string, int>{
             {"config.json", 100}, {"generation_config.json", 50}, {"tokenizer_config.json", 50}}) {
        const std::string path = folder.file(name);
        const std::string good = read_file(path);
        RandomStream random(3);
        for (int round = 0; round < rounds_of(rounds); ++round) {
            std::string bytes = good;
            const std::size_t at = static_cast<std::size_t>(random.next() % bytes.size());
            bytes[at] = static_cast<char>(random.next());
            SCOPED_TRACE(testing::Message() << name << " byte " << at << " = " << int{bytes[at]});
            std::ofstream(path, std::ios::binary) << bytes;
            open_and_load(folder.path());
        }
        std::ofstream(path, std::ios::binary) << good;
    }
}

}  // namespace
}  // namespace frontier

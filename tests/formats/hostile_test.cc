// Real files, cut and with bytes changed: refused with a proper error, or parsed into views that can all be read.
// FRONTIER_SOAK=1 changes 100,000 bytes of each format instead of 3,000.
#include <functional>

#include "base/rng.h"
#include "formats/gguf.h"
#include "formats/safetensors.h"
#include "raw_files.h"

namespace frontier {
namespace {

// Reads the ends of everything a file hands out; a view out of bounds is for AddressSanitizer to see.
class Touch {
public:
    void operator()(std::string_view text) {
        if (!text.empty())
            sum_ = sum_ + static_cast<unsigned char>(text.front()) + static_cast<unsigned char>(text.back());
    }
    void operator()(std::span<const std::byte> data) {
        if (!data.empty())
            sum_ = sum_ + std::to_integer<unsigned>(data.front()) + std::to_integer<unsigned>(data.back());
    }

private:
    volatile unsigned sum_ = 0;
};

void touch_tensors(const std::vector<TensorView>& tensors) {
    Touch touch;
    for (const TensorView& tensor : tensors) {
        ASSERT_EQ(static_cast<std::int64_t>(tensor.data.size()), tensor.info.bytes());
        ASSERT_GT(tensor.info.rows(), 0);
        touch(tensor.data);
    }
}

// A refused access has to be as proper as a refused file.
template <typename T>
void expect_proper(const Result<T>& result, std::string_view where) {
    if (!result) expect_proper_error(result.error(), where);
}

void touch_all(const GgufFile& file) {
    Touch touch;
    for (const auto& [key, value] : file.metadata()) {
        EXPECT_EQ(file.find(key), &value);
        expect_proper(file.get_int(key), file.where());
        expect_proper(file.get_number(key), file.where());
        expect_proper(file.get_bool(key), file.where());
        expect_proper(file.get_ints(key), file.where());
        expect_proper(file.get_floats(key), file.where());
        if (const auto text = file.get_string(key); text && *text) touch(**text);
        if (const auto* array = std::get_if<GgufArray>(&value.value)) {
            touch(array->data);
            for (const std::string_view text : array->strings) touch(text);
        }
    }
    touch_tensors(file.tensors());
    for (const TensorView& tensor : file.tensors()) ASSERT_EQ(file.find_tensor(tensor.info.name), &tensor);
}

struct Outcome {
    int refused = 0;
    int accepted = 0;
};

// Parses `bytes` once with each change; what a change touches is undone afterwards.
Outcome flip_bytes(std::string_view original, std::size_t region_bytes,
                   const std::function<bool(std::span<const std::byte>)>& parse) {
    const char* soak = std::getenv("FRONTIER_SOAK");
    const int rounds = soak != nullptr && std::string_view(soak) == "1" ? 100'000 : 3'000;
    ExactBytes bytes(original);
    RandomStream random(20240607);
    Outcome outcome;
    for (int round = 0; round < rounds && !::testing::Test::HasFailure(); ++round) {
        // One to three bytes: a lone flip rarely passes one check to meet the next.
        std::size_t positions[3];
        std::byte saved[3];
        const std::size_t flips = 1 + random.next() % 3;
        for (std::size_t i = 0; i < flips; ++i) {
            positions[i] = random.next() % region_bytes;
            saved[i] = bytes[positions[i]];
            bytes[positions[i]] ^= static_cast<std::byte>(1 + random.next() % 255);
        }
        parse(bytes.span()) ? ++outcome.accepted : ++outcome.refused;
        for (std::size_t i = flips; i-- > 0;) bytes[positions[i]] = saved[i];
        if (::testing::Test::HasFailure()) ADD_FAILURE() << "round " << round;
    }
    return outcome;
}

bool parse_gguf_bytes(std::span<const std::byte> bytes) {
    const auto file = GgufFile::parse(bytes, "x.gguf");
    if (file)
        touch_all(*file);
    else
        expect_proper_error(file.error(), "x.gguf");
    return file.has_value();
}

bool parse_safetensors_bytes(std::span<const std::byte> bytes) {
    const auto model = SafetensorsModel::parse(bytes, "x.st");
    if (model)
        touch_tensors(model->tensors());
    else
        expect_proper_error(model.error(), "x.st");
    return model.has_value();
}

std::size_t gguf_header_bytes(const std::string& bytes) {
    const auto file = GgufFile::parse(std::as_bytes(std::span(bytes)), "x.gguf");
    EXPECT_TRUE(file);
    return static_cast<std::size_t>(file->tensors().front().data.data() - std::as_bytes(std::span(bytes)).data());
}

TEST(HostileBytes, GgufCutAnywhereIsRefused) {
    const std::string whole = read_file(bundled("tale-1m-f16.gguf"));
    ASSERT_TRUE(parse_gguf_bytes(ExactBytes(whole).span()));
    for (std::size_t i = 0; i < 64; ++i) {
        const ExactBytes cut(std::string_view(whole).substr(0, whole.size() * i / 64));
        EXPECT_FALSE(parse_gguf_bytes(cut.span())) << i << "/64";
    }
    // Densely through the header, where every kind of field is cut in the middle.
    const std::size_t header = gguf_header_bytes(whole);
    for (std::size_t size = 0; size < header; size += size < 2000 || size + 2000 > header ? 1 : 97)
        ASSERT_FALSE(parse_gguf_bytes(ExactBytes(std::string_view(whole).substr(0, size)).span())) << size;
}

TEST(HostileBytes, CutFilesOnDiskAreRefused) {
    const TemporaryFolder folder;
    const std::string gguf = read_file(bundled("tale-1m-f16.gguf"));
    const std::string safetensors = read_file(bundled("tale-1m/model.safetensors"));
    for (std::size_t i = 0; i < 64; i += 7) {
        const std::string path = folder.write("x.gguf", std::string_view(gguf).substr(0, gguf.size() * i / 64));
        const auto file = GgufFile::open(path);
        ASSERT_FALSE(file) << i << "/64";
        EXPECT_EQ(file.error().code, ErrorCode::kBadInput) << file.error().text;
        folder.write("model.safetensors", std::string_view(safetensors).substr(0, safetensors.size() * i / 64));
        const auto model = SafetensorsModel::open(folder.path());
        ASSERT_FALSE(model) << i << "/64";
        EXPECT_EQ(model.error().code, ErrorCode::kBadInput) << model.error().text;
    }
}

TEST(HostileBytes, SafetensorsCutAnywhereIsRefused) {
    const std::string whole = read_file(bundled("tale-1m/model.safetensors"));
    ASSERT_TRUE(parse_safetensors_bytes(ExactBytes(whole).span()));
    for (std::size_t i = 0; i < 64; ++i) {
        const ExactBytes cut(std::string_view(whole).substr(0, whole.size() * i / 64));
        EXPECT_FALSE(parse_safetensors_bytes(cut.span())) << i << "/64";
    }
    std::uint64_t header = 0;
    std::memcpy(&header, whole.data(), sizeof header);
    for (std::size_t size = 0; size < header + 8; size += 3)
        ASSERT_FALSE(parse_safetensors_bytes(ExactBytes(std::string_view(whole).substr(0, size)).span())) << size;
}

TEST(HostileBytes, GgufFlips) {
    const std::string whole = read_file(bundled("tale-1m-f16.gguf"));
    const Outcome outcome = flip_bytes(whole, gguf_header_bytes(whole), parse_gguf_bytes);
    // Most of this header is the text of tokens, where any byte is as good as another; lengths and shapes are not.
    EXPECT_GT(outcome.refused, 100);
    EXPECT_GT(outcome.accepted, 100);
}

// Without a vocabulary, nearly every byte of the header has a meaning.
TEST(HostileBytes, SmallGgufFlips) {
    RawGguf raw;
    raw.entries = {text_entry("general.architecture", "llama"), entry_of<std::uint32_t>("general.alignment", 4, 32),
                   entry_of<float>("f", 6, 1.5F), entry_of<std::uint8_t>("b", 7, 1)};
    std::string strings;
    put(strings, std::uint32_t{8});
    put(strings, std::uint64_t{2});
    put_text(strings, "one");
    put_text(strings, "two");
    raw.entries.push_back(entry("strings", 9, strings));
    raw.tensors = {{"a", {32, 2}, 0, 0}, {"b", {64, 3}, 2, 256}, {"c", {256}, 14, 384}};
    raw.data_bytes = 608;
    const std::string bytes = raw.bytes();
    ASSERT_TRUE(parse_gguf_bytes(std::as_bytes(std::span(bytes))));
    const Outcome outcome = flip_bytes(bytes, bytes.size() - raw.data_bytes, parse_gguf_bytes);
    EXPECT_GT(outcome.refused, 1000);
    EXPECT_GT(outcome.accepted, 100);
}

TEST(HostileBytes, SafetensorsFlips) {
    const std::string whole = read_file(bundled("tale-1m/model.safetensors"));
    std::uint64_t header = 0;
    std::memcpy(&header, whole.data(), sizeof header);
    const Outcome outcome = flip_bytes(whole, header + 8, parse_safetensors_bytes);
    EXPECT_GT(outcome.refused, 1000);
    EXPECT_GT(outcome.accepted, 100);
}

}  // namespace
}  // namespace frontier

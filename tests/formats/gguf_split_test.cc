#include "formats/gguf.h"
#include "raw_files.h"

namespace frontier {
namespace {

std::vector<std::string> split_entries(std::uint16_t number, std::uint16_t count, std::int32_t tensors) {
    return {entry_of<std::uint16_t>("split.no", 2, number), entry_of<std::uint16_t>("split.count", 2, count),
            entry_of<std::int32_t>("split.tensors.count", 5, tensors)};
}

RawGguf shard(std::uint16_t number, std::uint16_t count, std::int32_t tensors, std::vector<RawTensor> own) {
    RawGguf raw;
    raw.entries = split_entries(number, count, tensors);
    if (number == 0) raw.entries.insert(raw.entries.begin(), text_entry("general.architecture", "llama"));
    raw.tensors = std::move(own);
    raw.data_bytes = 32 * raw.tensors.size();
    return raw;
}

class GgufSplit : public ::testing::Test {
protected:
    void SetUp() override {
        write(1, shard(0, 3, 3, {}));  // as gguf-split --no-tensor-first-split
        write(2, shard(1, 3, 3, {{"a", {8}, 0, 0}, {"b", {8}, 0, 32}}));
        write(3, shard(2, 3, 3, {{"c", {8}, 0, 0}}));
    }
    std::string path(int number) const { return folder_.file(fmt::format("m-{:05}-of-00003.gguf", number)); }
    void write(int number, const RawGguf& raw) const {
        folder_.write(fmt::format("m-{:05}-of-00003.gguf", number), raw.bytes());
    }
    TemporaryFolder folder_;
};

TEST_F(GgufSplit, AnyShardOpensAll) {
    for (int number = 1; number <= 3; ++number) {
        const auto file = GgufFile::open(path(number));
        ASSERT_TRUE(file) << file.error().text;
        EXPECT_EQ(file->where(), path(1));
        EXPECT_EQ(file->get_string("general.architecture").value(), "llama");
        ASSERT_EQ(file->tensors().size(), 3U);
        EXPECT_EQ(file->tensors()[0].info.name, "a");
        EXPECT_EQ(file->tensors()[2].info.name, "c");
        EXPECT_EQ(file->find_tensor("b")->data[1], std::byte{static_cast<unsigned char>(33 * 7)});
        for (std::size_t i = 0; i < 3; ++i) file->release(i);
        EXPECT_EQ(file->find_tensor("c")->data[1], std::byte{7});
    }
}

TEST_F(GgufSplit, MissingShardIsNamed) {
    std::filesystem::remove(path(2));
    EXPECT_REFUSED(GgufFile::open(path(3)), path(3), "file 2 of 3: cannot open " + path(2));
    EXPECT_REFUSED(GgufFile::open(path(1)), path(1), "file 2 of 3: cannot open " + path(2));
}

TEST_F(GgufSplit, CountsMustAgree) {
    write(3, shard(1, 3, 3, {{"c", {8}, 0, 0}}));
    EXPECT_REFUSED(GgufFile::open(path(1)), path(3), "split.no is 1, expected 2");
    write(3, shard(2, 4, 3, {{"c", {8}, 0, 0}}));
    EXPECT_REFUSED(GgufFile::open(path(1)), path(3), "split.count is 4, expected 3");
    EXPECT_REFUSED(GgufFile::open(path(3)), path(3), "one of 4 split files, but not named ...-0000N-of-00004.gguf");
    write(3, shard(2, 3, 3, {{"c", {8}, 0, 0}, {"d", {8}, 0, 32}}));
    EXPECT_REFUSED(GgufFile::open(path(1)), path(1), "split.tensors.count is 3, but the 3 files hold 4 tensors");
    write(3, shard(2, 3, 3, {{"a", {8}, 0, 0}}));
    EXPECT_REFUSED(GgufFile::open(path(1)), path(3), "tensor 'a' is in an earlier split file, too");
    RawGguf plain = shard(2, 3, 3, {{"c", {8}, 0, 0}});
    plain.entries.clear();
    write(3, plain);
    EXPECT_REFUSED(GgufFile::open(path(1)), path(3), "metadata key 'split.count' is missing, expected 3");
    RawGguf text = shard(0, 3, 3, {});
    text.entries = {text_entry("split.count", "3")};
    write(1, text);
    EXPECT_REFUSED(GgufFile::open(path(1)), path(1), "'split.count': expected an integer of at least 0, got string");
    text.entries = {entry_of<std::int32_t>("split.count", 5, -3)};
    write(1, text);
    EXPECT_FALSE(GgufFile::open(path(1)));
}

TEST_F(GgufSplit, RenamedShardSaysWhy) {
    std::filesystem::rename(path(1), folder_.file("renamed.gguf"));
    EXPECT_REFUSED(GgufFile::open(folder_.file("renamed.gguf")), folder_.path(), "one of 3 split files, but not named");
    std::filesystem::rename(folder_.file("renamed.gguf"), folder_.file("m-00004-of-00003.gguf"));
    EXPECT_FALSE(GgufFile::open(folder_.file("m-00004-of-00003.gguf")));
}

TEST_F(GgufSplit, CorruptShardIsNamed) {
    const std::string bytes = read_file(path(2));
    folder_.write("m-00002-of-00003.gguf", std::string_view(bytes).substr(0, bytes.size() - 1));
    EXPECT_REFUSED(GgufFile::open(path(1)), path(2), "tensor 'b': data ends at byte");
}

}  // namespace
}  // namespace frontier

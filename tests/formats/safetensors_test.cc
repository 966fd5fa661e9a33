#include "formats/safetensors.h"
#include "formats/gguf.h"
#include "raw_files.h"

namespace frontier {
namespace {

using ::testing::ElementsAre;

#define EXPECT_HEADER_REFUSED(json, data_bytes, part)                                                        \
    do {                                                                                                     \
        const std::string raw_bytes_ = raw_safetensors(json, data_bytes);                                    \
        EXPECT_REFUSED(SafetensorsModel::parse(std::as_bytes(std::span(raw_bytes_)), "x.st"), "x.st", part); \
    } while (false)

constexpr std::string_view kTwo =
    R"({"__metadata__":{"format":"pt"},"b":{"dtype":"F32","shape":[2,3],"data_offsets":[4,28]},)"
    R"("a":{"dtype":"F16","shape":[2],"data_offsets":[0,4]}}   )";

TEST(Safetensors, TensorsInTheOrderOfTheirData) {
    const std::string bytes = raw_safetensors(kTwo, 28);
    const auto model = SafetensorsModel::parse(std::as_bytes(std::span(bytes)), "x.st");
    ASSERT_TRUE(model) << model.error().text;
    ASSERT_EQ(model->tensors().size(), 2U);
    EXPECT_EQ(model->tensors()[0].info.name, "a");
    EXPECT_EQ(model->tensors()[0].info.type, DType::kF16);
    const TensorView* b = model->find_tensor("b");
    ASSERT_NE(b, nullptr);
    EXPECT_THAT(b->info.shape, ElementsAre(2, 3));
    EXPECT_EQ(b->data.size(), 24U);
    EXPECT_EQ(b->data[0], std::byte{4 * 7});
    EXPECT_EQ(model->find_tensor("c"), nullptr);
    model->release(0);
}

TEST(Safetensors, BundledFolderHoldsTheWeightsOfItsGguf) {
    const auto model = SafetensorsModel::open(bundled("tale-1m"));
    ASSERT_TRUE(model) << model.error().text;
    const auto gguf = GgufFile::open(bundled("tale-1m-f16.gguf"));
    ASSERT_TRUE(gguf);
    EXPECT_EQ(model->where(), bundled("tale-1m/model.safetensors"));
    ASSERT_EQ(model->tensors().size(), gguf->tensors().size());
    const TensorView* ours = model->find_tensor("model.embed_tokens.weight");
    const TensorView* theirs = gguf->find_tensor("token_embd.weight");
    ASSERT_TRUE(ours != nullptr && theirs != nullptr);
    EXPECT_EQ(ours->info.shape, theirs->info.shape);
    const std::byte first = ours->data[0];
    for (std::size_t i = 0; i < model->tensors().size(); ++i) model->release(i);
    EXPECT_EQ(ours->data[0], first);
}

TEST(Safetensors, ScalarsEmptyTensorsAndOtherTypes) {
    const std::string bytes = raw_safetensors(
        R"({"scalar":{"dtype":"F32","shape":[],"data_offsets":[0,4]},)"
        R"("empty":{"dtype":"F32","shape":[3,0],"data_offsets":[4,4]},)"
        R"("ids":{"dtype":"I64","shape":[2],"data_offsets":[4,20]},)"
        R"("fp4":{"dtype":"F4","shape":[3,2],"data_offsets":[20,23]},)"
        R"("new":{"dtype":"Z9","shape":[5],"data_offsets":[23,30],"extra":[{"x":1},null,-2,1.5,"s",true]}})",
        30);
    const auto model = SafetensorsModel::parse(std::as_bytes(std::span(bytes)), "x.st");
    ASSERT_TRUE(model) << model.error().text;
    ASSERT_EQ(model->tensors().size(), 1U);
    EXPECT_EQ(model->tensors()[0].info.name, "scalar");
    EXPECT_EQ(model->tensors()[0].info.elements(), 1);
    ASSERT_EQ(model->unsupported().size(), 4U);
    EXPECT_EQ(model->unsupported()[0].name, "empty");
    EXPECT_THAT(model->unsupported()[0].shape, ElementsAre(3, 0));
    EXPECT_EQ(model->unsupported()[1].dtype, "I64");
    EXPECT_EQ(model->unsupported()[3].dtype, "Z9");
}

TEST(Safetensors, NoTensorsAtAll) {
    const std::string bytes = raw_safetensors("{}", 0);
    EXPECT_TRUE(SafetensorsModel::parse(std::as_bytes(std::span(bytes)), "x.st"));
    EXPECT_HEADER_REFUSED("{}", 3, "the tensors end at byte 0 after the header, the file at 3");
}

TEST(Safetensors, BadLengthOfTheHeader) {
    EXPECT_REFUSED(SafetensorsModel::parse({}, "x.st"), "x.st", "0 bytes are too few");
    std::string bytes;
    put(bytes, std::uint64_t{100'000'001});
    EXPECT_REFUSED(SafetensorsModel::parse(std::as_bytes(std::span(bytes)), "x.st"), "x.st",
                   "a header of 100000001 bytes");
    bytes.clear();
    put(bytes, std::uint64_t{3});
    bytes += "{}";
    EXPECT_REFUSED(SafetensorsModel::parse(std::as_bytes(std::span(bytes)), "x.st"), "x.st",
                   "the header ends at byte 11, file has 10 bytes");
    bytes = "version https://git-lfs.github.com/spec/v1\noid sha256:0\n";
    EXPECT_REFUSED(SafetensorsModel::parse(std::as_bytes(std::span(bytes)), "x.st"), "x.st", "Git LFS pointer");
}

TEST(Safetensors, BadHeaders) {
    EXPECT_HEADER_REFUSED("", 0, "invalid JSON");
    EXPECT_HEADER_REFUSED(std::string("{}\0[", 4), 0, "invalid JSON at byte 2: a zero byte");
    EXPECT_HEADER_REFUSED("[]", 0, "the header is an array, expected an object");
    EXPECT_HEADER_REFUSED("null", 0, "the header is null, expected an object");
    EXPECT_HEADER_REFUSED(R"({"a":)", 0, "invalid JSON at byte");
    EXPECT_HEADER_REFUSED("{\"\xFF\":1}", 0, "invalid JSON at byte");
    EXPECT_HEADER_REFUSED(R"({"a":1})", 0, "tensor 'a': expected an object with dtype, shape and data_offsets");
    EXPECT_HEADER_REFUSED(R"({"a":[]})", 0, "tensor 'a': expected an object");
    EXPECT_HEADER_REFUSED(R"({"a":{}})", 0, "tensor 'a': field 'dtype' is missing");
    EXPECT_HEADER_REFUSED(R"({"a":{"dtype":"F32","shape":[1]}})", 0, "field 'data_offsets' is missing");
    EXPECT_HEADER_REFUSED(R"({"a":{"dtype":7,"shape":[1],"data_offsets":[0,4]}})", 4,
                          "dtype: expected a string, got a number");
    EXPECT_HEADER_REFUSED(R"({"a":{"dtype":"F32","dtype":"F32"}})", 4, "tensor 'a': field 'dtype' occurs twice");
    EXPECT_HEADER_REFUSED(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4,
                          "shape: expected an array of integers of at least 0, got a negative number in it");
    EXPECT_HEADER_REFUSED(R"({"a":{"dtype":"F32","shape":[1.0],"data_offsets":[0,4]}})", 4, "got a fraction in it");
    EXPECT_HEADER_REFUSED(R"({"a":{"dtype":"F32","shape":[[1]],"data_offsets":[0,4]}})", 4, "got an array in it");
    EXPECT_HEADER_REFUSED(R"({"a":{"dtype":"F32","shape":1,"data_offsets":[0,4]}})", 4, "got a number");
    EXPECT_HEADER_REFUSED(R"({"a":{"dtype":"F32","shape":[1e999],"data_offsets":[0,4]}})", 4, "invalid JSON");
    EXPECT_HEADER_REFUSED(R"({"a":{"dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,4]}})", 4,
                          "extent 18446744073709551615 exceeds");
    EXPECT_HEADER_REFUSED(R"({"a":{"dtype":"F32","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,4]}})", 4,
                          "more than 8 dimensions");
    EXPECT_HEADER_REFUSED(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0]}})", 4, "holds 1 numbers, expected 2");
    EXPECT_HEADER_REFUSED(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4,8]}})", 4, "more than 2 numbers");
    EXPECT_HEADER_REFUSED(R"({"":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 4, "an empty name");
    EXPECT_HEADER_REFUSED(R"({"a\n":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 4, "control characters");
    // Nesting in what is skipped costs the parser neither stack nor memory.
    EXPECT_HEADER_REFUSED(R"({"__metadata__":)" + std::string(1'000'000, '['), 0, "invalid JSON at byte");
}

TEST(Safetensors, BadOffsets) {
    const auto one = [](std::string_view shape, std::string_view offsets) {
        return fmt::format(R"({{"a":{{"dtype":"F32","shape":{},"data_offsets":{}}}}})", shape, offsets);
    };
    EXPECT_HEADER_REFUSED(one("[2]", "[0,8]"), 4,
                          "tensor 'a': data ends at byte 8 after the header, the file has 4 there");
    EXPECT_HEADER_REFUSED(one("[2]", "[8,0]"), 8, "tensor 'a': data_offsets [8, 0] run backwards");
    EXPECT_HEADER_REFUSED(one("[2]", "[18446744073709551608,18446744073709551615]"), 8, "data ends at byte");
    EXPECT_HEADER_REFUSED(one("[3]", "[0,8]"), 8, "shape [3] of F32 takes 12 bytes, data_offsets [0, 8] hold 8");
    EXPECT_HEADER_REFUSED(one("[4294967296,4294967296]", "[0,8]"), 8, "overflows 64 bits");
    // 2^62 elements of 4 bytes are 0 modulo 2^64.
    EXPECT_HEADER_REFUSED(one("[4611686018427387904]", "[0,0]"), 0, "overflows 64 bits");
    EXPECT_HEADER_REFUSED(one("[1]", "[4,8]"), 8, "tensor 'a': starts at byte 4 after the header, expected 0");
    EXPECT_HEADER_REFUSED(one("[1]", "[0,4]"), 8, "the tensors end at byte 4 after the header, the file at 8");
    EXPECT_HEADER_REFUSED(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                          R"("b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})",
                          12, "tensors 'a' and 'b' overlap: the first ends at byte 8, the second starts at 4");
    EXPECT_HEADER_REFUSED(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                          R"("a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
                          8, "tensor 'a' occurs twice");
    EXPECT_HEADER_REFUSED(R"({"a":{"dtype":"F4","shape":[3],"data_offsets":[0,1]}})", 1, "takes 2 bytes");
}

class SafetensorsFolder : public ::testing::Test {
protected:
    void SetUp() override {
        write_index(R"({"metadata":{"total_size":12},"weight_map":{"a":"s-1.safetensors","b":"s-2.safetensors"}})");
        folder_.write("s-1.safetensors",
                      raw_safetensors(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 4));
        folder_.write("s-2.safetensors",
                      raw_safetensors(R"({"b":{"dtype":"BF16","shape":[2,2],"data_offsets":[0,8]}})", 8));
    }
    void write_index(std::string_view json) const { folder_.write("model.safetensors.index.json", json); }
    Result<SafetensorsModel> open() const { return SafetensorsModel::open(folder_.path()); }
    std::string index() const { return folder_.file("model.safetensors.index.json"); }
    TemporaryFolder folder_;
};

TEST_F(SafetensorsFolder, ShardsAreOneModel) {
    const auto model = open();
    ASSERT_TRUE(model) << model.error().text;
    EXPECT_EQ(model->where(), index());
    ASSERT_EQ(model->tensors().size(), 2U);
    EXPECT_EQ(model->find_tensor("b")->data[1], std::byte{7});
    model->release(0);
    model->release(1);
    EXPECT_EQ(model->find_tensor("a")->data[1], std::byte{7});
}

TEST_F(SafetensorsFolder, SingleFileIsPreferred) {
    folder_.write("model.safetensors", raw_safetensors(kTwo, 28));
    const auto model = open();
    ASSERT_TRUE(model) << model.error().text;
    EXPECT_EQ(model->where(), folder_.file("model.safetensors"));
}

TEST_F(SafetensorsFolder, IndexDecidesWhereATensorLies) {
    // A second copy of 'a', which the index does not place here, is no part of the model.
    folder_.write("s-2.safetensors", raw_safetensors(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                                                     R"("b":{"dtype":"I8","shape":[1],"data_offsets":[8,9]}})",
                                                     9));
    const auto model = open();
    ASSERT_TRUE(model) << model.error().text;
    ASSERT_EQ(model->tensors().size(), 1U);
    EXPECT_THAT(model->find_tensor("a")->info.shape, ElementsAre(1));
    ASSERT_EQ(model->unsupported().size(), 1U);
    EXPECT_EQ(model->unsupported()[0].name, "b");
}

TEST_F(SafetensorsFolder, MissingAndBrokenShards) {
    write_index(R"({"weight_map":{"a":"s-1.safetensors","b":"s-3.safetensors"}})");
    EXPECT_REFUSED(open(), index(), "shard 's-3.safetensors' (2 of 2) with tensor 'b' is missing from the folder");
    write_index(R"({"weight_map":{"a":"s-1.safetensors","c":"s-2.safetensors"}})");
    EXPECT_REFUSED(open(), index(), "tensor 'c' is not in its shard 's-2.safetensors'");
    folder_.write("s-1.safetensors", "short");
    EXPECT_REFUSED(open(), folder_.file("s-1.safetensors"), "5 bytes are too few");
}

TEST_F(SafetensorsFolder, BadIndexes) {
    const auto refused = [&](std::string_view json, std::string_view part) {
        write_index(json);
        EXPECT_REFUSED(open(), index(), std::string(part));
    };
    refused(R"({"metadata":{}})", "'weight_map' is missing");
    refused(R"({"weight_map":{}})", "'weight_map' is empty");
    refused(R"({"weight_map":[]})", "weight_map: expected an object, got an array");
    refused(R"({"weight_map":7})", "weight_map: expected an object, got a number");
    refused(R"([{"weight_map":{}}])", "the index is an array, expected an object");
    refused(R"({"weight_map":{"a":7}})", "tensor 'a': expected the name of a shard, got a number");
    refused(R"({"weight_map":{"a":{}}})", "tensor 'a': expected the name of a shard, got an object");
    refused(R"({"weight_map":{"a":"s-1.safetensors","a":"s-1.safetensors"}})", "tensor 'a' occurs twice");
    refused(R"({"weight_map":{"a":"x"},"weight_map":{"a":"x"}})", "'weight_map' occurs twice");
    refused(R"({"weight_map":{"a":"s-1.safetensors")", "invalid JSON");
    for (const std::string_view name :
         {"../s-1.safetensors", "/etc/passwd", "", ".", "..", "a/b", "a\\\\b", "a\\u0000b"})
        refused(fmt::format(R"({{"weight_map":{{"a":"{}"}}}})", name), "is not a plain file name");
}

TEST(Safetensors, FoldersWithoutWeights) {
    const TemporaryFolder folder;
    EXPECT_REFUSED(SafetensorsModel::open(folder.path()), folder.path(),
                   "holds neither model.safetensors nor model.safetensors.index.json");
    EXPECT_REFUSED(SafetensorsModel::open(folder.file("no")), folder.path(), "no such folder");
    EXPECT_REFUSED(SafetensorsModel::open(folder.write("file", "x")), folder.path(), "not a folder");
}

}  // namespace
}  // namespace frontier

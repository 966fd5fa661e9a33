#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>

#include "formats/gguf.h"
#include "raw_files.h"

namespace frontier {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::size_t files_in(const std::string& folder) {
    std::size_t count = 0;
    for ([[maybe_unused]] const auto& file : std::filesystem::directory_iterator(folder)) ++count;
    return count;
}

class GgufWrite : public ::testing::Test {
protected:
    GgufWrite() {
        writer_.add_string("general.architecture", "llama");
        writer_.add_uint32("llama.block_count", 3);
        writer_.add_float32("llama.eps", 1e-5F);
        writer_.add_bool("tokenizer.ggml.add_bos_token", true);
        writer_.add_strings("tokenizer.ggml.tokens", {"", "\xE2\x96\x81the", std::string("\0", 1)});
        writer_.add_floats("tokenizer.ggml.scores", {0.0F, -1.5F, -1e9F});
        writer_.add_int32s("tokenizer.ggml.token_type", {3, 1, -6});
        add("a", DType::kF32, {3});  // 12 bytes: needs padding
        add("b", DType::kQ4_0, {5, 64});
        add("c", DType::kQ6_K, {2, 2, 1, 256});
        add("d", DType::kBF16, {1, 1});  // 2 bytes at the end of the file
    }
    void add(std::string name, DType type, std::vector<std::int64_t> shape) {
        infos_.push_back({std::move(name), type, std::move(shape)});
        writer_.add_tensor(infos_.back());
    }
    Result<std::span<const std::byte>> produce(std::size_t index) {
        data_.assign(static_cast<std::size_t>(infos_[index].bytes()), static_cast<std::byte>(index + 1));
        return std::span<const std::byte>(data_);
    }
    GgufWriter::Producer producer() {
        return [this](std::size_t index) { return produce(index); };
    }

    TemporaryFolder folder_;
    GgufWriter writer_;
    std::vector<TensorInfo> infos_;
    std::vector<std::byte> data_;
};

TEST_F(GgufWrite, ReaderGetsBackWhatWasWritten) {
    const std::string path = folder_.file("out.gguf");
    const Status written = writer_.write(path, producer());
    ASSERT_TRUE(written) << written.error().text;
    EXPECT_EQ(files_in(folder_.path()), 1U);
    EXPECT_EQ(std::filesystem::file_size(path) % 32, 0U);
    const auto file = GgufFile::open(path);
    ASSERT_TRUE(file) << file.error().text;
    EXPECT_EQ(file->version(), 3U);
    EXPECT_EQ(file->metadata().front().first, "general.architecture");
    EXPECT_EQ(file->get_string("general.architecture").value(), "llama");
    EXPECT_EQ(file->get_int("llama.block_count").value(), 3);
    EXPECT_EQ(file->get_number("llama.eps").value(), static_cast<double>(1e-5F));
    EXPECT_EQ(file->get_bool("tokenizer.ggml.add_bos_token").value(), true);
    EXPECT_THAT(*file->get_strings("tokenizer.ggml.tokens").value(),
                ElementsAre("", "\xE2\x96\x81the", std::string("\0", 1)));
    EXPECT_THAT(*file->get_floats("tokenizer.ggml.scores").value(), ElementsAre(0.0F, -1.5F, -1e9F));
    EXPECT_THAT(*file->get_ints("tokenizer.ggml.token_type").value(), ElementsAre(3, 1, -6));
    ASSERT_EQ(file->tensors().size(), infos_.size());
    for (std::size_t i = 0; i < infos_.size(); ++i) {
        const TensorView& tensor = file->tensors()[i];
        EXPECT_EQ(tensor.info.name, infos_[i].name);
        EXPECT_EQ(tensor.info.type, infos_[i].type);
        EXPECT_EQ(tensor.info.shape, infos_[i].shape);
        ASSERT_EQ(tensor.data.size(), static_cast<std::size_t>(infos_[i].bytes()));
        for (const std::byte b : tensor.data) ASSERT_EQ(b, static_cast<std::byte>(i + 1));
    }
}

TEST_F(GgufWrite, ReplacesAFileAndFollowsALink) {
    const std::string target = folder_.write("target.gguf", "old");
    std::filesystem::create_symlink("target.gguf", folder_.file("link.gguf"));
    ASSERT_TRUE(writer_.write(folder_.file("link.gguf"), producer()));
    EXPECT_TRUE(std::filesystem::is_symlink(folder_.file("link.gguf")));
    EXPECT_TRUE(GgufFile::open(target));
    EXPECT_EQ(files_in(folder_.path()), 2U);
}

TEST_F(GgufWrite, FailedProducerLeavesTheOldFile) {
    const std::string path = folder_.write("out.gguf", "old");
    const Status status = writer_.write(path, [this](std::size_t index) -> Result<std::span<const std::byte>> {
        if (index == 2) return fail(ErrorCode::kInterrupted, "interrupted");
        return produce(index);
    });
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ErrorCode::kInterrupted);
    EXPECT_EQ(read_file(path), "old");
    EXPECT_EQ(files_in(folder_.path()), 1U);
}

TEST_F(GgufWrite, ProducerOfTheWrongSizeIsAnError) {
    const Status status = writer_.write(folder_.file("out.gguf"),
                                        [this](std::size_t index) { return index == 1 ? produce(0) : produce(index); });
    ASSERT_FALSE(status);
    EXPECT_THAT(status.error().text, HasSubstr("tensor 'b' has 180 bytes, 12 were produced"));
    EXPECT_EQ(files_in(folder_.path()), 0U);
}

TEST_F(GgufWrite, PlacesThatCannotBeWritten) {
    const Status nowhere = writer_.write(folder_.file("no/such/folder.gguf"), producer());
    ASSERT_FALSE(nowhere);
    EXPECT_EQ(nowhere.error().code, ErrorCode::kFailed);
    EXPECT_THAT(nowhere.error().text, HasSubstr("No such file or directory"));
    // Renaming onto these would replace the device or the folder.
    for (const std::string& place : {std::string("/dev/null"), folder_.path()}) {
        const Status status = writer_.write(place, producer());
        ASSERT_FALSE(status);
        EXPECT_THAT(status.error().text, HasSubstr("not a regular file"));
    }
    struct stat info{};
    ASSERT_EQ(::stat("/dev/null", &info), 0);
    EXPECT_TRUE(S_ISCHR(info.st_mode));
}

// A limit on the size of files stands in for a full disk: the system refuses bytes in the middle of the work.
TEST_F(GgufWrite, RefusedBytesLeaveNothingBehind) {
    struct rlimit old_limit{};
    ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old_limit), 0);
    const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
    const struct rlimit limit{600, old_limit.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
    const Status status = writer_.write(folder_.file("out.gguf"), producer());
    ::setrlimit(RLIMIT_FSIZE, &old_limit);
    std::signal(SIGXFSZ, old_handler);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ErrorCode::kFailed);
    EXPECT_THAT(status.error().text, HasSubstr("File too large"));
    EXPECT_EQ(files_in(folder_.path()), 0U);
}

TEST_F(GgufWrite, WhatTheReaderWouldRefuseIsNotWritten) {
    const auto refused = [&](GgufWriter writer, std::string_view part) {
        const Status status = writer.write(folder_.file("out.gguf"), producer());
        ASSERT_FALSE(status) << part;
        EXPECT_THAT(status.error().text, HasSubstr(part));
        EXPECT_EQ(files_in(folder_.path()), 0U);
    };
    const auto with_tensor = [&](std::string name, DType type, std::vector<std::int64_t> shape) {
        GgufWriter writer = writer_;
        writer.add_tensor({std::move(name), type, std::move(shape)});
        return writer;
    };
    GgufWriter twice = writer_;
    twice.add_uint32("llama.block_count", 4);
    refused(twice, "bad or repeated metadata key 'llama.block_count'");
    GgufWriter aligned = writer_;
    aligned.add_uint32("general.alignment", 64);
    refused(aligned, "general.alignment");
    refused(with_tensor("a", DType::kF32, {1}), "tensor 'a' was added twice");
    refused(with_tensor("", DType::kF32, {1}), "the name is empty");
    refused(with_tensor("e", DType::kF32, {}), "1 to 4 dimensions");
    refused(with_tensor("e", DType::kF32, {2, 0}), "shape [2, 0] is empty or overflows");
    refused(with_tensor("e", DType::kF32, {INT64_MAX, 2}), "is empty or overflows");
    refused(with_tensor("e", DType::kQ4_K, {2, 128}), "rows of 128 elements do not fill blocks of Q4_K");
}

}  // namespace
}  // namespace frontier

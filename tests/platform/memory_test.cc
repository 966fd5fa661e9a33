#include "platform/memory.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "platform/map_faults.h"
#include "platform/topology.h"

namespace frontier {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::uintptr_t address(const void* pointer) {
    return reinterpret_cast<std::uintptr_t>(pointer);
}

TEST(AlignedBuffer, ZeroedAlignedWritable) {
    for (const std::size_t size : {1UL, 63UL, 64UL, 65UL, 4096UL, (4UL << 20) - 1, 4UL << 20, (5UL << 20) + 17}) {
        Result<AlignedBuffer> buffer = AlignedBuffer::allocate(size);
        ASSERT_TRUE(buffer.has_value()) << buffer.error().text;
        EXPECT_EQ(buffer->size_bytes(), size);
        EXPECT_EQ(buffer->bytes().size(), size);
        EXPECT_EQ(address(buffer->data()) % 64, 0U) << size;
        EXPECT_TRUE(size < (4UL << 20) || address(buffer->data()) % (2UL << 20) == 0) << size;
        EXPECT_TRUE(std::all_of(buffer->bytes().begin(), buffer->bytes().end(),
                                [](std::byte value) { return value == std::byte{0}; }));
        std::fill(buffer->bytes().begin(), buffer->bytes().end(), std::byte{0xA5});
        EXPECT_EQ(buffer->bytes().back(), std::byte{0xA5});
    }
}

TEST(AlignedBuffer, EmptyHoldsNothing) {
    const AlignedBuffer buffer = AlignedBuffer::allocate(0).value();
    EXPECT_EQ(buffer.size_bytes(), 0U);
    EXPECT_EQ(buffer.data(), nullptr);
}

TEST(AlignedBuffer, MovesOwnership) {
    AlignedBuffer first = AlignedBuffer::allocate(100).value();
    AlignedBuffer second = AlignedBuffer::allocate(8 << 20).value();
    std::byte* small = first.data();
    AlignedBuffer third = std::move(first);
    EXPECT_EQ(first.data(), nullptr);  // NOLINT(bugprone-use-after-move): the moved-from state is the subject
    EXPECT_EQ(third.data(), small);
    second = std::move(third);
    EXPECT_EQ(second.data(), small);
    EXPECT_EQ(second.size_bytes(), 100U);
    second.data()[99] = std::byte{1};
}

TEST(AlignedBuffer, RefusesWhatIsNotThere) {
    const auto available = static_cast<std::size_t>(memory_state().available_bytes);
    for (const std::size_t size : {available * 2, std::size_t{1} << 50, std::numeric_limits<std::size_t>::max() / 2,
                                   std::numeric_limits<std::size_t>::max()}) {
        const Result<AlignedBuffer> buffer = AlignedBuffer::allocate(size);
        ASSERT_FALSE(buffer.has_value()) << size;
        EXPECT_EQ(buffer.error().code, ErrorCode::kDoesNotFit);
        EXPECT_THAT(buffer.error().text, HasSubstr(std::to_string(size)));
        EXPECT_THAT(buffer.error().text, HasSubstr("available"));
    }
}

class MappedFileTest : public ::testing::Test {
protected:
    void SetUp() override {
        folder_ = ::testing::TempDir() + "memory_test_" + std::to_string(getpid()) + "_" +
                  ::testing::UnitTest::GetInstance()->current_test_info()->name();
        std::filesystem::create_directories(folder_);
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }

    std::string write(const std::string& name, std::size_t size) {
        std::ofstream file(folder_ + "/" + name, std::ios::binary);
        for (std::size_t i = 0; i < size; ++i) file.put(static_cast<char>(i % 251));
        return folder_ + "/" + name;
    }
    void expect_error(const std::string& path, const std::string& reason) {
        const Result<MappedFile> file = MappedFile::open(path);
        ASSERT_FALSE(file.has_value()) << path;
        EXPECT_EQ(file.error().code, ErrorCode::kBadInput);
        EXPECT_THAT(file.error().text, HasSubstr(path));
        EXPECT_THAT(file.error().text, HasSubstr(reason));
        EXPECT_THAT(file.error().text, Not(HasSubstr("\n")));
    }

    std::string folder_;
};

// Of the mapping that begins at `start`; 0 where the kernel does not tell.
std::size_t resident_bytes_of_mapping(const void* start) {
    std::ifstream maps("/proc/self/smaps");
    bool here = false;
    for (std::string line; std::getline(maps, line);) {
        std::uintptr_t begin = 0;
        std::uintptr_t end = 0;
        if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2) here = begin == address(start);
        std::size_t kib = 0;
        if (here && std::sscanf(line.c_str(), "Rss: %zu kB", &kib) == 1) return kib << 10;
    }
    return 0;
}

TEST_F(MappedFileTest, IdentityIsOfTheFileAndItsState) {
    const std::string path = write("a", 1000);
    const auto identity = [&](const std::string& of) { return MappedFile::open(of)->identity(100); };
    const std::string before = identity(path);
    EXPECT_EQ(identity(path), before);
    EXPECT_EQ(identity(folder_ + "/./a"), before);  // the canonical path
    EXPECT_NE(MappedFile::open(path)->identity(99), before);
    EXPECT_EQ(MappedFile::open(path)->identity(5000), MappedFile::open(path)->identity(1000));
    EXPECT_NE(identity(write("b", 1000)), before);  // another file of the same bytes
    const auto modified = std::filesystem::last_write_time(path);
    std::filesystem::last_write_time(path, modified - std::chrono::hours(1));
    EXPECT_NE(identity(path), before);
    std::filesystem::last_write_time(path, modified);  // the time of the last change (ctime) cannot be put back
    EXPECT_NE(identity(path), before);
}

TEST_F(MappedFileTest, ReadsTheBytes) {
    const std::string path = write("a", 10001);
    Result<MappedFile> opened = MappedFile::open(path);
    ASSERT_TRUE(opened.has_value()) << opened.error().text;
    MappedFile file = std::move(*opened);
    EXPECT_EQ(file.path(), path);
    ASSERT_EQ(file.bytes().size(), 10001U);
    for (std::size_t i = 0; i < 10001; ++i) ASSERT_EQ(file.bytes()[i], static_cast<std::byte>(i % 251)) << i;
}

TEST_F(MappedFileTest, ReleaseDropsWholePagesAndBytesComeBack) {
    const std::string path = write("a", 1 << 20);
    const MappedFile file = MappedFile::open(path).value();
    unsigned sum = 0;
    for (const std::byte value : file.bytes()) sum += std::to_integer<unsigned>(value);
    const std::size_t before = resident_bytes_of_mapping(file.bytes().data());
    if (before == 0) GTEST_SKIP() << "no smaps here";
    file.release(0, file.bytes().size());
    EXPECT_LT(resident_bytes_of_mapping(file.bytes().data()), before / 8);
    unsigned again = 0;
    for (const std::byte value : file.bytes()) again += std::to_integer<unsigned>(value);
    EXPECT_EQ(sum, again);
}

TEST_F(MappedFileTest, ReleaseOutsideTheFileIsHarmless) {
    const MappedFile file = MappedFile::open(write("a", 5000)).value();
    constexpr std::size_t kHuge = std::numeric_limits<std::size_t>::max();
    for (const std::size_t offset : {std::size_t{0}, std::size_t{1}, std::size_t{4096}, std::size_t{4999},
                                     std::size_t{5000}, std::size_t{1} << 40, kHuge}) {
        for (const std::size_t length : {std::size_t{0}, std::size_t{1}, std::size_t{5000}, kHuge}) {
            file.release(offset, length);
            file.will_need(offset, length);
        }
    }
    for (std::size_t i = 0; i < 5000; ++i) ASSERT_EQ(file.bytes()[i], static_cast<std::byte>(i % 251)) << i;
}

TEST_F(MappedFileTest, Errors) {
    expect_error(folder_ + "/missing", "No such file or directory");
    expect_error(folder_, "directory");
    expect_error(write("empty", 0), "empty");
    expect_error(write("plain", 5) + "/below", "Not a directory");
    expect_error("/dev/null", "regular file");
    ASSERT_EQ(mkfifo((folder_ + "/fifo").c_str(), 0600), 0);
    expect_error(folder_ + "/fifo", "regular file");  // and does not hang
    if (geteuid() != 0) {
        const std::string secret = write("secret", 5);
        ASSERT_EQ(chmod(secret.c_str(), 0), 0);
        expect_error(secret, "Permission denied");
    }
}

void say_and_exit(const char* path) {
    std::fprintf(stderr, "fault in %s", path != nullptr ? path : "?");
    std::_Exit(3);
}

// The second of two mapped files loses all but its first page.
TEST_F(MappedFileTest, AFileCutShortEndsTheProgramWithItsName) {
    const std::string path = write("cut", 40000);
    auto other = MappedFile::open(write("other", 40000));
    auto file = MappedFile::open(path);
    ASSERT_TRUE(other.has_value() && file.has_value());
    MappedFile kept = std::move(*file);
    std::filesystem::resize_file(path, 4096);
    const auto read_last = [&] {
        on_map_fault(say_and_exit);
        const volatile std::byte* bytes = kept.bytes().data();
        std::_Exit(static_cast<int>(bytes[39999]) & 0);
    };
    EXPECT_EXIT(read_last(), ::testing::ExitedWithCode(3), "^fault in [^\n]*cut$");
}

TEST_F(MappedFileTest, OtherBusErrorsStayWhatTheyAre) {
    auto file = MappedFile::open(write("plain", 100));
    ASSERT_TRUE(file.has_value());
    const auto raise_elsewhere = [] {
        on_map_fault(say_and_exit);
        std::raise(SIGBUS);
        std::raise(SIGBUS);
        std::_Exit(0);
    };
    EXPECT_EXIT(raise_elsewhere(), ::testing::KilledBySignal(SIGBUS), "");
}

}  // namespace
}  // namespace frontier

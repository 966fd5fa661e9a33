// The file of packed weights: what is kept comes back bit for bit, and whatever happens to the file, it counts as
// absent and is written anew.
#include "backend/pack_cache.h"

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>

#include "backend/cpu_weights.h"
#include "backend_test_data.h"

namespace frontier {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

std::string read_file(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void write_file(const fs::path& path, std::string_view bytes) {
    std::ofstream(path, std::ios::binary | std::ios::trunc).write(bytes.data(), std::ssize(bytes));
}

std::span<const std::byte> as_bytes(std::string_view text) {
    return std::as_bytes(std::span(text));
}

class PackCacheTest : public testing::Test {
protected:
    PackCacheTest() {
        std::string name = (fs::temp_directory_path() / "frontier_pack_XXXXXX").string();
        root_ = ::mkdtemp(name.data());
        tensors_.push_back(random_tensor("blk.0.attn_q.weight", DType::kQ4_0, {40, 64}, 1));
        tensors_.push_back(random_tensor("blk.0.ffn_up.weight", DType::kQ6_K, {33, 512}, 2));
        tensors_.push_back(random_tensor("output.weight", DType::kF16, {17, 5}, 3));
    }
    ~PackCacheTest() override {
        std::error_code ignored;
        fs::remove_all(root_, ignored);
    }

    std::string folder() const { return (root_ / "packed").string(); }
    PackCacheOptions options() const {
        return {.folder = folder(), .model = "/m.gguf", .sources = "/m.gguf size 7\n", .limit_bytes = 1 << 20};
    }

    // What a load does: all matrices through the cache, then store(). Their packed bytes are checked.
    PackCache::Outcome load(const PackCacheOptions& options) const {
        ThreadPool pool(2);
        PackCache cache(options);
        std::vector<PackedMatrix> matrices;
        for (const TestTensor& tensor : tensors_) {
            const KernelTable& kernels = kernel_table(Isa::kScalar);
            auto matrix = pack_matrix(tensor.view(), options.compute, kernels, pool, true, &cache);
            auto fresh = pack_matrix(tensor.view(), options.compute, kernels, pool);
            EXPECT_TRUE(matrix.has_value() && fresh.has_value());
            EXPECT_EQ(matrix->packed_bytes(), fresh->packed_bytes());
            EXPECT_EQ(std::memcmp(matrix->packed, fresh->packed, static_cast<std::size_t>(fresh->packed_bytes())), 0);
            matrices.push_back(std::move(*matrix));
        }
        cache.store();
        return cache.outcome();
    }
    // Written by one load, with every check that a second one finds it.
    fs::path stored() const {
        EXPECT_EQ(load(options()), PackCache::Outcome::kWritten);
        EXPECT_EQ(load(options()), PackCache::Outcome::kUsed);
        return PackCache(options()).path();
    }

    fs::path root_;
    std::vector<TestTensor> tensors_;
};

TEST_F(PackCacheTest, SecondLoadMapsWhatTheFirstPacked) {
    const fs::path path = stored();
    struct stat info{};
    ASSERT_EQ(::stat(path.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 07777U, 0600U);
    ASSERT_EQ(::stat(folder().c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 07777U, 0700U);
    const auto directory = parse_pack_file(as_bytes(read_file(path)));
    ASSERT_TRUE(directory.has_value()) << directory.error().text;
    EXPECT_EQ(directory->matrices.size(), tensors_.size());
    for (const auto& [name, entry] : directory->matrices) EXPECT_EQ(entry.offset % 64, 0) << name;
}

TEST_F(PackCacheTest, OtherSourcesModelsAndTypesAreOthers) {
    stored();
    PackCacheOptions other = options();
    other.sources = "/m.gguf size 8\n";  // takes the place of the first
    EXPECT_EQ(load(other), PackCache::Outcome::kWritten);
    EXPECT_EQ(load(other), PackCache::Outcome::kUsed);
    EXPECT_EQ(load(options()), PackCache::Outcome::kWritten);
    other = options();
    other.compute = ComputeType::kBF16;
    EXPECT_EQ(load(other), PackCache::Outcome::kWritten);
    other.model = "/n.gguf";
    EXPECT_EQ(load(other), PackCache::Outcome::kWritten);
    EXPECT_EQ(load(options()), PackCache::Outcome::kUsed);
    other = options();
    other.compute = ComputeType::kF32;  // packs as kAuto does
    EXPECT_EQ(load(other), PackCache::Outcome::kUsed);
}

TEST_F(PackCacheTest, EveryChangedByteOfDirectoryAndTrailerIsFound) {
    std::string bytes = read_file(stored());
    PackTrailer trailer;
    std::memcpy(&trailer, bytes.data() + bytes.size() - sizeof trailer, sizeof trailer);
    for (std::size_t i = bytes.size() - sizeof trailer - trailer.directory_bytes; i < bytes.size(); ++i) {
        for (const int bit : {0, 3, 7}) {
            bytes[i] = static_cast<char>(bytes[i] ^ 1 << bit);
            EXPECT_FALSE(parse_pack_file(as_bytes(bytes)).has_value()) << "byte " << i << " bit " << bit;
            bytes[i] = static_cast<char>(bytes[i] ^ 1 << bit);
        }
    }
    EXPECT_TRUE(parse_pack_file(as_bytes(bytes)).has_value());
}

TEST_F(PackCacheTest, OtherVersionsAreNamed) {
    std::string bytes = read_file(stored());
    const std::size_t at = bytes.size() - sizeof(PackTrailer);
    for (const std::size_t field : {offsetof(PackTrailer, format_version), offsetof(PackTrailer, packing_version)}) {
        bytes[at + field] = static_cast<char>(bytes[at + field] + 1);
        const auto parsed = parse_pack_file(as_bytes(bytes));
        ASSERT_FALSE(parsed.has_value());
        EXPECT_THAT(parsed.error().text, HasSubstr("another version"));
        bytes[at + field] = static_cast<char>(bytes[at + field] - 1);
    }
}

TEST_F(PackCacheTest, EveryCutIsFound) {
    const std::string bytes = read_file(stored());
    for (std::size_t size = 0; size < bytes.size(); ++size)
        EXPECT_FALSE(parse_pack_file(as_bytes(bytes).first(size)).has_value()) << size;
    EXPECT_FALSE(parse_pack_file(as_bytes(bytes + "x")).has_value());
}

TEST_F(PackCacheTest, DamagedFilesAreWrittenAnew) {
    const fs::path path = stored();
    const std::string whole = read_file(path);
    for (std::size_t at = 0; at < whole.size(); at += whole.size() / 97) {  // panels, padding, directory
        std::string bytes = whole;
        bytes[at] = static_cast<char>(bytes[at] ^ 0x10);
        write_file(path, bytes);
        const PackCache::Outcome outcome = load(options());
        if (outcome == PackCache::Outcome::kUsed) {  // padding: nobody reads it
            const auto directory = parse_pack_file(as_bytes(bytes));
            ASSERT_TRUE(directory.has_value());
            for (const auto& [name, entry] : directory->matrices) {
                const auto position = static_cast<std::int64_t>(at);
                EXPECT_FALSE(position >= entry.offset && position < entry.offset + entry.bytes) << name << " " << at;
            }
        } else {
            EXPECT_EQ(outcome, PackCache::Outcome::kWritten);
            EXPECT_EQ(read_file(path), whole);
        }
    }
    for (const std::size_t size : {std::size_t{0}, std::size_t{1}, whole.size() / 2, whole.size() - 1}) {
        write_file(path, whole.substr(0, size));
        EXPECT_EQ(load(options()), PackCache::Outcome::kWritten) << size;
        EXPECT_EQ(load(options()), PackCache::Outcome::kUsed) << size;
    }
}

TEST_F(PackCacheTest, LyingDirectoriesAreRefused) {
    PackEntry good{.type = DType::kQ4_0, .rows = 40, .cols = 64, .offset = 64};
    const auto parse = [](const PackEntry& entry) {
        const PackDirectory directory{"x", {{"a", entry}}};
        constexpr std::int64_t kPanels = 64 + 3 * 576;  // three panels of 16 rows, each row 2 blocks of 18 bytes
        return parse_pack_file(as_bytes(std::string(kPanels, 'p') + pack_file_end(directory, kPanels)));
    };
    const auto parsed = parse(good);
    ASSERT_TRUE(parsed.has_value()) << parsed.error().text;
    EXPECT_EQ(parsed->matrices.at("a").bytes, packed_matrix_bytes(DType::kQ4_0, 40, 64));
    const auto refused = [&](auto change) {
        PackEntry bad = good;
        change(bad);
        EXPECT_FALSE(parse(bad).has_value()) << bad.rows << " " << bad.cols << " " << bad.offset;
    };
    for (const std::int64_t offset : {-64L, 32L, 65L, 128L, 1L << 40, INT64_MAX - 63, INT64_MIN})
        refused([&](PackEntry& bad) { bad.offset = offset; });
    for (const std::int64_t rows : {-1L, 0L, 49L, 1L << 40, 1L << 41, INT64_MAX, INT64_MIN})
        refused([&](PackEntry& bad) { bad.rows = rows; });
    for (const std::int64_t cols : {-32L, 0L, 1L, 65L, 96L, 1L << 40, 1L << 62, INT64_MIN})
        refused([&](PackEntry& bad) { bad.cols = cols; });
    refused([](PackEntry& bad) { bad.type = DType::kQ8_0; });
}

TEST_F(PackCacheTest, OtherTensorsAreNotServed) {
    stored();
    ThreadPool pool(1);
    PackCache cache(options());
    const auto find = [&](const std::string& name, DType type, std::int64_t rows, std::int64_t cols) {
        PackedMatrix wanted;
        wanted.name = name;
        wanted.type = type;
        wanted.rows = rows;
        wanted.cols = cols;
        return cache.find(wanted, pool) != nullptr;
    };
    EXPECT_TRUE(find("blk.0.attn_q.weight", DType::kQ4_0, 40, 64));
    EXPECT_FALSE(find("blk.0.attn_k.weight", DType::kQ4_0, 40, 64));
    EXPECT_FALSE(find("blk.0.attn_q.weight", DType::kIQ4_NL, 40, 64));  // blocks of the same size
    EXPECT_FALSE(find("blk.0.attn_q.weight", DType::kQ4_0, 41, 64));
    EXPECT_FALSE(find("blk.0.attn_q.weight", DType::kQ4_0, 40, 32));
}

TEST_F(PackCacheTest, WritersAndReadersAtOnce) {
    std::vector<std::thread> threads;
    std::atomic<int> unavailable{0};
    for (int i = 0; i < 8; ++i) {
        threads.emplace_back([&] {
            for (int repeat = 0; repeat < 5; ++repeat)
                unavailable += load(options()) == PackCache::Outcome::kUnavailable ? 1 : 0;
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(unavailable, 0);
    EXPECT_EQ(load(options()), PackCache::Outcome::kUsed);
    EXPECT_EQ(std::distance(fs::directory_iterator(folder()), fs::directory_iterator()), 1);
}

TEST_F(PackCacheTest, LeastRecentlyUsedFilesMakeRoom) {
    const fs::path first = stored();
    PackCacheOptions second = options();
    second.model = "/second.gguf";
    second.limit_bytes = static_cast<std::int64_t>(fs::file_size(first)) * 5 / 2;
    EXPECT_EQ(load(second), PackCache::Outcome::kWritten);
    const auto age = [](const fs::path& path, std::chrono::hours hours) {
        fs::last_write_time(path, fs::file_time_type::clock::now() - hours);
    };
    age(PackCache(second).path(), std::chrono::hours(2));
    age(first, std::chrono::hours(3));
    EXPECT_EQ(load(options()), PackCache::Outcome::kUsed);  // now the second is the older
    write_file(folder() + "/0.pack.part1", "left by a killed process");
    age(folder() + "/0.pack.part1", std::chrono::hours(2));
    write_file(folder() + "/0.pack.part2", "being written");
    write_file(folder() + "/note", "not ours");
    PackCacheOptions third = second;
    third.model = "/third.gguf";
    EXPECT_EQ(load(third), PackCache::Outcome::kWritten);
    EXPECT_TRUE(fs::exists(first));
    EXPECT_FALSE(fs::exists(PackCache(second).path()));
    EXPECT_TRUE(fs::exists(PackCache(third).path()));
    EXPECT_FALSE(fs::exists(folder() + "/0.pack.part1"));
    EXPECT_TRUE(fs::exists(folder() + "/0.pack.part2"));
    EXPECT_TRUE(fs::exists(folder() + "/note"));
    third.limit_bytes = 1000;  // less than one file
    third.sources = "another state\n";
    EXPECT_EQ(load(third), PackCache::Outcome::kUnavailable);
}

TEST_F(PackCacheTest, FoldersThatOthersWriteToAreLeftAlone) {
    fs::create_directory(folder());
    ::chmod(folder().c_str(), 0777);
    EXPECT_EQ(load(options()), PackCache::Outcome::kUnavailable);
    EXPECT_TRUE(fs::is_empty(folder()));
    fs::remove(folder());
    write_file(folder(), "a file");
    EXPECT_EQ(load(options()), PackCache::Outcome::kUnavailable);
    fs::remove(folder());
    fs::create_directory(root_ / "elsewhere");
    fs::create_symlink(root_ / "elsewhere", folder());
    EXPECT_EQ(load(options()), PackCache::Outcome::kUnavailable);
}

}  // namespace
}  // namespace frontier

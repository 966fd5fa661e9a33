#include "measure/roofline.h"

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include "base/rng.h"
#include "platform/topology.h"

namespace frontier {
namespace {

using ::testing::HasSubstr;

Roofline sample() {
    Roofline roofline;
    roofline.machine = machine_key();
    roofline.bandwidth = {
        {1, "L2", 1 << 18, 60}, {1, "DRAM", 1 << 28, 10}, {2, "DRAM", 1 << 28, 18}, {4, "DRAM", 1 << 28, 25}};
    roofline.arithmetic = {{Isa::kScalar, "f32_fma", 1, 20},
                           {Isa::kAvx2, "int8_dot", 1, 100},
                           {Isa::kAvx2, "int8_dot", 4, 350},
                           {Isa::kAmx, "bf16_tile", 1, 3000}};
    return roofline;
}

TEST(Roofline, BandwidthOfMeasuredCountsOnly) {
    const Roofline roofline = sample();
    EXPECT_EQ(roofline.read_gb_per_s(0), 0);
    EXPECT_EQ(roofline.read_gb_per_s(1), 10);
    EXPECT_EQ(roofline.read_gb_per_s(2), 18);
    EXPECT_EQ(roofline.read_gb_per_s(3), 0);  // between two measured ones: unknown
    EXPECT_EQ(roofline.read_gb_per_s(4), 25);
    EXPECT_EQ(roofline.read_gb_per_s(100), 25);  // no faster than the largest
    EXPECT_EQ(Roofline().read_gb_per_s(1), 0);
}

TEST(Roofline, ArithmeticGrowsWithThreadsUpToTheMeasuredLimit) {
    const Roofline roofline = sample();
    EXPECT_EQ(roofline.gflops(Isa::kAvx2, "int8_dot", 1), 100);
    EXPECT_EQ(roofline.gflops(Isa::kAvx2, "int8_dot", 2), 200);
    EXPECT_EQ(roofline.gflops(Isa::kAvx2, "int8_dot", 4), 350);
    EXPECT_EQ(roofline.gflops(Isa::kAvx2, "int8_dot", 9), 350);
    EXPECT_EQ(roofline.gflops(Isa::kAvx2, "f32_fma", 1), 0);
    EXPECT_EQ(roofline.gflops(Isa::kAvx512, "int8_dot", 1), 0);
}

void expect_equal(const Roofline& a, const Roofline& b) {
    EXPECT_EQ(dump_json(roofline_to_json(a)), dump_json(roofline_to_json(b)));
}

TEST(RooflineJson, RoundTripsAndLeadsWithTheSummary) {
    const Json json = roofline_to_json(sample());
    EXPECT_EQ(json["read_gb_per_s"], 25.0);
    EXPECT_DOUBLE_EQ(json["avx2_int8_tops"].get<double>(), 0.35);
    EXPECT_DOUBLE_EQ(json["scalar_f32_tflops"].get<double>(), 0.02);
    EXPECT_DOUBLE_EQ(json["amx_bf16_tflops"].get<double>(), 3);
    EXPECT_FALSE(json.contains("avx512_f32_tflops"));
    const Result<Roofline> back = roofline_from_json(json, "test");
    ASSERT_TRUE(back.has_value()) << back.error().text;
    expect_equal(*back, sample());
}

TEST(RooflineJson, RefusesWhatItDidNotWrite) {
    const auto refuse = [](const auto& change) {
        Json json = roofline_to_json(sample());
        change(json);
        const Result<Roofline> back = roofline_from_json(json, "cache.json");
        ASSERT_FALSE(back.has_value()) << dump_json(json);
        EXPECT_EQ(back.error().code, ErrorCode::kBadInput);
        EXPECT_THAT(back.error().text, HasSubstr("cache.json"));
    };
    refuse([](Json& json) { json = Json::array(); });
    refuse([](Json& json) { json = 5; });
    refuse([](Json& json) { json["version"] = 999; });
    refuse([](Json& json) { json.erase("machine"); });
    refuse([](Json& json) { json["bandwidth"] = "much"; });
    refuse([](Json& json) { json["bandwidth"] = Json::array(); });
    refuse([](Json& json) { json["bandwidth"][0] = 7; });
    refuse([](Json& json) { json["bandwidth"][0]["gb_per_s"] = -1; });
    refuse([](Json& json) { json["bandwidth"][0]["gb_per_s"] = 1e300; });
    refuse([](Json& json) { json["bandwidth"][0]["level"] = "L9"; });
    refuse([](Json& json) { json["bandwidth"][0]["threads"] = 0; });
    refuse([](Json& json) { json["bandwidth"][0]["threads"] = 1e18; });
    refuse([](Json& json) { json["bandwidth"][0]["working_set_bytes"] = -4; });
    refuse([](Json& json) { json["arithmetic"][0]["isa"] = "mmx"; });
    refuse([](Json& json) { json["arithmetic"][0]["gflops"] = nullptr; });
    refuse([](Json& json) {
        for (int i = 0; i < 5000; ++i) json["arithmetic"].push_back(Json(json["arithmetic"][0]));
    });
}

class RooflineCache : public ::testing::Test {
protected:
    void SetUp() override {
        folder_ = ::testing::TempDir() + "roofline_test_" + std::to_string(getpid());
        std::filesystem::remove_all(folder_);
        remember("XDG_CACHE_HOME", old_cache_);
        remember("HOME", old_home_);
        setenv("XDG_CACHE_HOME", folder_.c_str(), 1);
    }
    void TearDown() override {
        restore("XDG_CACHE_HOME", old_cache_);
        restore("HOME", old_home_);
        std::filesystem::remove_all(folder_);
    }
    static void remember(const char* name, std::optional<std::string>& value) {
        if (const char* text = std::getenv(name)) value = text;
    }
    static void restore(const char* name, const std::optional<std::string>& value) {
        if (value.has_value()) {
            setenv(name, value->c_str(), 1);
        } else {
            unsetenv(name);
        }
    }
    void write(const std::string& text) {
        std::filesystem::create_directories(folder_ + "/frontier");
        std::ofstream(path(), std::ios::binary) << text;
    }
    std::string path() const { return folder_ + "/frontier/roofline.json"; }

    std::string folder_;
    std::optional<std::string> old_cache_, old_home_;
};

TEST_F(RooflineCache, StoresAndLoads) {
    EXPECT_FALSE(load_cached_roofline().has_value());
    const Status stored = store_cached_roofline(sample());
    ASSERT_TRUE(stored.has_value()) << stored.error().text;
    const std::optional<Roofline> loaded = load_cached_roofline();
    ASSERT_TRUE(loaded.has_value());
    expect_equal(*loaded, sample());
    ASSERT_TRUE(store_cached_roofline(sample()).has_value());  // over an existing file
    int files = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder_ + "/frontier")) ++files;
    EXPECT_EQ(files, 1);  // no temporary is left
}

TEST_F(RooflineCache, AnotherMachinesFileCountsAsAbsent) {
    Roofline other = sample();
    other.machine += " (another)";
    ASSERT_TRUE(store_cached_roofline(other).has_value());
    EXPECT_FALSE(load_cached_roofline().has_value());
}

TEST_F(RooflineCache, DamagedFilesCountAsAbsent) {
    const std::string good = dump_json(roofline_to_json(sample()));
    write(good);
    ASSERT_TRUE(load_cached_roofline().has_value());
    for (const std::string& text :
         {std::string(), std::string("{"), std::string("null"), std::string("\xff\xfe\0\0", 4),
          std::string(100'000, '['), std::string(3 << 20, ' ') + good, good.substr(0, good.size() / 2)}) {
        write(text);
        EXPECT_FALSE(load_cached_roofline().has_value()) << text.substr(0, 20);
    }
    // Whatever bytes flip, loading gives a roofline with sane figures or none.
    RandomStream random(7);
    for (int i = 0; i < 500; ++i) {
        std::string text = good;
        text[random.next() % text.size()] = static_cast<char>(random.next());
        write(text);
        if (const auto loaded = load_cached_roofline()) {
            EXPECT_TRUE(std::isfinite(loaded->read_gb_per_s(4)));
            EXPECT_GE(loaded->read_gb_per_s(4), 0);
        }
    }
    std::filesystem::remove(path());
    std::filesystem::create_directory(path());
    EXPECT_FALSE(load_cached_roofline().has_value());
}

TEST_F(RooflineCache, PathFollowsTheEnvironment) {
    EXPECT_EQ(roofline_cache_path().value(), path());
    setenv("XDG_CACHE_HOME", "relative", 1);  // to be ignored
    setenv("HOME", "/somewhere", 1);
    EXPECT_EQ(roofline_cache_path().value(), "/somewhere/.cache/frontier/roofline.json");
    unsetenv("HOME");
    EXPECT_FALSE(roofline_cache_path().has_value());
    EXPECT_FALSE(load_cached_roofline().has_value());
    EXPECT_FALSE(store_cached_roofline(sample()).has_value());
}

TEST_F(RooflineCache, UnwritableFolderIsAnError) {
    setenv("XDG_CACHE_HOME", "/proc/self/nowhere", 1);
    const Status stored = store_cached_roofline(sample());
    ASSERT_FALSE(stored.has_value());
    EXPECT_EQ(stored.error().code, ErrorCode::kFailed);
    EXPECT_THAT(stored.error().text, HasSubstr("/proc/self/nowhere/frontier/roofline.json"));
}

TEST(MeasureRoofline, GivesAPositiveFigureForEveryPoint) {
    std::vector<std::string> lines;
    const Result<Roofline> measured =
        measure_roofline({.max_threads = 2,
                          .seconds_per_point = 0,  // the fewest passes
                          .progress = [&](std::string_view line) { lines.emplace_back(line); }});
    ASSERT_TRUE(measured.has_value()) << measured.error().text;
    EXPECT_EQ(measured->machine, machine_key());
    for (const BandwidthPoint& point : measured->bandwidth) {
        EXPECT_GT(point.gb_per_s, 0) << point.level << " " << point.threads;
        EXPECT_GT(point.working_set_bytes, 0);
    }
    for (const int threads : {1, 2}) {
        EXPECT_GT(measured->read_gb_per_s(threads), 0);
        for (const Isa isa : supported_isas()) {
            if (isa == Isa::kAmx) {
                EXPECT_GT(measured->gflops(isa, "bf16_tile", threads), 0);
                continue;
            }
            EXPECT_GT(measured->gflops(isa, "f32_fma", threads), 0) << isa_name(isa);
            EXPECT_GT(measured->gflops(isa, "int8_dot", threads), 0) << isa_name(isa);
        }
    }
    EXPECT_EQ(lines.size(), measured->bandwidth.size() + measured->arithmetic.size());
    const Result<Roofline> back = roofline_from_json(roofline_to_json(*measured), "measured");
    EXPECT_TRUE(back.has_value());
}

TEST(MeasureRoofline, OnlyTheFullExtentIsKept) {
    const int threads = topology().default_threads;
    EXPECT_TRUE(is_full_extent({.max_threads = threads}));
    EXPECT_TRUE(is_full_extent({.max_threads = threads + 1, .seconds_per_point = 1}));
    EXPECT_FALSE(is_full_extent({.max_threads = threads - 1}));
    EXPECT_FALSE(is_full_extent({.max_threads = threads, .seconds_per_point = 0.29}));
}

TEST(MeasureRoofline, CanBeInterrupted) {
    const std::atomic<bool> interrupted{true};
    int lines = 0;
    const Result<Roofline> measured = measure_roofline(
        {.max_threads = 1, .progress = [&](std::string_view) { ++lines; }, .interrupted = &interrupted});
    ASSERT_FALSE(measured.has_value());
    EXPECT_EQ(measured.error().code, ErrorCode::kInterrupted);
    EXPECT_EQ(lines, 0);  // not even the buffers are filled to the end, which takes a second or more on large caches
}

}  // namespace
}  // namespace frontier

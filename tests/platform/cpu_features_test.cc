#include "platform/cpu_features.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace frontier {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// The kernel's opinion: it lists a flag only when the CPU has it and the kernel has enabled its state.
bool kernel_lists(const std::string& flag) {
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);) {
        if (line.rfind("flags", 0) != 0) continue;
        std::istringstream words(line);
        for (std::string word; words >> word;) {
            if (word == flag) return true;
        }
        return false;
    }
    return false;
}

TEST(CpuFeatures, AgreesWithTheKernel) {
    ASSERT_TRUE(kernel_lists("sse2")) << "/proc/cpuinfo does not describe this CPU";
    const CpuFeatures& features = cpu_features();
    EXPECT_EQ(features.avx2, kernel_lists("avx2") && kernel_lists("fma") && kernel_lists("f16c") &&
                                 kernel_lists("bmi1") && kernel_lists("bmi2"));
    EXPECT_EQ(features.avx512, kernel_lists("avx512f") && kernel_lists("avx512bw") && kernel_lists("avx512dq") &&
                                   kernel_lists("avx512vl"));
    EXPECT_EQ(features.avx512_vnni, kernel_lists("avx512_vnni"));
    EXPECT_EQ(features.avx512_bf16, kernel_lists("avx512_bf16"));
    // The permission may be missing although the kernel lists the tiles.
    EXPECT_TRUE(!features.amx_bf16 || (kernel_lists("amx_tile") && kernel_lists("amx_bf16")));
    EXPECT_EQ(is_supported(Isa::kAmx), features.amx_bf16 && features.avx512_bf16);
}

TEST(CpuFeatures, LaterSetsIncludeEarlierOnes) {
    const CpuFeatures& features = cpu_features();
    EXPECT_TRUE(!(features.avx512) || features.avx2);
    EXPECT_TRUE(!(features.avx512_vnni || features.avx512_bf16) || features.avx512);
    EXPECT_TRUE(!(features.amx_bf16 || features.amx_int8) || features.avx512);
    const std::vector<Isa> isas = supported_isas();
    ASSERT_FALSE(isas.empty());
    EXPECT_EQ(isas.front(), Isa::kScalar);
    EXPECT_EQ(isas.back(), best_isa());
    EXPECT_TRUE(std::is_sorted(isas.begin(), isas.end()));
}

TEST(CpuFeatures, NamesRoundTrip) {
    for (int i = 0; i < kIsaCount; ++i) {
        const auto isa = static_cast<Isa>(i);
        EXPECT_EQ(isa_from_name(isa_name(isa)), isa);
    }
    EXPECT_EQ(isa_from_name("AVX2"), std::nullopt);
    EXPECT_EQ(isa_from_name(""), std::nullopt);
}

TEST(ChooseIsa, EmptyAndAutoAreTheBest) {
    EXPECT_EQ(choose_isa("").value(), best_isa());
    EXPECT_EQ(choose_isa("auto").value(), best_isa());
}

TEST(ChooseIsa, ForcesDownward) {
    for (const Isa isa : supported_isas()) EXPECT_EQ(choose_isa(isa_name(isa)).value(), isa);
}

TEST(ChooseIsa, RefusesUpward) {
    for (int i = 0; i < kIsaCount; ++i) {
        const auto isa = static_cast<Isa>(i);
        const std::vector<Isa> isas = supported_isas();
        if (std::find(isas.begin(), isas.end(), isa) != isas.end()) continue;
        const Result<Isa> chosen = choose_isa(isa_name(isa));
        ASSERT_FALSE(chosen.has_value());
        EXPECT_EQ(chosen.error().code, ErrorCode::kUsage);
        EXPECT_THAT(chosen.error().text, HasSubstr("isa '" + std::string(isa_name(isa)) + "' is not available"));
        EXPECT_THAT(chosen.error().text, HasSubstr("available are scalar"));
        EXPECT_THAT(chosen.error().text, Not(HasSubstr("\n")));
    }
}

TEST(ChooseIsa, UnknownNameIsAUsageErrorThatSaysIsa) {
    for (const char* name : {"sse9", "AVX2", "avx2 ", "scalar,avx2"}) {
        const Result<Isa> chosen = choose_isa(name);
        ASSERT_FALSE(chosen.has_value()) << name;
        EXPECT_EQ(chosen.error().code, ErrorCode::kUsage);
        EXPECT_THAT(chosen.error().text, HasSubstr("unknown isa"));
        EXPECT_THAT(chosen.error().text, HasSubstr("scalar"));
    }
}

}  // namespace
}  // namespace frontier

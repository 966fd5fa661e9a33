#include "platform/topology.h"

#include <vector>

#include <gtest/gtest.h>
#include <sched.h>

namespace frontier {
namespace {

TEST(Topology, IsSane) {
    const Topology& machine = topology();
    cpu_set_t set;
    CPU_ZERO(&set);
    ASSERT_EQ(sched_getaffinity(0, sizeof(set), &set), 0);
    EXPECT_EQ(machine.logical_cpus, CPU_COUNT(&set));
    EXPECT_GE(machine.physical_cores, 1);
    EXPECT_LE(machine.physical_cores, machine.logical_cpus);
    EXPECT_GE(machine.default_threads, 1);
    EXPECT_LE(machine.default_threads, machine.physical_cores);
    EXPECT_GE(machine.l1d_bytes, 4 << 10);
    EXPECT_GE(machine.l2_bytes, machine.l1d_bytes);
    EXPECT_TRUE(machine.l3_bytes == 0 || machine.l3_bytes >= machine.l2_bytes);
}

TEST(MemoryState, IsSaneAndFollowsAllocations) {
    const MemoryState before = memory_state();
    EXPECT_GT(before.total_bytes, 0);
    EXPECT_GT(before.available_bytes, 0);
    EXPECT_LE(before.available_bytes, before.total_bytes);
    EXPECT_GT(before.resident_bytes, 0);
    EXPECT_GE(before.peak_resident_bytes, before.resident_bytes);
    constexpr std::size_t kTouchedBytes = std::size_t{64} << 20;
    const std::vector<char> touched(kTouchedBytes, 1);
    const MemoryState after = memory_state();
    EXPECT_EQ(touched.back(), 1);
    // The kernel batches its counters per thread (64 pages at most), so not to the byte.
    EXPECT_GE(after.peak_resident_bytes, before.resident_bytes + static_cast<std::int64_t>(kTouchedBytes) * 9 / 10);
}

TEST(MachineKey, IsStableAndOneLine) {
    const std::string key = machine_key();
    EXPECT_FALSE(key.empty());
    EXPECT_EQ(key, machine_key());
    EXPECT_EQ(key.find('\n'), std::string::npos);
}

}  // namespace
}  // namespace frontier

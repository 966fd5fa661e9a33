#include "platform/cgroup.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

namespace frontier {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A fake root with /proc/self and cgroup file systems.
class CgroupTest : public ::testing::Test {
protected:
    void SetUp() override {
        root_ = ::testing::TempDir() + "cgroup_test_" + std::to_string(getpid()) + "_" +
                ::testing::UnitTest::GetInstance()->current_test_info()->name();
        std::filesystem::remove_all(root_);
    }
    void TearDown() override { std::filesystem::remove_all(root_); }

    void write(const std::string& path, const std::string& text) {
        const std::filesystem::path full = root_ + path;
        std::filesystem::create_directories(full.parent_path());
        std::ofstream(full) << text;
    }
    void mount_v1() {
        write("/proc/self/mountinfo",
              "23 1 0:5 / /proc rw - proc proc rw\n"
              "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:4 - cgroup cgroup rw,cpu,cpuacct\n"
              "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
              "36 31 0:33 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n");
    }
    void mount_v2(const std::string& mount_root = "/") {
        write("/proc/self/mountinfo",
              "30 23 0:26 " + mount_root + " /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n");
    }

    std::string root_;
};

TEST_F(CgroupTest, NothingThereMeansUnlimited) {
    const CgroupPaths paths = find_cgroups(root_);
    EXPECT_THAT(paths.cpu_v1, IsEmpty());
    EXPECT_THAT(paths.memory_v1, IsEmpty());
    EXPECT_THAT(paths.unified, IsEmpty());
    EXPECT_EQ(cgroup_cpu_quota(paths), 0);
    EXPECT_EQ(cgroup_memory_limit_bytes(paths), -1);
    EXPECT_EQ(cgroup_memory_left_bytes(paths), -1);
}

TEST_F(CgroupTest, V2TakesTheTightestOfTheHierarchy) {
    mount_v2();
    write("/proc/self/cgroup", "0::/user.slice/job\n");
    write("/sys/fs/cgroup/user.slice/job/cpu.max", "max 100000\n");
    write("/sys/fs/cgroup/user.slice/cpu.max", "150000 100000\n");
    write("/sys/fs/cgroup/user.slice/job/memory.max", "1000000\n");
    write("/sys/fs/cgroup/user.slice/job/memory.current", "600000\n");
    write("/sys/fs/cgroup/user.slice/job/memory.stat", "anon 1\ninactive_file 100000\nactive_file 50000\n");
    write("/sys/fs/cgroup/user.slice/memory.max", "max\n");
    const CgroupPaths paths = find_cgroups(root_);
    EXPECT_THAT(paths.unified, ElementsAre(root_ + "/sys/fs/cgroup/user.slice/job", root_ + "/sys/fs/cgroup/user.slice",
                                           root_ + "/sys/fs/cgroup"));
    EXPECT_DOUBLE_EQ(cgroup_cpu_quota(paths), 1.5);
    EXPECT_EQ(cgroup_memory_limit_bytes(paths), 1000000);
    EXPECT_EQ(cgroup_memory_left_bytes(paths), 1000000 - (600000 - 150000));
}

TEST_F(CgroupTest, V2MountOfASubtreeStripsItsRoot) {
    mount_v2("/docker/abc");
    write("/proc/self/cgroup", "0::/docker/abc/inner\n");
    write("/sys/fs/cgroup/inner/cpu.max", "50000 100000\n");
    const CgroupPaths paths = find_cgroups(root_);
    EXPECT_THAT(paths.unified, ElementsAre(root_ + "/sys/fs/cgroup/inner", root_ + "/sys/fs/cgroup"));
    EXPECT_DOUBLE_EQ(cgroup_cpu_quota(paths), 0.5);
}

TEST_F(CgroupTest, V1ReadsQuotaAndMemory) {
    mount_v1();
    write("/proc/self/cgroup", "9:name=systemd:/\n4:memory:/box/a\n3:cpuset:/\n1:cpu,cpuacct:/box\n0::/\n");
    write("/sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_quota_us", "300000\n");
    write("/sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_period_us", "100000\n");
    write("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
    write("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
    write("/sys/fs/cgroup/memory/box/a/memory.limit_in_bytes", "9223372036854771712\n");
    write("/sys/fs/cgroup/memory/box/memory.limit_in_bytes", "2000\n");
    write("/sys/fs/cgroup/memory/box/memory.usage_in_bytes", "2500\n");
    write("/sys/fs/cgroup/memory/box/memory.stat", "inactive_file 7\ntotal_inactive_file 300\ntotal_active_file 100\n");
    const CgroupPaths paths = find_cgroups(root_);
    EXPECT_DOUBLE_EQ(cgroup_cpu_quota(paths), 3.0);
    EXPECT_EQ(cgroup_memory_limit_bytes(paths), 2000);
    EXPECT_EQ(cgroup_memory_left_bytes(paths), 0);  // over its limit: never negative
}

TEST_F(CgroupTest, NonsenseIsIgnored) {
    mount_v2();
    write("/proc/self/cgroup", "\n:::\nxx\n0::/../../outside\n0::" + std::string(100000, '/') + "\n");
    write("/sys/fs/cgroup/cpu.max", "99999999999999999999 0\n");
    write("/sys/fs/cgroup/memory.max", "-5\n");
    const CgroupPaths paths = find_cgroups(root_);
    EXPECT_THAT(paths.unified, ElementsAre(root_ + "/sys/fs/cgroup"));
    EXPECT_EQ(cgroup_cpu_quota(paths), 0);
    EXPECT_EQ(cgroup_memory_limit_bytes(paths), -1);
}

TEST_F(CgroupTest, DepthIsBounded) {
    mount_v2();
    std::string path;
    for (int i = 0; i < 5000; ++i) path += "/d";
    write("/proc/self/cgroup", "0::" + path + "\n");
    EXPECT_LE(find_cgroups(root_).unified.size(), 64U);
}

}  // namespace
}  // namespace frontier

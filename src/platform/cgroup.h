// Control-group limits, v1 and v2, read from /proc and the cgroup file systems by hand.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace frontier {

// Directories of this process's groups, innermost first, up to and including the mount point: a limit of any of them
// holds, so the tightest counts. Empty when there is no such hierarchy.
struct CgroupPaths {
    std::vector<std::string> cpu_v1, memory_v1, unified;
};

// `root` precedes every path ("" in production, a fake tree in tests). Never fails: what cannot be read is absent.
CgroupPaths find_cgroups(const std::string& root);

// CPUs granted (quota / period), 0 = unlimited.
double cgroup_cpu_quota(const CgroupPaths& paths);

// Bytes that the tightest group still allows: limit - usage + page cache (which the kernel drops under pressure).
// -1 = unlimited.
std::int64_t cgroup_memory_left_bytes(const CgroupPaths& paths);
// The tightest limit, -1 = unlimited.
std::int64_t cgroup_memory_limit_bytes(const CgroupPaths& paths);

}  // namespace frontier

#include "platform/topology.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <string_view>

#include <fmt/format.h>
#include <hwloc.h>
#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "platform/cgroup.h"
#include "platform/cpu_features.h"

namespace frontier {
namespace {

const CgroupPaths& own_cgroups() {
    static const CgroupPaths paths = find_cgroups("");
    return paths;
}

// The CPUs of the affinity mask. The mask is grown until the kernel accepts it: its size is the kernel's, not glibc's.
int affinity_cpus() {
    for (int capacity = CPU_SETSIZE; capacity <= (1 << 20); capacity *= 4) {
        cpu_set_t* set = CPU_ALLOC(static_cast<std::size_t>(capacity));
        if (set == nullptr) break;
        const std::size_t set_bytes = CPU_ALLOC_SIZE(static_cast<std::size_t>(capacity));
        const int count = sched_getaffinity(0, set_bytes, set) == 0 ? CPU_COUNT_S(set_bytes, set) : 0;
        CPU_FREE(set);
        if (count > 0) return count;
    }
    return static_cast<int>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
}

std::int64_t sysconf_bytes(int name) {
    return std::max(0L, sysconf(name));
}

// Cores and caches from hwloc; false when it finds none (a container without /sys, user-mode emulation).
bool read_hwloc(Topology& topology) {
    // hwloc reports odd firmware tables on stderr, which belongs to our own messages.
    setenv("HWLOC_HIDE_ERRORS", "2", 0);
    hwloc_topology_t machine = nullptr;
    if (hwloc_topology_init(&machine) != 0) return false;
    hwloc_topology_set_all_types_filter(machine, HWLOC_TYPE_FILTER_KEEP_NONE);
    for (const hwloc_obj_type_t type : {HWLOC_OBJ_CORE, HWLOC_OBJ_L1CACHE, HWLOC_OBJ_L2CACHE, HWLOC_OBJ_L3CACHE}) {
        hwloc_topology_set_type_filter(machine, type, HWLOC_TYPE_FILTER_KEEP_ALL);
    }
    if (hwloc_topology_load(machine) != 0) {
        hwloc_topology_destroy(machine);
        return false;
    }
    hwloc_bitmap_t allowed = hwloc_bitmap_alloc();
    const bool has_mask = allowed != nullptr && hwloc_get_cpubind(machine, allowed, HWLOC_CPUBIND_PROCESS) == 0;
    const auto usable = [&](hwloc_obj_t object) {
        return !has_mask || hwloc_bitmap_intersects(object->cpuset, allowed) != 0;
    };
    const auto largest_cache = [&](hwloc_obj_type_t type) {
        std::int64_t largest = 0;
        for (hwloc_obj_t cache = nullptr; (cache = hwloc_get_next_obj_by_type(machine, type, cache)) != nullptr;) {
            if (usable(cache)) largest = std::max(largest, static_cast<std::int64_t>(cache->attr->cache.size));
        }
        return largest;
    };
    int cores = 0;
    for (hwloc_obj_t core = nullptr; (core = hwloc_get_next_obj_by_type(machine, HWLOC_OBJ_CORE, core)) != nullptr;) {
        if (usable(core)) ++cores;
    }
    const std::int64_t l1d = largest_cache(HWLOC_OBJ_L1CACHE);
    const std::int64_t l2 = largest_cache(HWLOC_OBJ_L2CACHE);
    const std::int64_t l3 = largest_cache(HWLOC_OBJ_L3CACHE);
    hwloc_bitmap_free(allowed);
    hwloc_topology_destroy(machine);
    if (l1d > 0) topology.l1d_bytes = l1d;
    if (l2 > 0) topology.l2_bytes = l2;
    if (l3 > 0) topology.l3_bytes = l3;
    if (cores > 0) topology.physical_cores = cores;
    return cores > 0;
}

Topology measure() {
    Topology topology;
    if (const std::int64_t l1d = sysconf_bytes(_SC_LEVEL1_DCACHE_SIZE)) topology.l1d_bytes = l1d;
    if (const std::int64_t l2 = sysconf_bytes(_SC_LEVEL2_CACHE_SIZE)) topology.l2_bytes = l2;
    topology.l3_bytes = sysconf_bytes(_SC_LEVEL3_CACHE_SIZE);
    topology.logical_cpus = affinity_cpus();
    topology.physical_cores = topology.logical_cpus;
    read_hwloc(topology);
    topology.physical_cores = std::clamp(topology.physical_cores, 1, topology.logical_cpus);
    topology.cpu_quota = cgroup_cpu_quota(own_cgroups());
    topology.most_threads = topology.logical_cpus;
    if (topology.cpu_quota > 0)
        topology.most_threads = std::min(topology.most_threads, static_cast<int>(std::ceil(topology.cpu_quota)));
    topology.default_threads = topology.physical_cores;
    if (topology.cpu_quota > 0 && topology.cpu_quota < topology.physical_cores) {
        topology.default_threads = std::max(1, static_cast<int>(std::floor(topology.cpu_quota)));
    }
    return topology;
}

// The value of "KEY:   12345 kB" in a /proc file, in bytes; 0 when absent.
std::int64_t proc_kib_field(const char* path, std::string_view key) {
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
        if (line.size() <= key.size() || line.compare(0, key.size(), key) != 0 || line[key.size()] != ':') continue;
        const std::size_t digit = line.find_first_of("0123456789", key.size());
        if (digit == std::string::npos) return 0;
        std::int64_t kib = 0;
        std::from_chars(line.data() + digit, line.data() + line.size(), kib);
        return kib * 1024;
    }
    return 0;
}

std::string microcode_version() {
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);) {
        if (line.compare(0, 9, "microcode") != 0) continue;
        const std::size_t colon = line.find(": ");
        return colon == std::string::npos ? std::string() : line.substr(colon + 2);
    }
    return {};
}

}  // namespace

const Topology& topology() {
    static const Topology instance = measure();
    return instance;
}

MemoryState memory_state() {
    MemoryState state;
    state.total_bytes = proc_kib_field("/proc/meminfo", "MemTotal");
    state.available_bytes = proc_kib_field("/proc/meminfo", "MemAvailable");
    if (state.total_bytes == 0) {
        const std::int64_t page_bytes = sysconf(_SC_PAGESIZE);
        state.total_bytes = std::max(0L, sysconf(_SC_PHYS_PAGES)) * page_bytes;
        state.available_bytes = std::max(0L, sysconf(_SC_AVPHYS_PAGES)) * page_bytes;
    }
    const std::int64_t limit = cgroup_memory_limit_bytes(own_cgroups());
    if (limit >= 0) {
        state.total_bytes = std::min(state.total_bytes, limit);
        state.available_bytes = std::min(state.available_bytes, cgroup_memory_left_bytes(own_cgroups()));
    }
    state.resident_bytes = proc_kib_field("/proc/self/status", "VmRSS");
    state.peak_resident_bytes = proc_kib_field("/proc/self/status", "VmHWM");
    return state;
}

std::string machine_key() {
    const Topology& machine = topology();
    utsname system{};
    const bool named = uname(&system) == 0;
    // Memory in whole GiB: MemTotal moves by some MiB from boot to boot.
    const std::int64_t memory_gib = (memory_state().total_bytes + (1LL << 29)) >> 30;
    const std::string quota = machine.cpu_quota > 0 ? fmt::format(", quota {:.2f}", machine.cpu_quota) : std::string();
    return fmt::format("{} | {} cores, {} cpus{} | L2 {} KiB, L3 {} KiB | {} GiB | {} | microcode {}",
                       cpu_features().brand.empty() ? "unnamed CPU" : cpu_features().brand, machine.physical_cores,
                       machine.logical_cpus, quota, machine.l2_bytes >> 10, machine.l3_bytes >> 10, memory_gib,
                       named ? system.release : "unknown kernel", microcode_version());
}

}  // namespace frontier

// What the machine offers: cores, caches, memory, and how much of it this process may use (affinity, cgroup quota).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace frontier {

struct Topology {
    int physical_cores = 1;             // that this process may run on
    int logical_cpus = 1;               // likewise
    double cpu_quota = 0;               // CPUs granted by cgroup v1/v2, 0 = unlimited
    std::int64_t l1d_bytes = 32 << 10;  // per core
    std::int64_t l2_bytes = 512 << 10;  // per core
    std::int64_t l3_bytes = 0;          // largest shared cache, 0 = none
    int default_threads = 1;            // min(physical cores, quota rounded down), at least 1
    int most_threads = 1;               // that can run at once: min(logical CPUs, quota rounded up)
};

const Topology& topology();  // measured once, thread-safe

struct MemoryState {
    std::int64_t total_bytes = 0;
    std::int64_t available_bytes = 0;      // min(MemAvailable, what the cgroup limit leaves)
    std::int64_t resident_bytes = 0;       // of this process, now
    std::int64_t peak_resident_bytes = 0;  // VmHWM
};
MemoryState memory_state();

// Identifies the machine for caches of measurements: CPU brand, cores, memory, kernel, microcode where visible.
std::string machine_key();

}  // namespace frontier

// What this machine can do: read bandwidth and arithmetic peaks, measured once and cached per machine.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "platform/cpu_features.h"

namespace frontier {

struct BandwidthPoint {
    int threads = 1;
    std::string level;  // "L2", "L3", "DRAM"
    std::int64_t working_set_bytes = 0;
    double gb_per_s = 0;  // all threads together, GB = 1e9 bytes
};

struct ArithmeticPoint {
    Isa isa = Isa::kScalar;
    std::string operation;  // "f32_fma", "int8_dot", "bf16_dot", "bf16_tile" (the only one of kAmx)
    int threads = 1;
    double gflops = 0;  // multiply-add = 2 operations, all threads together
};

struct Roofline {
    std::string machine;  // machine_key()
    std::vector<BandwidthPoint> bandwidth;
    std::vector<ArithmeticPoint> arithmetic;

    // DRAM read bandwidth with `threads` threads, 0 if unknown: counts between two measured ones are; beyond the
    // largest (no fewer than runs use by default, see is_full_extent) more threads read no faster than the largest
    // count.
    double read_gb_per_s(int threads) const;
    // Arithmetic peak with `threads` threads, 0 if unknown: between two measured counts in proportion to the threads,
    // but no more than the larger count reached; beyond the largest, what the largest reached.
    double gflops(Isa isa, std::string_view operation, int threads) const;
};

struct RooflineOptions {
    static constexpr double kDefaultSeconds = 0.3;
    int max_threads = 1;
    double seconds_per_point = kDefaultSeconds;
    std::function<void(std::string_view)> progress;  // one line per point, before it is measured
    const std::atomic<bool>* interrupted = nullptr;
};
// Only a measurement with at least the threads that runs use by default and the default seconds may be cached: a
// shorter one would make nonsense of every share to come.
bool is_full_extent(const RooflineOptions& options);

// The limit of the hardware: of the passes of about 20 ms that fit into seconds_per_point the best counts, because
// whatever else runs on the machine can only take away. kDoesNotFit when the working set cannot be allocated,
// kInterrupted.
Result<Roofline> measure_roofline(const RooflineOptions& options);

// The whole document, with the figures most looked for at the top: read_gb_per_s, then ISA_f32_tflops, ISA_int8_tops
// (and avx512_bf16_tflops) for each ISA, of amx amx_bf16_tflops alone, all with the largest measured number of threads.
Json roofline_to_json(const Roofline& roofline);
// The inverse; kBadInput for anything that roofline_to_json did not write.
Result<Roofline> roofline_from_json(const Json& document, std::string_view where);

// The cache file: $XDG_CACHE_HOME/frontier/roofline.json (or ~/.cache/...). A file of another machine or version, or a
// damaged one, counts as absent. Rates never wait for a probe: shares are null until this exists.
Result<std::string> roofline_cache_path();  // kFailed when the environment names no home
std::optional<Roofline> load_cached_roofline();
Status store_cached_roofline(const Roofline& roofline);

}  // namespace frontier

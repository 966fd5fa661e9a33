// Instruction sets: what the CPU has and the operating system has enabled, and which one the kernels use.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace frontier {

// Ordered: a later one includes the earlier ones. `kAvx512` means F, BW, DQ and VL; VNNI and BF16 are used where
// present. `kAmx` means bf16 tiles, with AVX-512 BF16.
enum class Isa { kScalar, kAvx2, kAvx512, kAmx };
inline constexpr int kIsaCount = 4;

struct CpuFeatures {
    bool avx2 = false;  // with FMA, F16C and BMI2, and ymm state enabled by the OS (xgetbv)
    bool avx_vnni = false;
    bool avx512 = false;  // F, BW, DQ, VL, and zmm/opmask state enabled by the OS
    bool avx512_vnni = false;
    bool avx512_bf16 = false;
    bool amx_bf16 = false;  // and the tile state, with the kernel's permission (arch_prctl) obtainable
    bool amx_int8 = false;
    std::string brand;  // "AMD EPYC 7B13", empty when cpuid gives none
};

const CpuFeatures& cpu_features();  // detected once, thread-safe

std::string_view isa_name(Isa isa);  // "scalar", "avx2", "avx512", "amx"
std::optional<Isa> isa_from_name(std::string_view name);
bool is_supported(Isa isa);
Isa best_isa();
std::vector<Isa> supported_isas();  // ascending, begins with kScalar

// The ISA to use: `requested` (from --isa or FRONTIER_ISA; empty or "auto" = the best). Unknown names and sets that
// this host lacks are kUsage errors that contain the word "isa" and list what is available.
Result<Isa> choose_isa(std::string_view requested);

}  // namespace frontier

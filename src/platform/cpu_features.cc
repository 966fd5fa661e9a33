#include "platform/cpu_features.h"

#include <array>
#include <cstdint>
#include <cstring>

#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace frontier {
namespace {

constexpr std::array<std::string_view, kIsaCount> kIsaNames = {"scalar", "avx2", "avx512", "amx"};

#if defined(__x86_64__)

struct CpuidRegisters {
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
};

// All zero for a leaf the CPU does not have.
CpuidRegisters cpuid(unsigned leaf, unsigned subleaf) {
    CpuidRegisters regs;
    if (__get_cpuid_count(leaf, subleaf, &regs.eax, &regs.ebx, &regs.ecx, &regs.edx) == 0) return {};
    return regs;
}

constexpr bool bit(std::uint64_t value, int index) {
    return ((value >> index) & 1U) != 0;
}

// XCR0: the register states that the operating system saves on a context switch. An instruction set whose state is
// missing here faults or is silently corrupted, whatever cpuid says. Only valid when cpuid reports OSXSAVE.
std::uint64_t read_xcr0() {
    std::uint32_t low = 0;
    std::uint32_t high = 0;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (static_cast<std::uint64_t>(high) << 32) | low;
}

// Linux hands out the 8 KiB of tile state only on request (arch_prctl(2), since 5.16). The permission holds for the
// process, and asking does not enlarge anything until a tile instruction runs.
bool request_amx_permission() {
#if defined(SYS_arch_prctl)
    constexpr long kArchReqXcompPerm = 0x1023;
    constexpr long kXfeatureXtiledata = 18;
    return syscall(SYS_arch_prctl, kArchReqXcompPerm, kXfeatureXtiledata) == 0;
#else
    return false;
#endif
}

std::string read_brand() {
    if (__get_cpuid_max(0x80000000U, nullptr) < 0x80000004U) return {};
    std::array<char, 49> text{};
    for (unsigned i = 0; i < 3; ++i) {
        const CpuidRegisters regs = cpuid(0x80000002U + i, 0);
        std::memcpy(text.data() + 16 * i, &regs, 16);  // eax, ebx, ecx, edx in this order
    }
    std::string brand(text.data());
    const std::size_t first = brand.find_first_not_of(' ');
    if (first == std::string::npos) return {};
    return brand.substr(first, brand.find_last_not_of(' ') - first + 1);
}

CpuFeatures detect() {
    CpuFeatures features;
    features.brand = read_brand();
    const CpuidRegisters leaf1 = cpuid(1, 0);
    const bool os_xsave = bit(leaf1.ecx, 27);
    if (!os_xsave) return features;
    const std::uint64_t xcr0 = read_xcr0();
    const bool ymm_state = bit(xcr0, 1) && bit(xcr0, 2);
    const bool zmm_state = ymm_state && bit(xcr0, 5) && bit(xcr0, 6) && bit(xcr0, 7);
    const bool tile_state = bit(xcr0, 17) && bit(xcr0, 18);

    const CpuidRegisters leaf7 = cpuid(7, 0);
    const CpuidRegisters leaf7_1 = leaf7.eax >= 1 ? cpuid(7, 1) : CpuidRegisters{};
    const bool avx = bit(leaf1.ecx, 28), fma = bit(leaf1.ecx, 12), f16c = bit(leaf1.ecx, 29);
    const bool bmi1 = bit(leaf7.ebx, 3), avx2 = bit(leaf7.ebx, 5), bmi2 = bit(leaf7.ebx, 8);
    features.avx2 = ymm_state && avx && fma && f16c && bmi1 && avx2 && bmi2;
    features.avx_vnni = features.avx2 && bit(leaf7_1.eax, 4);

    const bool f = bit(leaf7.ebx, 16), dq = bit(leaf7.ebx, 17), bw = bit(leaf7.ebx, 30), vl = bit(leaf7.ebx, 31);
    features.avx512 = features.avx2 && zmm_state && f && dq && bw && vl;
    features.avx512_vnni = features.avx512 && bit(leaf7.ecx, 11);
    features.avx512_bf16 = features.avx512 && bit(leaf7_1.eax, 5);

    const bool amx_tile = bit(leaf7.edx, 24);
    if (features.avx512 && tile_state && amx_tile && request_amx_permission()) {
        features.amx_bf16 = bit(leaf7.edx, 22);
        features.amx_int8 = bit(leaf7.edx, 25);
    }
    return features;
}

#else

CpuFeatures detect() {
    return {};
}

#endif

std::string list_supported() {
    std::string list;
    for (const Isa isa : supported_isas()) {
        if (!list.empty()) list += ", ";
        list += isa_name(isa);
    }
    return list;
}

}  // namespace

const CpuFeatures& cpu_features() {
    static const CpuFeatures features = detect();
    return features;
}

std::string_view isa_name(Isa isa) {
    return kIsaNames[static_cast<std::size_t>(isa)];
}

std::optional<Isa> isa_from_name(std::string_view name) {
    for (int i = 0; i < kIsaCount; ++i) {
        if (kIsaNames[static_cast<std::size_t>(i)] == name) return static_cast<Isa>(i);
    }
    return std::nullopt;
}

bool is_supported(Isa isa) {
    const CpuFeatures& features = cpu_features();
    switch (isa) {
        case Isa::kScalar:
            return true;
        case Isa::kAvx2:
            return features.avx2;
        case Isa::kAvx512:
            return features.avx512;
        case Isa::kAmx:
            return features.amx_bf16 && features.avx512_bf16;
    }
    return false;
}

Isa best_isa() {
    return supported_isas().back();
}

std::vector<Isa> supported_isas() {
    std::vector<Isa> isas;
    for (int i = 0; i < kIsaCount; ++i) {
        if (is_supported(static_cast<Isa>(i))) isas.push_back(static_cast<Isa>(i));
    }
    return isas;
}

Result<Isa> choose_isa(std::string_view requested) {
    if (requested.empty() || requested == "auto") return best_isa();
    const std::optional<Isa> isa = isa_from_name(requested);
    if (!isa.has_value()) {
        return fail(ErrorCode::kUsage, "unknown isa '{}': available are auto, {}", requested, list_supported());
    }
    if (!is_supported(*isa)) {
        const std::string& brand = cpu_features().brand;
        return fail(ErrorCode::kUsage, "isa '{}' is not available on this machine ({}): available are {}", requested,
                    brand.empty() ? "unnamed CPU" : brand, list_supported());
    }
    return *isa;
}

}  // namespace frontier

// The elementwise and attention kernels under test: every instruction set of this host, and the AVX-512 sources over
// an emulation, so that their logic is tested on hosts without AVX-512 too.
#pragma once

#include <string>
#include <vector>

#include "kernels/kernels.h"

namespace frontier {

struct KernelVariant {
    std::string name;
    KernelTable table;
    bool exact = false;  // f64 inside (scalar)
};

// Fills elementwise and attention; defined in small_kernels_emulated.cc. The caller needs AVX2.
void fill_emulated_avx512(KernelTable& table);

inline std::vector<KernelVariant> small_kernel_variants() {
    std::vector<KernelVariant> variants;
    for (const Isa isa : supported_isas()) {
        variants.push_back({std::string(isa_name(isa)), kernel_table(isa), isa == Isa::kScalar});
    }
    if (cpu_features().avx2) {
        KernelVariant emulated{"avx512 emulated", kernel_table(Isa::kScalar), false};
        fill_emulated_avx512(emulated.table);
        variants.push_back(emulated);
    }
    return variants;
}

}  // namespace frontier

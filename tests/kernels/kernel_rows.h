// The variants under test: every instruction set of the host, forced in turn, and the AVX-512 and AMX sources emulated
// on AVX2. What the host lacks is no test here: its sources are tested emulated.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/kernels.h"

namespace frontier {

struct KernelRow {
    std::string name;
    KernelTable table;
};

inline std::ostream& operator<<(std::ostream& out, const KernelRow& row) {
    return out << row.name;
}

// scalar, avx2, avx512, amx, avx512_emulated, avx512_vnni_emulated. The emulated rows hold matmul and quantize_q8 only.
const std::vector<KernelRow>& kernel_rows();
// Those with tile kernels: amx, the same compiled with -O2 and with -O3, amx_emulated.
const std::vector<KernelRow>& tile_rows();

class KernelTest : public testing::TestWithParam<KernelRow> {
protected:
    const KernelTable& table() const { return GetParam().table; }
    static const KernelTable& scalar() { return kernel_rows().front().table; }
};

inline std::string kernel_row_name(const testing::TestParamInfo<KernelRow>& info) {
    return info.param.name;
}

}  // namespace frontier

#define FR_FOR_EACH_KERNEL_ROW(test_class) \
    INSTANTIATE_TEST_SUITE_P(Isa, test_class, testing::ValuesIn(::frontier::kernel_rows()), ::frontier::kernel_row_name)

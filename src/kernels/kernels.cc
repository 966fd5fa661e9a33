#include "kernels/kernels.h"

#include <array>

#include "base/check.h"
#include "kernels/isa_functions.h"

namespace frontier {
namespace {

KernelTable scalar_table() {
    KernelTable table;
    table.isa = Isa::kScalar;
    scalar::fill_quantize(table);
    scalar::fill_matmul_float(table);
    scalar::fill_matmul_int8(table);
    scalar::fill_elementwise(table);
    scalar::fill_attention(table);
    return table;
}

// Every row starts from the one below it, so that an operation without a faster form keeps the slower one.
KernelTable avx2_table() {
    KernelTable table = scalar_table();
    table.isa = Isa::kAvx2;
    avx2::fill_quantize(table);
    avx2::fill_matmul_float(table);
    avx2::fill_matmul_int8(table);
    avx2::fill_elementwise(table);
    avx2::fill_attention(table);
    return table;
}

KernelTable avx512_table(const CpuFeatures& features) {
    KernelTable table = avx2_table();
    table.isa = Isa::kAvx512;
    avx512::fill_quantize(table);
    avx512::fill_matmul_float(table);
    if (features.avx512_vnni)
        avx512_vnni::fill_matmul_int8(table);
    else
        avx512::fill_matmul_int8(table);
    avx512::fill_elementwise(table);
    avx512::fill_attention(table);
    return table;
}

KernelTable amx_table(const CpuFeatures& features) {
    KernelTable table = avx512_table(features);
    table.isa = Isa::kAmx;
    amx::fill_matmul_tiles(table);
    return table;
}

// Rows the host lacks stay empty: a fill function already contains instructions of its set.
std::array<KernelTable, kIsaCount> make_tables() {
    const CpuFeatures& features = cpu_features();
    std::array<KernelTable, kIsaCount> tables;
    tables[0] = scalar_table();
    if (features.avx2) tables[1] = avx2_table();
    if (features.avx512) tables[2] = avx512_table(features);
    if (is_supported(Isa::kAmx)) tables[3] = amx_table(features);
    return tables;
}

}  // namespace

const KernelTable& kernel_table(Isa isa) {
    static const std::array<KernelTable, kIsaCount> tables = make_tables();
    const KernelTable& table = tables[static_cast<std::size_t>(isa)];
    FR_CHECK(table.quantize_q8 != nullptr);  // the host lacks the set: choose_isa refuses it
    return table;
}

}  // namespace frontier

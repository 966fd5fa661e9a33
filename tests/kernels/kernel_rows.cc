#include "kernel_rows.h"

namespace frontier {

namespace avx512_emulated_quantize {
void fill_quantize(KernelTable& table);
}
namespace avx512_emulated_float {
void fill_matmul_float(KernelTable& table);
}
namespace avx512_emulated_int8 {
void fill_matmul_int8(KernelTable& table);
}
namespace avx512_emulated_vnni {
void fill_matmul_int8(KernelTable& table);
}

namespace amx_emulated {
void fill_matmul_tiles(KernelTable& table);
}
namespace amx_O2 {
void fill_matmul_tiles(KernelTable& table);
}
namespace amx_O3 {
void fill_matmul_tiles(KernelTable& table);
}

namespace {

KernelRow real_row(Isa isa) {
    KernelRow row;
    row.name = isa_name(isa);
    for (const Isa supported : supported_isas())
        if (supported == isa) row.table = kernel_table(isa);
    if (!row.table.has_value()) row.why_not = "this host has no " + row.name;
    return row;
}

KernelRow emulated_row(const std::string& name, void (*fill_int8)(KernelTable&)) {
    KernelRow row;
    row.name = name;
    if (!cpu_features().avx2) {
        row.why_not = "this host has no avx2, over which the emulation is built";
        return row;
    }
    KernelTable table;
    table.isa = Isa::kAvx512;
    avx512_emulated_quantize::fill_quantize(table);
    avx512_emulated_float::fill_matmul_float(table);
    fill_int8(table);
    row.table = table;
    return row;
}

// The real instructions in another compilation of their source.
KernelRow recompiled_amx_row(const std::string& name, void (*fill_tiles)(KernelTable&)) {
    KernelRow row = real_row(Isa::kAmx);
    row.name = name;
    if (row.table.has_value()) fill_tiles(*row.table);
    return row;
}

KernelRow emulated_amx_row() {
    KernelRow row = emulated_row("amx_emulated", avx512_emulated_int8::fill_matmul_int8);
    if (row.table.has_value()) amx_emulated::fill_matmul_tiles(*row.table);
    return row;
}

}  // namespace

const std::vector<KernelRow>& tile_rows() {
    static const std::vector<KernelRow> rows = {
        real_row(Isa::kAmx), recompiled_amx_row("amx_O2", amx_O2::fill_matmul_tiles),
        recompiled_amx_row("amx_O3", amx_O3::fill_matmul_tiles), emulated_amx_row()};
    return rows;
}

const std::vector<KernelRow>& kernel_rows() {
    static const std::vector<KernelRow> rows = {
        real_row(Isa::kScalar),
        real_row(Isa::kAvx2),
        real_row(Isa::kAvx512),
        real_row(Isa::kAmx),
        emulated_row("avx512_emulated", avx512_emulated_int8::fill_matmul_int8),
        emulated_row("avx512_vnni_emulated", avx512_emulated_vnni::fill_matmul_int8)};
    return rows;
}

}  // namespace frontier

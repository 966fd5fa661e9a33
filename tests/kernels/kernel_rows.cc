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

using Fill = void (*)(KernelTable&);

// Over SIMDe, and tiles in plain C++ where `fill_tiles` is given.
KernelRow emulated_row(const std::string& name, Fill fill_int8, Fill fill_tiles = nullptr) {
    KernelRow row{.name = name, .table = {}};
    row.table.isa = Isa::kAvx512;
    avx512_emulated_quantize::fill_quantize(row.table);
    avx512_emulated_float::fill_matmul_float(row.table);
    fill_int8(row.table);
    if (fill_tiles != nullptr) fill_tiles(row.table);
    return row;
}

// The real instructions in another compilation of their source.
KernelRow recompiled_row(const std::string& name, Fill fill_tiles) {
    KernelRow row{.name = name, .table = kernel_table(Isa::kAmx)};
    fill_tiles(row.table);
    return row;
}

}  // namespace

const std::vector<KernelRow>& tile_rows() {
    static const std::vector<KernelRow> rows = [] {
        std::vector<KernelRow> available;
        if (is_supported(Isa::kAmx)) {
            available.push_back({std::string(isa_name(Isa::kAmx)), kernel_table(Isa::kAmx)});
            available.push_back(recompiled_row("amx_O2", amx_O2::fill_matmul_tiles));
            available.push_back(recompiled_row("amx_O3", amx_O3::fill_matmul_tiles));
        }
        if (is_supported(Isa::kAvx2))
            available.push_back(
                emulated_row("amx_emulated", avx512_emulated_int8::fill_matmul_int8, amx_emulated::fill_matmul_tiles));
        return available;
    }();
    return rows;
}

const std::vector<KernelRow>& kernel_rows() {
    static const std::vector<KernelRow> rows = [] {
        std::vector<KernelRow> available;
        for (const Isa isa : supported_isas()) available.push_back({std::string(isa_name(isa)), kernel_table(isa)});
        if (is_supported(Isa::kAvx2)) {
            available.push_back(emulated_row("avx512_emulated", avx512_emulated_int8::fill_matmul_int8));
            available.push_back(emulated_row("avx512_vnni_emulated", avx512_emulated_vnni::fill_matmul_int8));
        }
        return available;
    }();
    return rows;
}

}  // namespace frontier

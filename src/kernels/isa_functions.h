// What each instruction set contributes to the kernel table. Internal to src/kernels.
//
// A file in avx2/, avx512/ or amx/ is compiled with that set's flags, so everything it defines besides its fill
// function is in an anonymous namespace, and it instantiates nothing from the standard library and calls no inline
// function of a header: the linker must never pick an AVX-512 copy of such a function for baseline code.
// tools/check_symbols.py looks at the objects. A fill function may be called only when the host has the set.
#pragma once

#include "kernels/kernels.h"

namespace frontier {

namespace scalar {
void fill_quantize(KernelTable& table);
void fill_matmul_float(KernelTable& table);
void fill_matmul_int8(KernelTable& table);
void fill_elementwise(KernelTable& table);
void fill_attention(KernelTable& table);
}  // namespace scalar

namespace avx2 {
void fill_quantize(KernelTable& table);
void fill_matmul_float(KernelTable& table);
void fill_matmul_int8(KernelTable& table);
void fill_elementwise(KernelTable& table);
void fill_attention(KernelTable& table);
}  // namespace avx2

namespace avx512 {
void fill_quantize(KernelTable& table);
void fill_matmul_float(KernelTable& table);
void fill_matmul_int8(KernelTable& table);
void fill_elementwise(KernelTable& table);
void fill_attention(KernelTable& table);
}  // namespace avx512

namespace avx512_vnni {
void fill_matmul_int8(KernelTable& table);
}  // namespace avx512_vnni

namespace amx {
void fill_matmul_tiles(KernelTable& table);
}  // namespace amx

}  // namespace frontier

// GCC 12 takes the deliberately undefined operands inside its own AVX-512 intrinsics for ours (GCC bug 105593).
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <immintrin.h>

#include "kernels/isa_functions.h"

namespace frontier::avx512 {
namespace {

#include "kernels/shared/lanes_avx512.inc"

#include "kernels/shared/exp_lanes.inc"

#include "kernels/shared/attention.inc"

}  // namespace

void fill_attention(KernelTable& table) {
    table.attention = attention;
}

}  // namespace frontier::avx512

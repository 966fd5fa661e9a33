#include <immintrin.h>

#include "kernels/isa_functions.h"

namespace frontier::avx2 {
namespace {

#include "kernels/shared/lanes_avx2.inc"

#include "kernels/shared/exp_lanes.inc"

#include "kernels/shared/elementwise.inc"

}  // namespace

void fill_elementwise(KernelTable& table) {
    table.rms_norm = rms_norm;
    table.add = add;
    table.silu_multiply = silu_multiply;
    table.rope = rope;
    table.store_k = store_k;
    table.store_v = store_v;
}

}  // namespace frontier::avx2

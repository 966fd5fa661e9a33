#include <immintrin.h>

#include "kernels/isa_functions.h"

namespace frontier::avx2 {
namespace {

#include "kernels/shared/lanes_avx2.inc"

#include "kernels/shared/exp_lanes.inc"

#include "kernels/shared/attention.inc"

}  // namespace

void fill_attention(KernelTable& table) {
    table.attention = attention;
}

}  // namespace frontier::avx2

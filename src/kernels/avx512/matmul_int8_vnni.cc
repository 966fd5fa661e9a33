// The integer kernels once more, for hosts with AVX512-VNNI.
#define FR_AVX512_NAMESPACE avx512_vnni
#define FR_AVX512_VNNI 1
#include "kernels/avx512/matmul_int8.cc"  // NOLINT(bugprone-suspicious-include): that is the point

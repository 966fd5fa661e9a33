// The instruction set of this folder. Tests on hosts without AVX-512 define FR_AVX512_EMULATED, bring their own
// definitions of the intrinsics and a namespace (FR_AVX512_NAMESPACE), and then include a kernel's source.
#pragma once

#ifndef FR_AVX512_EMULATED
#include <immintrin.h>
#endif

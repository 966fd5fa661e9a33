// The tile instructions, wrapped once, in assembly: GCC 12's intrinsics do not say that they read memory, so that at
// -O2 stores before them vanish. Tests on hosts without AMX define FR_AMX_EMULATED, bring their own definitions of
// these functions in a namespace of their own (FR_AMX_NAMESPACE), and then include a kernel's source.
#pragma once

#ifndef FR_AMX_NAMESPACE
#define FR_AMX_NAMESPACE amx
#endif

#include <cstdint>

namespace frontier::FR_AMX_NAMESPACE {
namespace {

// What ldtilecfg reads: the shape of each tile register, at most 16 rows of 64 bytes.
struct TileConfig {
    std::uint8_t palette = 1;
    std::uint8_t start_row = 0;
    std::uint8_t reserved[14] = {};
    std::uint16_t row_bytes[16] = {};
    std::uint8_t rows[16] = {};
};
static_assert(sizeof(TileConfig) == 64);

}  // namespace
}  // namespace frontier::FR_AMX_NAMESPACE

#ifndef FR_AMX_EMULATED
#include <immintrin.h>

namespace frontier::FR_AMX_NAMESPACE {
namespace {

#define FR_TILE [[gnu::always_inline]] inline

// Sets the shapes and clears all tiles.
FR_TILE void configure_tiles(const TileConfig& config) {
    asm volatile("ldtilecfg %0" ::"m"(config));
}
// Back to the initial state: the operating system then saves no tiles, and the core may save power.
FR_TILE void release_tiles() {
    asm volatile("tilerelease");
}
template <int kTile>
FR_TILE void clear_tile() {
    asm volatile("tilezero %%tmm%c0" ::"i"(kTile));
}
template <int kTile>
FR_TILE void load_tile(const void* from, std::int64_t stride_bytes) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(stride_bytes), "i"(kTile) : "memory");
}
template <int kTile>
FR_TILE void store_tile(void* to, std::int64_t stride_bytes) {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(to), "r"(stride_bytes), "i"(kTile) : "memory");
}
// sum[m][n] += a[m][2 k] * b[k][2 n] + a[m][2 k + 1] * b[k][2 n + 1], in f32, over k; denormals count as zero.
template <int kSum, int kA, int kB>
FR_TILE void multiply_add_bf16() {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kSum), "i"(kA), "i"(kB));
}

// Thirty-two f32 to bf16, round to nearest even, `low` in the lower half.
FR_TILE __m512i to_bf16(__m512 low, __m512 high) {
    return reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low));
}

#undef FR_TILE

}  // namespace
}  // namespace frontier::FR_AMX_NAMESPACE
#endif

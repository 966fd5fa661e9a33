// The functions of kernels/amx/tiles.h in plain C++, over the emulated AVX-512 of avx512_emulated.cc. What makes the
// real instructions fault fails a check here.
#pragma once

#include <cstring>

#include "base/check.h"
#include "kernels/amx/tiles.h"
#include "tensor/half.h"

namespace frontier::FR_AMX_NAMESPACE {
namespace {

struct Tile {
    int rows = 0;
    int row_bytes = 0;
    alignas(64) std::byte data[16][64];
};
thread_local Tile tile_registers[8];

void release_tiles() {
    for (Tile& tile : tile_registers) tile = Tile();
}
void configure_tiles(const TileConfig& config) {
    FR_CHECK(config.palette == 1 && config.start_row == 0);
    release_tiles();
    for (int i = 0; i < 8; ++i) {
        FR_CHECK(config.rows[i] <= 16 && config.row_bytes[i] <= 64);
        FR_CHECK((config.rows[i] == 0) == (config.row_bytes[i] == 0));
        tile_registers[i].rows = config.rows[i];
        tile_registers[i].row_bytes = config.row_bytes[i];
        std::memset(tile_registers[i].data, 0, sizeof tile_registers[i].data);
    }
}
template <int kTile>
Tile& configured_tile() {
    FR_CHECK(tile_registers[kTile].rows > 0);
    return tile_registers[kTile];
}
template <int kTile>
void clear_tile() {
    std::memset(configured_tile<kTile>().data, 0, sizeof(Tile::data));
}
template <int kTile>
void load_tile(const void* from, std::int64_t stride_bytes) {
    Tile& tile = configured_tile<kTile>();
    clear_tile<kTile>();
    for (int row = 0; row < tile.rows; ++row)
        std::memcpy(tile.data[row], static_cast<const std::byte*>(from) + row * stride_bytes,
                    static_cast<std::size_t>(tile.row_bytes));
}
template <int kTile>
void store_tile(void* to, std::int64_t stride_bytes) {
    const Tile& tile = configured_tile<kTile>();
    for (int row = 0; row < tile.rows; ++row)
        std::memcpy(static_cast<std::byte*>(to) + row * stride_bytes, tile.data[row],
                    static_cast<std::size_t>(tile.row_bytes));
}
template <int kSum, int kA, int kB>
void multiply_add_bf16() {
    Tile& sum = configured_tile<kSum>();
    const Tile& a = configured_tile<kA>();
    const Tile& b = configured_tile<kB>();
    FR_CHECK(sum.rows == a.rows && a.row_bytes == 4 * b.rows && sum.row_bytes == b.row_bytes);
    std::uint16_t x[16][32], w[16][32];
    float sums[16][16];
    std::memcpy(x, a.data, sizeof x);
    std::memcpy(w, b.data, sizeof w);
    std::memcpy(sums, sum.data, sizeof sums);
    for (int m = 0; m < sum.rows; ++m)
        for (int n = 0; n < sum.row_bytes / 4; ++n)
            for (int k = 0; k < a.row_bytes / 2; ++k)
                sums[m][n] += to_f32(BF16{x[m][k]}) * to_f32(BF16{w[k / 2][2 * n + k % 2]});
    std::memcpy(sum.data, sums, sizeof sums);
}

__m512i to_bf16(__m512 low, __m512 high) {
    float from[32];
    std::uint16_t to[32];
    std::memcpy(from, &low, 64);
    std::memcpy(from + 16, &high, 64);
    for (int i = 0; i < 32; ++i) to[i] = frontier::to_bf16(from[i]).bits;
    __m512i result;
    std::memcpy(&result, to, 64);
    return result;
}

}  // namespace
}  // namespace frontier::FR_AMX_NAMESPACE

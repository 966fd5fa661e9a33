// The limit of the tile multiplier. As every file of this folder: nothing outside the anonymous namespace but the entry
// point.
#include "kernels/peak.h"

#include "kernels/amx/tiles.h"

namespace frontier::amx {

// A multiplication takes 52 cycles, one may begin every 16: six chains in the eight registers are enough.
double peak_bf16(std::int64_t iterations, std::uint64_t* sink) {
    TileConfig config;
    for (int tile = 0; tile < 8; ++tile) {
        config.row_bytes[tile] = 64;
        config.rows[tile] = 16;
    }
    alignas(64) std::uint32_t words[256];
    for (std::uint32_t& word : words) word = 0x3F803F80;  // bf16 1, 1
    configure_tiles(config);
    load_tile<6>(words, 64);
    load_tile<7>(words, 64);
    for (std::int64_t i = 0; i < iterations; ++i) {
        multiply_add_bf16<0, 6, 7>();
        multiply_add_bf16<1, 6, 7>();
        multiply_add_bf16<2, 6, 7>();
        multiply_add_bf16<3, 6, 7>();
        multiply_add_bf16<4, 6, 7>();
        multiply_add_bf16<5, 6, 7>();
    }
    std::uint32_t sums[6][256];
    store_tile<0>(sums[0], 64);
    store_tile<1>(sums[1], 64);
    store_tile<2>(sums[2], 64);
    store_tile<3>(sums[3], 64);
    store_tile<4>(sums[4], 64);
    store_tile<5>(sums[5], 64);
    release_tiles();
    std::uint64_t total = 0;
    for (const auto& tile : sums)
        for (int i = 0; i < 256; i += 2) total += tile[i] | static_cast<std::uint64_t>(tile[i + 1]) << 32;
    *sink = total;
    return static_cast<double>(iterations) * 6 * 16 * 16 * 32 * 2;
}

}  // namespace frontier::amx

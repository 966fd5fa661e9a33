// The packed layout of a weight matrix: panels of 16 output rows, rows across the lanes, one layout for every ISA.
//
// A panel holds rows [16 p, 16 p + 16) over all columns (k = input feature); rows beyond the matrix are zero.
// Along k a panel is a sequence of blocks, each of which holds the 16 rows' file blocks with words of four consecutive
// k transposed: word w of row 0, word w of row 1, ..., so that one 64-byte vector holds four consecutive k of 16 rows.
//   F32          per k:            f32[16 rows]
//   F16, BF16    per pair of k:    u16[16 rows][2]            (the last pair is zero-padded when cols is odd)
//   Q8_0         per 32 k:         f16 d[16], i8[8 words][16 rows][4 k]
//   Q4_0         per 32 k:         f16 d[16], nibbles
//   Q4_K         per 256 k:        f16 d[16], f16 dmin[16], u8 scale[8][16], u8 min[8][16] (6-bit values unpacked),
//                                  nibbles[8]
//   Q5_K         per 256 k:        as Q4_K, but { nibbles, bits (the fifth bit) }[8]
//   Q6_K         per 256 k:        f16 d[16], i8 scale[16][16], { nibbles (low 4 bits), pairs (high 2 bits) }[8]
//   every other  "raw": the 16 rows' bytes as they lie in the file, one after another; multiplied through
//                dequantize_panel and the f32 kernel
// where, for 32 consecutive k (the K types' 64- and 128-element interleaving is undone),
//   nibbles = u8[4 words w][16 rows][4 j]: low nibble k = 4 w + j, high nibble k = 16 + 4 w + j
//   bits    = u8[16 rows][4 j]: bit w belongs to k = 4 w + j
//   pairs   = u8[2 words h][16 rows][4 j]: bits 2 s and 2 s + 1 belong to k = 4 (2 s + h) + j, s = 0..3
// Sizes are those of the file rows, except Q4_K: 148 instead of 144 bytes per block (2.8% more), and Q5_K: 180
// instead of 176 (2.3%).
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"

namespace frontier {

inline constexpr int kPanelRows = 16;

// Of the layout above. Raise it whenever a packed byte changes its place or meaning: packed weights are kept in files
// between starts, and those of another version are then made anew. A test holds the hash of every type's panel.
inline constexpr std::uint32_t kPackingVersion = 1;

std::int64_t panel_bytes(DType type, std::int64_t cols);
std::int64_t panel_count(std::int64_t rows);

// rows: `valid_rows` (1..16) rows of `type` in file order, row_bytes(type, cols) apart. out: panel_bytes(type, cols).
void pack_panel(DType type, const std::byte* rows, int valid_rows, std::int64_t cols, std::byte* out);

// One row of a packed panel back to f32 (exact). out: [cols].
void unpack_row(DType type, const std::byte* panel, int lane, std::int64_t cols, float* out);

// A whole packed panel as the F32 layout: out[cols][16].
void dequantize_panel(DType type, const std::byte* panel, std::int64_t cols, float* out);

// File order: `elements` consecutive elements of any type to f32, exactly as the format defines. The definition of
// correct for every other path. Written from the block descriptions in the GGUF/ggml sources.
void dequantize_row(DType type, const std::byte* data, std::int64_t elements, float* out);

// False when a float element, or a scale or minimum of a block, is NaN or infinite.
bool row_is_finite(DType type, const std::byte* data, std::int64_t elements);

}  // namespace frontier

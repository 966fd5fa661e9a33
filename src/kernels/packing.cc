// Packing of 16 rows into a panel and back. Speed matters in pack_panel (it runs over the whole model at load); the
// way back serves tests, embedding rows and the types without an integer kernel.
#include "kernels/packing.h"

#include <algorithm>
#include <array>

#include "kernels/block_formats.h"

namespace frontier {
namespace {

constexpr std::array<std::byte, 256> kZeros{};  // stands in for the blocks of rows beyond the matrix

// The file blocks of 16 rows at the same k.
using BlockRows = std::array<const std::byte*, kPanelRows>;

constexpr std::int64_t kNibblesBytes = 256;                     // 32 k of 16 rows, 4 bits each
constexpr std::int64_t kPairsBytes = 128;                       // 2 bits each
constexpr std::int64_t kBitsBytes = 64;                         // 1 bit each
constexpr std::int64_t kScalesAndMinsBytes = 20L * kPanelRows;  // the head of Q4_K and Q5_K

// Scatters one f16 per row.
std::byte* put_f16(const BlockRows& blocks, int offset, std::byte* out) {
    for (int row = 0; row < kPanelRows; ++row) std::memcpy(out + 2 * row, blocks[row] + offset, 2);
    return out + 2 * kPanelRows;
}

// 16 bytes as the compiler's own vector type: SSE2, which every x86-64 has.
using Bytes16 = std::uint8_t __attribute__((vector_size(16)));
using Words4 = std::uint32_t __attribute__((vector_size(16)));
using Lanes16 = std::array<Bytes16, kPanelRows>;  // four words of each of 16 rows

Bytes16 bytes16_at(const std::byte* data) {
    Bytes16 value;
    std::memcpy(&value, data, sizeof value);
    return value;
}

// Word w of every row to out[w][16 rows]: 4x4 words at a time, 16-byte stores instead of 4-byte ones.
std::byte* put_lanes(const Lanes16& rows, std::byte* out) {
    for (int row = 0; row < kPanelRows; row += 4) {
        const auto a = reinterpret_cast<Words4>(rows[row]);
        const auto b = reinterpret_cast<Words4>(rows[row + 1]);
        const auto c = reinterpret_cast<Words4>(rows[row + 2]);
        const auto d = reinterpret_cast<Words4>(rows[row + 3]);
        const Words4 ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5);
        const Words4 cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5);
        const Words4 ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
        const Words4 cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
        const std::array<Words4, 4> words = {__builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5),
                                             __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7),
                                             __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5),
                                             __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7)};
        for (int w = 0; w < 4; ++w) std::memcpy(out + 4 * (w * kPanelRows + row), &words[w], sizeof(Words4));
    }
    return out + 16L * kPanelRows;
}

// Transposes `words` 4-byte words of 16 rows, a multiple of four.
std::byte* put_words(const BlockRows& blocks, std::int64_t offset, std::int64_t words, std::byte* out) {
    for (std::int64_t w = 0; w < words; w += 4) {
        Lanes16 lanes;
        for (int row = 0; row < kPanelRows; ++row) lanes[row] = bytes16_at(blocks[row] + offset + 4 * w);
        out = put_lanes(lanes, out);
    }
    return out;
}

// 32 four-bit values from 32 bytes, at `shift` 0 or 4 of each: the nibbles of value i and 16 + i meet in one byte.
Bytes16 paired_nibbles(const std::byte* from, int shift) {
    const Bytes16 low = bytes16_at(from);
    const Bytes16 high = bytes16_at(from + 16);
    return shift == 0 ? (low & 15) | high << 4 : low >> 4 | (high & 0xF0);
}

void pack_q4_0(const BlockRows& blocks, std::byte* out) {
    out = put_f16(blocks, 0, out);
    put_words(blocks, 2, 4, out);  // a file block's nibbles already pair k with k + 16
}

void pack_q8_0(const BlockRows& blocks, std::byte* out) {
    out = put_f16(blocks, 0, out);
    put_words(blocks, 2, 8, out);
}

// The head of Q4_K and Q5_K: d, dmin, and the 6-bit scales and minima as bytes.
std::byte* put_scales_and_mins(const BlockRows& blocks, std::byte* out) {
    out = put_f16(blocks, 0, out);
    out = put_f16(blocks, 2, out);
    for (int j = 0; j < 8; ++j) {
        for (int row = 0; row < kPanelRows; ++row) {
            const ScaleMin sm = scale_min_at(blocks[row] + 4, j);
            out[j * kPanelRows + row] = static_cast<std::byte>(sm.scale);
            out[(8 + j) * kPanelRows + row] = static_cast<std::byte>(sm.min);
        }
    }
    return out + 16L * kPanelRows;
}

// Nibbles of sub-block j (0..7) of Q4_K or Q5_K, whose nibbles begin at `offset`: one of each of 32 bytes.
std::byte* put_k_nibbles(const BlockRows& blocks, int offset, int j, std::byte* out) {
    Lanes16 lanes;
    for (int row = 0; row < kPanelRows; ++row)
        lanes[row] = paired_nibbles(blocks[row] + offset + j / 2 * 32, j % 2 * 4);
    return put_lanes(lanes, out);
}

void pack_q4_k(const BlockRows& blocks, std::byte* out) {
    out = put_scales_and_mins(blocks, out);
    for (int j = 0; j < 8; ++j) out = put_k_nibbles(blocks, 16, j, out);
}

void pack_q5_k(const BlockRows& blocks, std::byte* out) {
    out = put_scales_and_mins(blocks, out);
    for (int j = 0; j < 8; ++j) {
        out = put_k_nibbles(blocks, 48, j, out);
        for (int row = 0; row < kPanelRows; ++row) {
            std::array<std::uint32_t, 8> high;  // bit j of byte i belongs to element i of sub-block j
            std::memcpy(high.data(), blocks[row] + 16, sizeof high);
            std::uint32_t bits = 0;
            for (int w = 0; w < 8; ++w) bits |= (high[w] >> j & 0x01010101U) << w;
            std::memcpy(out + 4 * row, &bits, 4);
        }
        out += kBitsBytes;
    }
}

void pack_q6_k(const BlockRows& blocks, std::byte* out) {
    out = put_f16(blocks, 208, out);
    for (int group = 0; group < 16; ++group)
        for (int row = 0; row < kPanelRows; ++row) out[group * kPanelRows + row] = blocks[row][192 + group];
    out += 16L * kPanelRows;
    for (int j = 0; j < 8; ++j) {
        // ql: sub-blocks 0 and 1 of each four lie in the low nibbles of 64 bytes, 2 and 3 in the high ones.
        const int low = j / 4 * 64 + j % 2 * 32;
        Lanes16 lanes;
        for (int row = 0; row < kPanelRows; ++row) lanes[row] = paired_nibbles(blocks[row] + low, j % 4 / 2 * 4);
        out = put_lanes(lanes, out);
        // qh: 32 bytes for each four sub-blocks, two bits each; eight values at a time in a 64-bit word.
        const int high = 128 + j / 4 * 32;
        for (int row = 0; row < kPanelRows; ++row) {
            std::array<std::uint64_t, 4> eights;
            std::memcpy(eights.data(), blocks[row] + high, sizeof eights);
            std::uint64_t pairs = 0;
            for (int s = 0; s < 4; ++s) pairs |= (eights[s] >> (j % 4 * 2) & 0x0303030303030303ULL) << (2 * s);
            std::memcpy(out + 4 * row, &pairs, 4);
            const auto second = static_cast<std::uint32_t>(pairs >> 32);
            std::memcpy(out + 4 * (kPanelRows + row), &second, 4);
        }
        out += kPairsBytes;
    }
}

using PackBlockFn = void (*)(const BlockRows& blocks, std::byte* out);

PackBlockFn pack_block_fn(DType type) {
    switch (type) {
        case DType::kQ4_0:
            return pack_q4_0;
        case DType::kQ8_0:
            return pack_q8_0;
        case DType::kQ4_K:
            return pack_q4_k;
        case DType::kQ5_K:
            return pack_q5_k;
        case DType::kQ6_K:
            return pack_q6_k;
        default:
            return nullptr;
    }
}

std::int64_t packed_block_bytes(DType type) {
    const std::int64_t from_file = kPanelRows * dtype_info(type).block_bytes;
    return type == DType::kQ4_K || type == DType::kQ5_K ? from_file + 4L * kPanelRows : from_file;
}

// F32 per k; F16 and BF16 per pair of k: words of 4 bytes either way. The last words, fewer than four, and rows beyond
// the matrix go one by one.
void pack_floats(const std::byte* rows, int valid_rows, std::int64_t bytes_per_row, std::byte* out) {
    const std::int64_t words = (bytes_per_row + 3) / 4;
    const std::int64_t whole = valid_rows == kPanelRows ? bytes_per_row / 16 * 4 : 0;
    BlockRows lanes;
    for (int row = 0; row < valid_rows; ++row) lanes[row] = rows + row * bytes_per_row;
    put_words(lanes, 0, whole, out);
    std::memset(out + 4 * kPanelRows * whole, 0, static_cast<std::size_t>(4 * kPanelRows * (words - whole)));
    for (std::int64_t w = whole; w < words; ++w)
        for (int row = 0; row < valid_rows; ++row)
            std::memcpy(out + 4 * (w * kPanelRows + row), lanes[row] + 4 * w,
                        static_cast<std::size_t>(std::min<std::int64_t>(4, bytes_per_row - 4 * w)));
}

void unpack_q4_0(const std::byte* block, int lane, float* out) {
    const float d = f16_at(block, 2 * lane);
    const std::byte* nibbles = block + 2 * kPanelRows + 4 * lane;
    for (int i = 0; i < 16; ++i) {
        const int byte = u8_at(nibbles, i / 4 * 64 + i % 4);
        out[i] = static_cast<float>((byte & 15) - 8) * d;
        out[16 + i] = static_cast<float>((byte >> 4) - 8) * d;
    }
}

void unpack_q8_0(const std::byte* block, int lane, float* out) {
    const float d = f16_at(block, 2 * lane);
    const std::byte* quants = block + 2 * kPanelRows + 4 * lane;
    for (int i = 0; i < 32; ++i) out[i] = static_cast<float>(i8_at(quants, i / 4 * 64 + i % 4)) * d;
}

// The value scale * q - min of a row's quant in sub-block j; `block` begins with put_scales_and_mins.
struct ScaleAndMin {
    float scale;
    float min;
    ScaleAndMin(const std::byte* block, int lane, int j)
        : scale(f16_at(block, 2 * lane) * static_cast<float>(u8_at(block, (4 + j) * kPanelRows + lane))),
          min(f16_at(block, 2 * kPanelRows + 2 * lane) *
              static_cast<float>(u8_at(block, (12 + j) * kPanelRows + lane))) {}
    float value(unsigned q) const { return scale * static_cast<float>(q) - min; }
};

unsigned nibble_at(const std::byte* nibbles, int i) {
    return u8_at(nibbles, i % 16 / 4 * 64 + i % 4) >> (i / 16 * 4) & 15U;
}

void unpack_q4_k(const std::byte* block, int lane, float* out) {
    for (int j = 0; j < 8; ++j) {
        const ScaleAndMin of(block, lane, j);
        const std::byte* nibbles = block + kScalesAndMinsBytes + j * kNibblesBytes + 4 * lane;
        for (int i = 0; i < 32; ++i) out[32 * j + i] = of.value(nibble_at(nibbles, i));
    }
}

void unpack_q5_k(const std::byte* block, int lane, float* out) {
    for (int j = 0; j < 8; ++j) {
        const ScaleAndMin of(block, lane, j);
        const std::byte* nibbles = block + kScalesAndMinsBytes + j * (kNibblesBytes + kBitsBytes) + 4 * lane;
        for (int i = 0; i < 32; ++i) {
            const unsigned high = u8_at(nibbles, kNibblesBytes + i % 4) >> (i / 4) & 1U;
            out[32 * j + i] = of.value(nibble_at(nibbles, i) | high << 4);
        }
    }
}

void unpack_q6_k(const std::byte* block, int lane, float* out) {
    const float d = f16_at(block, 2 * lane);
    const std::byte* scales = block + 2 * kPanelRows + lane;
    const std::byte* nibbles = block + 18 * kPanelRows + 4 * lane;
    for (int k = 0; k < 256; ++k) {
        const std::byte* base = nibbles + k / 32 * (kNibblesBytes + kPairsBytes);
        const int i = k % 32;
        const int low = u8_at(base, i % 16 / 4 * 64 + i % 4) >> (i / 16 * 4) & 15;
        const int high = u8_at(base + kNibblesBytes, i % 8 / 4 * 64 + i % 4) >> (i / 8 * 2) & 3;
        const float scale = d * static_cast<float>(i8_at(scales, k / 16 * kPanelRows));
        out[k] = scale * static_cast<float>((low | high << 4) - 32);
    }
}

using UnpackBlockFn = void (*)(const std::byte* block, int lane, float* out);

UnpackBlockFn unpack_block_fn(DType type) {
    switch (type) {
        case DType::kQ4_0:
            return unpack_q4_0;
        case DType::kQ8_0:
            return unpack_q8_0;
        case DType::kQ4_K:
            return unpack_q4_k;
        case DType::kQ5_K:
            return unpack_q5_k;
        case DType::kQ6_K:
            return unpack_q6_k;
        default:
            return nullptr;
    }
}

bool is_16bit(DType type) {
    return type == DType::kF16 || type == DType::kBF16;
}

float widen(DType type, std::uint16_t bits) {
    return type == DType::kF16 ? to_f32(F16{bits}) : to_f32(BF16{bits});
}

}  // namespace

std::int64_t panel_count(std::int64_t rows) {
    return (rows + kPanelRows - 1) / kPanelRows;
}

std::int64_t panel_bytes(DType type, std::int64_t cols) {
    if (is_16bit(type)) return 4 * kPanelRows * ((cols + 1) / 2);
    return cols / dtype_info(type).block_elements * packed_block_bytes(type);
}

void pack_panel(DType type, const std::byte* rows, int valid_rows, std::int64_t cols, std::byte* out) {
    if (type == DType::kF32 || is_16bit(type)) return pack_floats(rows, valid_rows, row_bytes(type, cols), out);

    const std::int64_t file_row_bytes = row_bytes(type, cols);
    const PackBlockFn pack_block = pack_block_fn(type);
    if (pack_block == nullptr) {  // raw: missing rows are zero bytes, which every one of these types reads as zeros
        const auto valid_bytes = static_cast<std::size_t>(valid_rows * file_row_bytes);
        std::memcpy(out, rows, valid_bytes);
        std::memset(out + valid_bytes, 0, static_cast<std::size_t>(kPanelRows * file_row_bytes) - valid_bytes);
        return;
    }
    const DTypeInfo& info = dtype_info(type);
    const std::int64_t out_block_bytes = packed_block_bytes(type);
    for (std::int64_t b = 0; b < cols / info.block_elements; ++b) {
        BlockRows blocks;
        for (int row = 0; row < kPanelRows; ++row)
            blocks[row] = row < valid_rows ? rows + row * file_row_bytes + b * info.block_bytes : kZeros.data();
        pack_block(blocks, out + b * out_block_bytes);
    }
}

void unpack_row(DType type, const std::byte* panel, int lane, std::int64_t cols, float* out) {
    if (type == DType::kF32) {
        for (std::int64_t k = 0; k < cols; ++k) std::memcpy(out + k, panel + 4 * (k * kPanelRows + lane), 4);
        return;
    }
    if (is_16bit(type)) {
        for (std::int64_t k = 0; k < cols; ++k)
            out[k] = widen(type, u16_at(panel, 4 * (k / 2 * kPanelRows + lane) + 2 * (k % 2)));
        return;
    }
    const UnpackBlockFn unpack_block = unpack_block_fn(type);
    if (unpack_block == nullptr) return dequantize_row(type, panel + lane * row_bytes(type, cols), cols, out);
    const std::int64_t block_elements = dtype_info(type).block_elements;
    for (std::int64_t k = 0; k < cols; k += block_elements) {
        unpack_block(panel, lane, out + k);
        panel += packed_block_bytes(type);
    }
}

void dequantize_panel(DType type, const std::byte* panel, std::int64_t cols, float* out) {
    if (type == DType::kF32) {
        std::memcpy(out, panel, static_cast<std::size_t>(4 * kPanelRows * cols));
        return;
    }
    // A stretch of k at a time: the transposed stores stay in the first-level cache (16 KiB).
    constexpr std::int64_t kStretch = 256;
    const std::int64_t block_elements = dtype_info(type).block_elements;
    const bool raw = !is_16bit(type) && unpack_block_fn(type) == nullptr;
    std::array<float, kStretch> row;
    for (std::int64_t k = 0; k < cols; k += kStretch) {
        const std::int64_t count = std::min(kStretch, cols - k);
        for (int lane = 0; lane < kPanelRows; ++lane) {
            if (raw) {
                dequantize_row(type, panel + lane * row_bytes(type, cols) + row_bytes(type, k), count, row.data());
            } else if (is_16bit(type)) {
                unpack_row(type, panel + panel_bytes(type, k), lane, count, row.data());
            } else {
                unpack_row(type, panel + k / block_elements * packed_block_bytes(type), lane, count, row.data());
            }
            for (std::int64_t i = 0; i < count; ++i) out[(k + i) * kPanelRows + lane] = row[i];
        }
    }
}

}  // namespace frontier

// Random weights in any type: valid blocks with a chosen spread, for tests and for models of a known shape.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"

namespace frontier {

// Writes blocks [first_block, first_block + blocks) of the tensor named by (seed, stream) to out, which holds
// blocks * dtype_info(type).block_bytes bytes. A block's bytes depend only on its index, so that any sub-range, made
// alone or in parallel, is the same. Everything is finite, every bit pattern of the quants (and of integer sub-scales)
// occurs, and the values have mean 0 and standard deviation `stddev` over many blocks; scales that f16 cannot hold are
// clamped to its range. F32, F16 and BF16 values are nearly normal, quantised ones nearly uniform within a block.
void fill_random_blocks(DType type, std::uint64_t seed, std::uint64_t stream, std::int64_t first_block,
                        std::int64_t blocks, float stddev, std::byte* out);

}  // namespace frontier

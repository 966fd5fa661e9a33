// Matrix products of steps with many tokens in bf16 tiles, on instruction sets that have them: activations rounded to
// bf16, weights unpacked to bf16 once for up to 512 tokens.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "backend/product_part.h"

namespace frontier {

class TileProducts {
public:
    TileProducts(const KernelTable& kernels, ThreadPool& pool) : kernels_(kernels), pool_(pool) {}

    // Whether a step of so many tokens multiplies this matrix here: quantised weights that would otherwise meet int8
    // activations, and BF16 weights whose activations are to be rounded to bf16.
    bool takes(const PackedMatrix& matrix, std::int64_t tokens) const;

    // As in Products; a matrix or a number of tokens that is not taken needs nothing.
    Status prepare(const PackedMatrix& matrix, std::int64_t tokens);
    // All parts are taken.
    void run(std::span<const ProductPart> parts, Epilogue epilogue, const float* in, std::int64_t in_stride,
             std::int64_t tokens);

    std::int64_t scratch_bytes() const;

private:
    struct Job;
    struct Item;
    struct WorkerScratch {
        AlignedBuffer sums;    // f32 [pair of panels][tokens of a block][32 outputs]
        AlignedBuffer tiles;   // kTileScratchBytes
        AlignedBuffer packed;  // a pair of panels, or one of gate and one of up, of matrices that lie in file order
    };

    Item item_at(const Job& job, std::int64_t index) const;
    void run_item(const Job& job, const Item& item, int worker);
    void multiply_pair(const PackedMatrix& matrix, std::int64_t pair, std::int64_t first_k, const Item& item,
                       float* sums, std::byte* packed, int worker);
    void finish_pair(const Job& job, const Item& item, std::int64_t pair, float* sums, float* up_sums) const;

    const KernelTable& kernels_;
    ThreadPool& pool_;
    AlignedBuffer activations_;  // bf16 [tokens][activation_stride(cols)]
    std::vector<WorkerScratch> workers_;
};

}  // namespace frontier

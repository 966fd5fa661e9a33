// Matrix products of the CPU backend: activations prepared once per input, panels of all matrices of an operation in
// one parallel loop, bias, residual and activation applied while the results are in cache.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "backend/item_queues.h"
#include "backend/product_part.h"
#include "backend/tile_products.h"

namespace frontier {

class Products {
public:
    Products(const KernelTable& kernels, ThreadPool& pool) : kernels_(kernels), pool_(pool), tiles_(kernels, pool) {}

    // Grows the scratch so that `tokens` rows of `matrix` can be multiplied. Memory is kept.
    Status prepare(const PackedMatrix& matrix, std::int64_t tokens);

    // in: [tokens][in_stride]. All parts have as many columns. prepare() has been called for each of them.
    void run(std::span<const ProductPart> parts, Epilogue epilogue, const float* in, std::int64_t in_stride,
             std::int64_t tokens);

    // Whether run() multiplies by this matrix in bf16 tiles; gate and up both or neither.
    bool in_tiles(const PackedMatrix& matrix, std::int64_t tokens) const { return tiles_.takes(matrix, tokens); }

    std::int64_t scratch_bytes() const;

private:
    struct Job;
    struct Need {  // in which forms the parts want their activations
        bool int8 = false;
        bool bf16 = false;
        bool f16 = false;
    };
    struct WorkerScratch {
        AlignedBuffer tile;    // f32 [2][tokens of a block][16 panels of a run]
        AlignedBuffer panel;   // f32 [cols][16], a dequantised panel
        AlignedBuffer packed;  // a panel of a matrix that lies in file order
    };

    Q8Activations q8(std::int64_t cols);  // all tokens of a product with so many columns
    void prepare_rows(const Need& need, const Job& job, std::int64_t begin, std::int64_t end);
    void cut_groups(const Job& job, std::int64_t least, std::int64_t most);
    void run_item(const Job& job, std::int64_t item, int worker);
    void run_panels(const Job& job, const ProductPart& part, std::int64_t first_panel, std::int64_t count,
                    std::int64_t first_token, std::int64_t tokens, int worker);
    void multiply_panels(const PackedMatrix& matrix, std::int64_t first_panel, std::int64_t count, const Job& job,
                         std::int64_t first_token, std::int64_t tokens, float* out, std::int64_t out_stride,
                         int worker);

    const KernelTable& kernels_;
    ThreadPool& pool_;
    TileProducts tiles_;
    AlignedBuffer quants_;        // i8 [tokens][cols]
    AlignedBuffer scales_;        // f32 [tokens][cols / 32]
    AlignedBuffer scaled_sums_;   // f32 [tokens][cols / 32]
    AlignedBuffer sums_;          // [tokens][cols / 16], see Q8Activations
    AlignedBuffer rounded_bf16_;  // f32 [tokens][cols]
    AlignedBuffer rounded_f16_;   // f32 [tokens][cols]
    std::vector<WorkerScratch> workers_;
    // Of the call that runs: the panel at which each group begins, and the end; the items' end for each thread.
    std::vector<std::int64_t> groups_;
    std::vector<std::int64_t> ends_;
    ItemQueues queues_;
};

}  // namespace frontier

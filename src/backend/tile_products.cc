#include "backend/tile_products.h"

#include <algorithm>
#include <functional>

#include "backend/cpu_parallel.h"
#include "platform/topology.h"

namespace frontier {
namespace {

constexpr std::int64_t kPairRows = 2 * kPanelRows;
// Tokens of one block at most. Unpacking a tile of weights costs as much as multiplying it by some 160 tokens: with 512
// it is a quarter of the time, and their activations over one block of k (256 KB) still fit into L2.
constexpr std::int64_t kMaxTokenBlock = 512;
constexpr std::int64_t kTokenStripe = 32;  // what the kernels multiply at once
// Items per thread at least, where there are pairs enough: bounds the wait for the last one.
constexpr std::int64_t kItemsPerThread = 4;
// Products below this many multiply-adds (about 5 us on one core) run on the caller: a barrier costs as much.
constexpr std::int64_t kSerialMultiplyAdds = 2'000'000;

// Elements between tokens: whole tiles of 32 columns, an odd number of them, so that the 16 rows of a tile never fall
// on the same set of the cache.
std::int64_t activation_stride(std::int64_t cols) {
    return (ceil_div(cols, kTokenStripe) | 1) * kTokenStripe;
}

std::int64_t pairs_of(const PackedMatrix& matrix) {
    return ceil_div(matrix.panels, 2);
}

// How tokens are cut into blocks, equal ones, each whole stripes.
struct TokenBlocks {
    explicit TokenBlocks(std::int64_t tokens)
        : count(ceil_div(tokens, kMaxTokenBlock)),
          tokens_each(ceil_div(ceil_div(tokens, count), kTokenStripe) * kTokenStripe) {}
    std::int64_t count;
    std::int64_t tokens_each;
};

std::int64_t sums_bytes_of_pair(std::int64_t tokens) {
    return tokens * kPairRows * 4;
}

// Pairs of one item that give every thread its share of items.
std::int64_t balanced_pairs(const PackedMatrix& matrix, const TokenBlocks& blocks, int threads) {
    return std::max<std::int64_t>(1, pairs_of(matrix) * blocks.count / (threads * kItemsPerThread));
}

// The sums of an item take half of L2: the more pairs, the more often a block of activations is used per load.
std::int64_t sums_bytes_most() {
    return topology().l2_bytes / 2;
}

}  // namespace

// One call of run(): the pairs of panels of each part, cut into groups, times blocks of tokens.
struct TileProducts::Job {
    std::span<const ProductPart> parts;
    Epilogue epilogue = Epilogue::kStore;
    std::int64_t cols = 0;
    std::int64_t tokens = 0;
    TokenBlocks blocks{1};
    int pair_sums = 1;  // matrices that one pair of an item stands for: gate and up are multiplied together

    // With silu the second part has no items of its own.
    std::span<const ProductPart> item_parts() const { return pair_sums == 2 ? parts.first(1) : parts; }
    std::int64_t group_pairs(const PackedMatrix& matrix, int threads) const {
        const std::int64_t fitting = sums_bytes_most() / (sums_bytes_of_pair(blocks.tokens_each) * pair_sums);
        return std::clamp<std::int64_t>(fitting, 1, balanced_pairs(matrix, blocks, threads));
    }
};

struct TileProducts::Item {
    const ProductPart* part = nullptr;
    std::int64_t first_pair = 0;
    std::int64_t last_pair = 0;
    std::int64_t first_token = 0;
    std::int64_t tokens = 0;
};

bool TileProducts::takes(const PackedMatrix& matrix, std::int64_t tokens) const {
    if (tokens < kTileTokens || kernels_.bf16_tiles[static_cast<std::size_t>(matrix.type)] == nullptr) return false;
    return matrix.path == ProductPath::kInt8 || matrix.activations == DType::kBF16;
}

Status TileProducts::prepare(const PackedMatrix& matrix, std::int64_t tokens) {
    if (!takes(matrix, tokens)) return {};
    workers_.resize(static_cast<std::size_t>(pool_.threads()));
    FR_TRY(activations_.grow(tokens * activation_stride(matrix.cols) * 2));
    // What any number of tokens up to this one needs, for gate and up: one pair of each, or a group within the bound.
    const std::int64_t block_tokens = std::min(kMaxTokenBlock, ceil_div(tokens, kTokenStripe) * kTokenStripe);
    const std::int64_t pair_bytes = 2 * sums_bytes_of_pair(block_tokens);
    const std::int64_t group_bytes = balanced_pairs(matrix, TokenBlocks(tokens), pool_.threads()) * pair_bytes;
    for (WorkerScratch& worker : workers_) {
        FR_TRY(worker.sums.grow(std::max(pair_bytes, std::min(sums_bytes_most(), group_bytes))));
        FR_TRY(worker.tiles.grow(kTileScratchBytes));
        if (matrix.file_rows != nullptr) FR_TRY(worker.packed.grow(4 * matrix.panel_bytes));
    }
    return {};
}

std::int64_t TileProducts::scratch_bytes() const {
    std::size_t bytes = activations_.size_bytes();
    for (const WorkerScratch& worker : workers_)
        bytes += worker.sums.size_bytes() + worker.tiles.size_bytes() + worker.packed.size_bytes();
    return static_cast<std::int64_t>(bytes);
}

void TileProducts::run(std::span<const ProductPart> parts, Epilogue epilogue, const float* in, std::int64_t in_stride,
                       std::int64_t tokens) {
    Job job;
    job.parts = parts;
    job.epilogue = epilogue;
    job.cols = parts.front().matrix->cols;
    job.tokens = tokens;
    job.blocks = TokenBlocks(tokens);
    job.pair_sums = epilogue == Epilogue::kSiluMultiply ? 2 : 1;

    const auto round = [&](std::int64_t begin, std::int64_t end, int) {
        for (std::int64_t t = begin; t < end; ++t)
            kernels_.round_bf16(in + t * in_stride, job.cols,
                                activations_.as<std::uint16_t>() + t * activation_stride(job.cols));
    };
    for_rows(pool_, tokens, job.cols, round);

    std::int64_t items = 0;
    std::int64_t multiply_adds = 0;
    for (const ProductPart& part : job.item_parts()) {
        const PackedMatrix& matrix = *part.matrix;
        items += ceil_div(pairs_of(matrix), job.group_pairs(matrix, pool_.threads())) * job.blocks.count;
        multiply_adds += job.pair_sums * matrix.panels * kPanelRows * matrix.cols * tokens;
    }
    const auto body = [&](std::int64_t begin, std::int64_t end, int worker) {
        for (std::int64_t i = begin; i < end; ++i) run_item(job, item_at(job, i), worker);
    };
    pool_.parallel_for(items, multiply_adds <= kSerialMultiplyAdds ? items : 1, std::ref(body));
}

// Neighbouring items are the token blocks of one group: its weights come from DRAM once.
TileProducts::Item TileProducts::item_at(const Job& job, std::int64_t index) const {
    const ProductPart* part = job.item_parts().data();
    std::int64_t group_pairs = job.group_pairs(*part->matrix, pool_.threads());
    std::int64_t groups = ceil_div(pairs_of(*part->matrix), group_pairs);
    while (index >= groups * job.blocks.count) {
        index -= groups * job.blocks.count;
        ++part;
        group_pairs = job.group_pairs(*part->matrix, pool_.threads());
        groups = ceil_div(pairs_of(*part->matrix), group_pairs);
    }
    Item item;
    item.part = part;
    item.first_pair = index / job.blocks.count * group_pairs;
    item.last_pair = std::min(pairs_of(*part->matrix), item.first_pair + group_pairs);
    item.first_token = index % job.blocks.count * job.blocks.tokens_each;
    item.tokens = std::min(job.blocks.tokens_each, job.tokens - item.first_token);
    return item;
}

// Blocks of k outside, pairs inside: the activations of one block of k stay in L2 for all pairs of the group, while the
// sums, compact in memory, go on from block to block. They reach the strided output once, at the end. Matrices in file
// order are packed pair by pair, so there a pair goes through all of k before the next.
void TileProducts::run_item(const Job& job, const Item& item, int worker) {
    float* sums = workers_[worker].sums.as<float>();
    const std::int64_t pair_floats = job.blocks.tokens_each * kPairRows;
    const auto sums_of = [&](std::int64_t pair, int matrix) {
        return sums + ((pair - item.first_pair) * job.pair_sums + matrix) * pair_floats;
    };
    const PackedMatrix& matrix = *item.part->matrix;
    const PackedMatrix& second = job.pair_sums == 2 ? *job.parts[1].matrix : matrix;
    std::byte* packed = workers_[worker].packed.data();
    std::byte* second_packed = packed + (matrix.file_rows != nullptr ? 2 * matrix.panel_bytes : 0);
    const bool file_order = matrix.file_rows != nullptr || second.file_rows != nullptr;
    const std::int64_t together = file_order ? 1 : item.last_pair - item.first_pair;
    for (std::int64_t first = item.first_pair; first < item.last_pair; first += together) {
        for (std::int64_t k = 0; k < job.cols; k += kTileBlockK) {
            for (std::int64_t pair = first; pair < first + together; ++pair) {
                multiply_pair(matrix, pair, k, item, sums_of(pair, 0), packed, worker);
                if (job.pair_sums == 2) multiply_pair(second, pair, k, item, sums_of(pair, 1), second_packed, worker);
            }
        }
    }
    for (std::int64_t pair = item.first_pair; pair < item.last_pair; ++pair)
        finish_pair(job, item, pair, sums_of(pair, 0), sums_of(pair, job.pair_sums - 1));
}

void TileProducts::multiply_pair(const PackedMatrix& matrix, std::int64_t pair, std::int64_t first_k, const Item& item,
                                 float* sums, std::byte* packed, int worker) {
    TileTask task;
    task.panel_count = static_cast<int>(std::min<std::int64_t>(2, matrix.panels - 2 * pair));
    task.panel_bytes = matrix.panel_bytes;
    if (matrix.file_rows == nullptr) {
        task.panels = matrix.panel(2 * pair, nullptr);
    } else {
        task.panels = packed;
        for (int p = 0; first_k == 0 && p < task.panel_count; ++p)
            matrix.panel(2 * pair + p, packed + p * matrix.panel_bytes);
    }
    task.first_k = first_k;
    task.k_count = static_cast<int>(std::min<std::int64_t>(kTileBlockK, matrix.cols - first_k));
    task.activation_stride = activation_stride(matrix.cols);
    task.activations = activations_.as<std::uint16_t>() + item.first_token * task.activation_stride;
    task.tokens = static_cast<int>(item.tokens);
    task.out = sums;
    task.out_stride = kPairRows;
    task.scratch = workers_[worker].tiles.data();
    kernels_.bf16_tiles[static_cast<std::size_t>(matrix.type)](task);
}

void TileProducts::finish_pair(const Job& job, const Item& item, std::int64_t pair, float* sums, float* up_sums) const {
    const ProductPart& part = *item.part;
    const std::int64_t first_row = pair * kPairRows;
    const std::int64_t rows = std::min(kPairRows, part.matrix->rows - first_row);
    if (job.epilogue == Epilogue::kSiluMultiply) kernels_.silu_multiply(sums, up_sums, item.tokens * kPairRows, sums);
    for (std::int64_t t = 0; t < item.tokens; ++t) {
        float* product = sums + t * kPairRows;
        float* out = part.out + (item.first_token + t) * part.out_stride + first_row;
        if (part.bias != nullptr)
            for (std::int64_t i = 0; i < rows; ++i) product[i] += part.bias[first_row + i];
        if (job.epilogue == Epilogue::kAdd) {
            for (std::int64_t i = 0; i < rows; ++i) out[i] += product[i];
        } else {
            std::copy_n(product, rows, out);
        }
    }
}

}  // namespace frontier

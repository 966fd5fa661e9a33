// Speed of the matmul kernels, one thread.
//   prefill/<isa>/<type>/<tokens>: one panel after another of a small matrix past many tokens; MAC/cycle, where a cycle
//     is that of a chain of dependent additions timed beside it (the nominal frequency says little)
//   tiles/<isa>/<type>/<tokens>: the same in bf16 tiles, unpacking included
//   decode/<isa>/<type>: one token, weights far larger than the last-level cache; GB/s of weights
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "cycles.h"
#include "kernels/kernels.h"
#include "platform/memory.h"
#include "tensor/random_blocks.h"

namespace frontier {
namespace {

constexpr std::int64_t kCols = 2048;
constexpr int kDecodePanels = 4;  // of one call

std::vector<std::byte> random_panels(DType type, std::int64_t panels) {
    const std::int64_t bytes = panel_bytes(type, kCols);
    const std::int64_t blocks = kPanelRows * kCols / dtype_info(type).block_elements;
    std::vector<std::byte> rows(static_cast<std::size_t>(kPanelRows * row_bytes(type, kCols)));
    std::vector<std::byte> packed(static_cast<std::size_t>(panels * bytes));
    for (std::int64_t p = 0; p < panels; ++p) {
        fill_random_blocks(type, 1, 0, p * blocks, blocks, 0.02F, rows.data());
        pack_panel(type, rows.data(), kPanelRows, kCols, packed.data() + p * bytes);
    }
    return packed;
}

struct Inputs {
    Inputs(const KernelTable& table, int tokens)
        : x(tokens * kCols),
          quants(x.size()),
          scales(x.size() / 32),
          scaled_sums(x.size() / 32),
          sums(x.size() / 16),
          out(tokens * kPanelRows * kDecodePanels) {
        fill_random_blocks(DType::kF32, 2, 0, 0, static_cast<std::int64_t>(x.size()), 1.0F,
                           reinterpret_cast<std::byte*>(x.data()));
        view = {quants.data(), scales.data(), scaled_sums.data(), sums.data(), kCols};
        for (int t = 0; t < tokens; ++t) table.quantize_q8(x.data() + t * kCols, view.from_token(t));
    }
    std::vector<float> x;
    std::vector<std::int8_t> quants;
    std::vector<float> scales;
    std::vector<float> scaled_sums;
    std::vector<std::int16_t> sums;
    std::vector<float> out;
    Q8Activations view;
};

void multiply(const KernelTable& table, DType type, const std::byte* panel, int panels, Inputs& in, int tokens) {
    const auto i = static_cast<std::size_t>(type);
    if (table.int8_panels[i] != nullptr)
        table.int8_panels[i](panel, panels, in.view, tokens, in.out.data(), panels * kPanelRows);
    else
        table.float_panels[i](panel, panels, kCols, in.x.data(), kCols, tokens, in.out.data(), panels * kPanelRows);
}

void prefill(benchmark::State& state, Isa isa, DType type, int tokens) {
    const KernelTable& table = kernel_table(isa);
    constexpr std::int64_t kPanels = 8;
    const auto panels = random_panels(type, kPanels);
    Inputs in(table, tokens);
    const double hz = cycles_per_second();
    std::int64_t next = 0;
    for (auto _ : state) {
        multiply(table, type, panels.data() + next * panel_bytes(type, kCols), 1, in, tokens);
        next = (next + 1) % kPanels;
        benchmark::DoNotOptimize(in.out.data());
    }
    const double macs = static_cast<double>(state.iterations()) * tokens * kPanelRows * kCols;
    state.counters["MAC/cycle"] = benchmark::Counter(macs / hz, benchmark::Counter::kIsRate);
}

void tiles(benchmark::State& state, Isa isa, DType type, int tokens) {
    const KernelTable& table = kernel_table(isa);
    constexpr std::int64_t kPairs = 4;
    constexpr std::int64_t kStride = kCols + 32;  // an odd number of cache lines
    const auto panels = random_panels(type, 2 * kPairs);
    const Inputs in(table, tokens);
    AlignedBuffer activations = AlignedBuffer::allocate(static_cast<std::size_t>(tokens * kStride * 2)).value();
    AlignedBuffer sums = AlignedBuffer::allocate(static_cast<std::size_t>(kPairs * tokens * 32 * 4)).value();
    AlignedBuffer scratch = AlignedBuffer::allocate(static_cast<std::size_t>(kTileScratchBytes)).value();
    for (int t = 0; t < tokens; ++t)
        table.round_bf16(in.x.data() + t * kCols, kCols, activations.as<std::uint16_t>() + t * kStride);
    TileTask task;
    task.panel_count = 2;
    task.panel_bytes = panel_bytes(type, kCols);
    task.k_count = kTileBlockK;
    task.activations = activations.as<std::uint16_t>();
    task.activation_stride = kStride;
    task.tokens = tokens;
    task.out_stride = 32;
    task.scratch = scratch.data();
    const double hz = cycles_per_second();
    for (auto _ : state) {
        for (task.first_k = 0; task.first_k < kCols; task.first_k += kTileBlockK) {
            for (std::int64_t pair = 0; pair < kPairs; ++pair) {
                task.panels = panels.data() + 2 * pair * task.panel_bytes;
                task.out = sums.as<float>() + pair * tokens * 32;
                table.bf16_tiles[static_cast<std::size_t>(type)](task);
            }
        }
        benchmark::DoNotOptimize(sums.data());
    }
    const double macs = static_cast<double>(state.iterations()) * tokens * 2 * kPairs * kPanelRows * kCols;
    state.counters["MAC/cycle"] = benchmark::Counter(macs / hz, benchmark::Counter::kIsRate);
}

void decode(benchmark::State& state, Isa isa, DType type) {
    const KernelTable& table = kernel_table(isa);
    const std::int64_t bytes = panel_bytes(type, kCols);
    const std::int64_t distinct = 64;
    const std::int64_t panels =
        (256LL << 20) / bytes / kDecodePanels * kDecodePanels;  // eight times the usual last-level cache
    const auto some = random_panels(type, distinct);
    AlignedBuffer all = std::move(AlignedBuffer::allocate(static_cast<std::size_t>(panels * bytes)).value());
    for (std::int64_t p = 0; p < panels; ++p)
        std::copy_n(some.data() + p % distinct * bytes, bytes, all.data() + p * bytes);
    Inputs in(table, 1);
    for (auto _ : state)
        for (std::int64_t p = 0; p + kDecodePanels <= panels; p += kDecodePanels) {
            multiply(table, type, all.data() + p * bytes, kDecodePanels, in, 1);
            benchmark::DoNotOptimize(in.out.data());
        }
    const double total = static_cast<double>(state.iterations()) * static_cast<double>(panels * bytes);
    state.counters["GB/s"] = benchmark::Counter(total * 1e-9, benchmark::Counter::kIsRate);
}

void register_all() {
    for (const Isa isa : supported_isas()) {
        for (const DType type : {DType::kQ4_0, DType::kQ8_0, DType::kQ4_K, DType::kQ5_K, DType::kQ6_K, DType::kF32,
                                 DType::kF16, DType::kBF16}) {
            const std::string suffix = fmt::format("{}/{}", isa_name(isa), dtype_name(type));
            for (const int tokens : {1, 2, 4, 8, 16, 128, 512})
                benchmark::RegisterBenchmark(fmt::format("prefill/{}/{}", suffix, tokens).c_str(),
                                             [=](benchmark::State& state) { prefill(state, isa, type, tokens); });
            for (const int tokens : {32, 64, 128, 256, 512})
                if (kernel_table(isa).bf16_tiles[static_cast<std::size_t>(type)] != nullptr)
                    benchmark::RegisterBenchmark(fmt::format("tiles/{}/{}", suffix, tokens).c_str(),
                                                 [=](benchmark::State& state) { tiles(state, isa, type, tokens); });
            benchmark::RegisterBenchmark(("decode/" + suffix).c_str(),
                                         [=](benchmark::State& state) { decode(state, isa, type); });
        }
    }
}

}  // namespace
}  // namespace frontier

int main(int argc, char** argv) {
    benchmark::Initialize(&argc, argv);
    frontier::register_all();
    benchmark::RunSpecifiedBenchmarks();
    return 0;
}

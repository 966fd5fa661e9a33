// What the arithmetic units of this CPU can sustain for the instruction mixes of the AVX2 kernels, one thread: eight
// independent chains in registers, no loads, no scales. Products (of one weight and one activation) per cycle, a cycle
// being that of a chain of dependent additions timed beside it. A kernel cannot be faster than its mix.
#include <benchmark/benchmark.h>

#include "cycles.h"
#include "platform/cpu_features.h"

namespace frontier {
namespace {

// x(0) to x(7), registers 8 + n as the sums and n % 6 + 2 as temporaries.
#define FR_EIGHT(x) \
    x("2", "8") x("3", "9") x("4", "10") x("5", "11") x("6", "12") x("7", "13") x("2", "14") x("3", "15")
#define FR_LOOP(body)                                                                                             \
    asm volatile("vzeroall\n 1:\n" body "dec %0\n jnz 1b\n"                                                       \
                 : "+r"(iterations)                                                                               \
                 :                                                                                                \
                 : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", \
                   "xmm11", "xmm12", "xmm13", "xmm14", "xmm15")

// 4-bit weights: products of pairs to int16, one addition each.
#define FR_NIBBLES(t, s) "vpmaddubsw %%ymm0, %%ymm1, %%ymm" t "\n vpaddw %%ymm" t ", %%ymm" s ", %%ymm" s "\n"
// 8-bit weights: sign moved to the activation, pairs to int16, pairs of those to int32, an addition.
#define FR_BYTES(t, s)                                                                                  \
    "vpsignb %%ymm0, %%ymm1, %%ymm" t "\n vpmaddubsw %%ymm" t ", %%ymm0, %%ymm" t "\n vpmaddwd %%ymm" t \
    ", %%ymm1, %%ymm" t "\n vpaddd %%ymm" t ", %%ymm" s ", %%ymm" s "\n"
// 8-bit weights and activations widened to int16 beforehand.
#define FR_WIDENED(t, s) "vpmaddwd %%ymm0, %%ymm1, %%ymm" t "\n vpaddd %%ymm" t ", %%ymm" s ", %%ymm" s "\n"
#define FR_FLOATS(t, s) "vfmadd231ps %%ymm0, %%ymm1, %%ymm" s "\n"

void nibbles(std::int64_t iterations) {
    FR_LOOP(FR_EIGHT(FR_NIBBLES));
}
void bytes(std::int64_t iterations) {
    FR_LOOP(FR_EIGHT(FR_BYTES));
}
void widened(std::int64_t iterations) {
    FR_LOOP(FR_EIGHT(FR_WIDENED));
}
void floats(std::int64_t iterations) {
    FR_LOOP(FR_EIGHT(FR_FLOATS));
}

void measure(benchmark::State& state, void (*loop)(std::int64_t), int products) {
    constexpr std::int64_t kIterations = 20'000;
    const double hz = cycles_per_second();
    for (auto _ : state) loop(kIterations);
    const double total = static_cast<double>(state.iterations()) * kIterations * 8 * products;
    state.counters["products/cycle"] = benchmark::Counter(total / hz, benchmark::Counter::kIsRate);
}

}  // namespace
}  // namespace frontier

int main(int argc, char** argv) {
    using namespace frontier;
    benchmark::Initialize(&argc, argv);
    if (!cpu_features().avx2) return 0;
    const auto add = [](const char* name, void (*loop)(std::int64_t), int products) {
        benchmark::RegisterBenchmark(name, [=](benchmark::State& state) { measure(state, loop, products); });
    };
    add("4-bit weights: maddubs, paddw", nibbles, 32);
    add("8-bit weights: sign, maddubs, madd, paddd", bytes, 32);
    add("16-bit: madd, paddd", widened, 16);
    add("f32: fmadd", floats, 8);
    benchmark::RunSpecifiedBenchmarks();
    return 0;
}

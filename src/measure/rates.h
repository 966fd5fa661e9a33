// From a time to a rate and from a rate to a share of the machine's limit: the definitions that `run` and `bench
// engine` have in common.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "backend/backend.h"
#include "measure/roofline.h"
#include "model/model.h"

namespace frontier {

struct StepCost {
    double bytes = 0;              // weights read by one decode step, whatever the batch; file bytes
    double flops = 0;              // per token, of the weight matrices
    std::int64_t step_tokens = 1;  // of one sequence
};
StepCost decode_cost(const Model& model);
// Of a prompt whose last row alone goes through the output head.
StepCost prefill_cost(const Model& model, std::int64_t prompt_tokens);

// Operations per second of the matrix products at most, 0 if unknown: that of the ISA and of the operation that the
// compute type uses ("int8..." int8_dot, "bf16..." bf16_dot where the ISA has it, f32_fma otherwise); on amx, in steps
// of so many tokens that bf16 products use tiles, bf16_tile.
double arithmetic_limit_flops(const Roofline& roofline, Isa isa, std::string_view compute_type, int threads,
                              std::int64_t step_tokens);

// What the machine could do at most, and the share of it that was reached. All figures are rates per second.
// Decode of one sequence: bytes read / measured DRAM read bandwidth. Decode of several: tokens per second / the smaller
// of two limits, batch * bandwidth / bytes and arithmetic peak / flops: a large batch shares its reads and is bound by
// arithmetic at last. Prefill: flops / arithmetic peak.
std::optional<double> roofline_share_of(const Roofline& roofline, std::string_view test, std::int64_t batch,
                                        double tokens_per_s, const StepCost& cost, Isa isa,
                                        std::string_view compute_type, int threads);

// What a process that runs the model may take at its peak: packed weights and KV cache, a tenth more, and 64 MB.
std::int64_t memory_limit_bytes(const BackendMemory& memory);

}  // namespace frontier

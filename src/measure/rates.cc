#include "measure/rates.h"

#include <algorithm>

namespace frontier {

StepCost decode_cost(const Model& model) {
    return {.bytes = static_cast<double>(model.decode_bytes()), .flops = static_cast<double>(model.flops_per_token())};
}

StepCost prefill_cost(const Model& model, std::int64_t prompt_tokens) {
    StepCost cost = decode_cost(model);
    cost.step_tokens = prompt_tokens;
    const double head = 2.0 * model.config().vocab_size * model.config().hidden_size;
    cost.flops -= head * (1.0 - 1.0 / static_cast<double>(std::max<std::int64_t>(1, prompt_tokens)));
    return cost;
}

double arithmetic_limit_flops(const Roofline& roofline, Isa isa, std::string_view compute_type, int threads,
                              std::int64_t step_tokens) {
    const bool amx = isa == Isa::kAmx;
    if (amx && compute_type.contains("bf16") && step_tokens >= kTileTokens)
        return roofline.gflops(isa, "bf16_tile", threads) * 1e9;
    const Isa vectors = amx ? Isa::kAvx512 : isa;
    const auto peak_of = [&](std::string_view operation) { return roofline.gflops(vectors, operation, threads) * 1e9; };
    double peak = 0;
    if (compute_type.starts_with("int8")) peak = peak_of("int8_dot");
    if (compute_type.starts_with("bf16")) peak = peak_of("bf16_dot");
    return peak > 0 ? peak : peak_of("f32_fma");
}

std::optional<double> roofline_share_of(const Roofline& roofline, std::string_view test, std::int64_t batch,
                                        double tokens_per_s, const StepCost& cost, Isa isa,
                                        std::string_view compute_type, int threads) {
    const double peak_flops = arithmetic_limit_flops(roofline, isa, compute_type, threads, batch * cost.step_tokens);
    const double arithmetic_limit = cost.flops > 0 ? peak_flops / cost.flops : 0;
    const double bandwidth_limit =
        cost.bytes > 0 ? roofline.read_gb_per_s(threads) * 1e9 * static_cast<double>(batch) / cost.bytes : 0;
    double limit = 0;  // tokens per second
    if (test == "prefill") {
        limit = arithmetic_limit;
    } else if (batch == 1 || arithmetic_limit <= 0) {
        limit = bandwidth_limit;
    } else if (bandwidth_limit > 0) {
        limit = std::min(bandwidth_limit, arithmetic_limit);
    }
    if (limit <= 0) return std::nullopt;
    return tokens_per_s / limit;
}

std::int64_t memory_limit_bytes(const BackendMemory& memory) {
    constexpr std::int64_t kFixedBytes = 64'000'000;
    const std::int64_t data_bytes = memory.weight_bytes + memory.kv_bytes;
    return data_bytes + data_bytes / 10 + kFixedBytes;
}

}  // namespace frontier

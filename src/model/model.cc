// The forward pass of the llama family (llama, qwen2, qwen3), which differ by absent or present operands only.
#include "model/model.h"

namespace frontier {

void Model::record_forward(Step& step) const {
    step.ops.push_back(EmbedOp{.table = embedding_, .out = hidden_});
    for (std::int32_t layer = 0; layer < config_.layers; ++layer) record_layer(step, layer);
    step.ops.push_back(LogitsOp{
        .in = hidden_, .gain = output_norm_, .eps = config_.rms_norm_eps, .weight = head_, .bias = WeightId{}});
}

void Model::record_layer(Step& step, std::int32_t index) const {
    const Layer& w = layers_[static_cast<std::size_t>(index)];
    const float eps = config_.rms_norm_eps;
    std::vector<Op>& ops = step.ops;

    ops.push_back(RmsNormOp{.in = hidden_, .gain = w.attn_norm, .eps = eps, .out = normed_});
    ops.push_back(QkvOp{.in = normed_,
                        .q = w.q,
                        .k = w.k,
                        .v = w.v,
                        .q_bias = w.q_bias,
                        .k_bias = w.k_bias,
                        .v_bias = w.v_bias,
                        .q_out = q_,
                        .k_out = k_,
                        .v_out = v_});
    ops.push_back(RopeKvWriteOp{
        .layer = index, .q = q_, .k = k_, .v = v_, .q_norm = w.q_norm, .k_norm = w.k_norm, .norm_eps = eps});
    ops.push_back(AttentionOp{.layer = index,
                              .q = q_,
                              .out = attended_,
                              .scale = config_.attention_scale,
                              .window_tokens = config_.sliding_window_tokens});
    ops.push_back(
        ProjectResidualOp{.in = attended_, .weight = w.attn_out, .bias = w.attn_out_bias, .residual = hidden_});

    ops.push_back(RmsNormOp{.in = hidden_, .gain = w.ffn_norm, .eps = eps, .out = normed_});
    ops.push_back(GateUpOp{.in = normed_, .gate = w.gate, .up = w.up, .activation = Activation::kSilu, .out = ffn_});
    ops.push_back(ProjectResidualOp{.in = ffn_, .weight = w.down, .bias = WeightId{}, .residual = hidden_});
}

}  // namespace frontier

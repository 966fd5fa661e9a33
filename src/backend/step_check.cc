#include "backend/step_check.h"

#include <algorithm>

#include <fmt/format.h>

namespace frontier {
namespace {

// Walks the operations in order; the first fault stays in `fault_`.
class Checker {
public:
    Checker(const StepLimits& limits, const Step& step)
        : limits_(limits), step_(step), written_(limits.buffer_cols.size(), false) {}

    std::string run() {
        check_input();
        for (index_ = 0; index_ < step_.ops.size() && fault_.empty(); ++index_) {
            if (finished_) report("comes after the logits");
            std::visit([this](const auto& op) { check(op); }, step_.ops[index_]);
        }
        return fault_;
    }

private:
    template <typename... Args>
    void report(fmt::format_string<Args...> format, Args&&... args) {
        if (!fault_.empty()) return;
        if (*name_ != '\0') fault_ = fmt::format("op {} ({}): ", index_, name_);
        fault_ += fmt::format(format, std::forward<Args>(args)...);
    }

    void check_input() {
        const StepInput& input = step_.input;
        const auto rows = static_cast<std::int64_t>(input.tokens.size());
        if (rows < 1 || rows > limits_.max_rows) report("{} tokens, expected 1..{}", rows, limits_.max_rows);
        if (static_cast<std::int64_t>(input.positions.size()) != rows) report("positions do not match tokens");
        if (static_cast<std::int64_t>(input.logits_rows.size()) > limits_.max_logits_rows) {
            report("{} logits rows, expected at most {}", input.logits_rows.size(), limits_.max_logits_rows);
        }
        std::int64_t previous = -1;
        for (const std::int32_t row : input.logits_rows) {
            if (row <= previous || row >= rows) report("logits row {} is not ascending or not below {}", row, rows);
            previous = row;
        }
        std::int64_t next_row = 0;
        for (const SequenceSlice& slice : input.sequences) {
            check_slice(slice, next_row, rows);
            next_row += slice.rows;
        }
        if (next_row != rows) report("sequences cover {} of {} rows", next_row, rows);
    }

    void check_slice(const SequenceSlice& slice, std::int64_t expected_first, std::int64_t rows) {
        if (slice.first_row != expected_first || slice.rows < 1 || slice.first_row + slice.rows > rows ||
            slice.first_position < 0) {
            report("sequence slice [{}, +{}) at position {} does not follow row {}", slice.first_row, slice.rows,
                   slice.first_position, expected_first);
            return;
        }
        const std::int64_t end = std::int64_t{slice.first_position} + slice.rows;
        const std::int64_t pages = (end + kPageTokens - 1) / kPageTokens;
        if (static_cast<std::int64_t>(slice.block_table.size()) < pages) {
            report("block table of {} pages, expected {}", slice.block_table.size(), pages);
            return;
        }
        for (std::int64_t p = 0; p < pages; ++p) {
            // Pages behind a sliding window may have been given back: negative ids mark them.
            if (slice.block_table[p] >= limits_.kv.pages) {
                report("page {} is outside the cache of {}", slice.block_table[p], limits_.kv.pages);
            }
            if (slice.block_table[p] < 0) released_pages_ = true;
        }
        for (std::int32_t i = 0; i < slice.rows; ++i) {
            const std::int64_t row = std::int64_t{slice.first_row} + i;
            if (std::ssize(step_.input.positions) <= row) return;
            if (step_.input.positions[row] != slice.first_position + i) {
                report("row {} has position {}, expected {}", row, step_.input.positions[row],
                       slice.first_position + i);
            }
        }
    }

    const WeightShape* weight(WeightId id, const char* what) {
        if (id.index < 0 || id.index >= static_cast<std::int32_t>(limits_.weights.size())) {
            report("{} is not a weight", what);
            return nullptr;
        }
        return &limits_.weights[id.index];
    }
    // rows or cols < 0: any.
    void matrix(WeightId id, const char* what, std::int64_t rows, std::int64_t cols) {
        const WeightShape* shape = weight(id, what);
        if (shape == nullptr) return;
        if (shape->vector) report("{} is a vector, expected a matrix", what);
        if ((rows >= 0 && shape->rows != rows) || (cols >= 0 && shape->cols != cols)) {
            report("{} is [{}, {}], expected [{}, {}]", what, shape->rows, shape->cols, rows, cols);
        }
    }
    void vector(WeightId id, const char* what, std::int64_t cols) {
        const WeightShape* shape = weight(id, what);
        if (shape == nullptr) return;
        if (!shape->vector) report("{} is a matrix, expected a vector", what);
        if (shape->cols != cols) report("{} has {} elements, expected {}", what, shape->cols, cols);
    }
    void optional_vector(WeightId id, const char* what, std::int64_t cols) {
        if (id.valid()) vector(id, what, cols);
    }
    std::int64_t cols(BufferId id, const char* what) {
        if (id.index < 0 || id.index >= static_cast<std::int32_t>(limits_.buffer_cols.size())) {
            report("{} is not a buffer", what);
            return 0;
        }
        return limits_.buffer_cols[id.index];
    }
    std::int64_t read(BufferId id, const char* what) {
        const std::int64_t result = cols(id, what);
        if (result > 0 && !written_[id.index]) report("{} is read before it is written", what);
        return result;
    }
    void read_exactly(BufferId id, const char* what, std::int64_t expected) {
        const std::int64_t actual = read(id, what);
        if (actual != expected) report("{} has {} columns, expected {}", what, actual, expected);
    }
    void write(BufferId id, const char* what, std::int64_t expected) {
        const std::int64_t actual = cols(id, what);
        if (actual != expected) report("{} has {} columns, expected {}", what, actual, expected);
        if (actual > 0) written_[id.index] = true;
    }
    void distinct(BufferId a, BufferId b, const char* what) {
        if (a.index == b.index) report("{} are the same buffer", what);
    }

    void check(const EmbedOp& op) {
        name_ = "EmbedOp";
        matrix(op.table, "table", -1, cols(op.out, "out"));
        const WeightShape* table = weight(op.table, "table");
        for (const TokenId token : step_.input.tokens) {
            if (table != nullptr && (token < 0 || token >= table->rows)) {
                report("token {} is outside the vocabulary of {}", token, table->rows);
            }
        }
        write(op.out, "out", cols(op.out, "out"));
    }

    void check(const RmsNormOp& op) {
        name_ = "RmsNormOp";
        const std::int64_t dim = read(op.in, "in");
        vector(op.gain, "gain", dim);
        write(op.out, "out", dim);
    }

    void check(const QkvOp& op) {
        name_ = "QkvOp";
        const std::int64_t dim = read(op.in, "in");
        const std::int64_t kv_cols = std::int64_t{limits_.kv.kv_heads} * limits_.kv.head_dim;
        const std::int64_t q_cols = cols(op.q_out, "q_out");
        matrix(op.q, "q", q_cols, dim);
        matrix(op.k, "k", kv_cols, dim);
        matrix(op.v, "v", kv_cols, dim);
        optional_vector(op.q_bias, "q_bias", q_cols);
        optional_vector(op.k_bias, "k_bias", kv_cols);
        optional_vector(op.v_bias, "v_bias", kv_cols);
        write(op.q_out, "q_out", q_cols);
        write(op.k_out, "k_out", kv_cols);
        write(op.v_out, "v_out", kv_cols);
        distinct(op.q_out, op.k_out, "q_out and k_out");
        distinct(op.k_out, op.v_out, "k_out and v_out");
        distinct(op.q_out, op.v_out, "q_out and v_out");
        distinct(op.in, op.q_out, "in and q_out");
        distinct(op.in, op.k_out, "in and k_out");
        distinct(op.in, op.v_out, "in and v_out");
        fresh_qkv_ = true;
    }

    void check(const RopeKvWriteOp& op) {
        name_ = "RopeKvWriteOp";
        const std::int64_t head_dim = limits_.kv.head_dim;
        const std::int64_t kv_cols = limits_.kv.kv_heads * head_dim;
        layer(op.layer);
        read_exactly(op.k, "k", kv_cols);
        read_exactly(op.v, "v", kv_cols);
        query_heads(read(op.q, "q"));
        optional_vector(op.q_norm, "q_norm", head_dim);
        optional_vector(op.k_norm, "k_norm", head_dim);
        if (2 * limits_.rope_pairs > head_dim) report("{} rope pairs in heads of {}", limits_.rope_pairs, head_dim);
        if (!fresh_qkv_) report("q and k would be rotated twice");
        fresh_qkv_ = false;
        if (op.layer <= stored_layer_) report("layer {} comes after layer {}", op.layer, stored_layer_);
        stored_layer_ = op.layer;
    }

    void check(const AttentionOp& op) {
        name_ = "AttentionOp";
        layer(op.layer);
        const std::int64_t q_cols = read(op.q, "q");
        query_heads(q_cols);
        distinct(op.q, op.out, "q and out");
        if (fresh_qkv_ || op.layer != stored_layer_) report("keys of layer {} are not stored yet", op.layer);
        if (op.window_tokens < 0) report("window of {} tokens", op.window_tokens);
        if (released_pages_) check_window(op.window_tokens);
        write(op.out, "out", q_cols);
    }

    void check(const ProjectResidualOp& op) {
        name_ = "ProjectResidualOp";
        const std::int64_t in_cols = read(op.in, "in");
        const std::int64_t out_cols = read(op.residual, "residual");
        matrix(op.weight, "weight", out_cols, in_cols);
        optional_vector(op.bias, "bias", out_cols);
        distinct(op.in, op.residual, "in and residual");
    }

    void check(const GateUpOp& op) {
        name_ = "GateUpOp";
        const std::int64_t in_cols = read(op.in, "in");
        const std::int64_t out_cols = cols(op.out, "out");
        matrix(op.gate, "gate", out_cols, in_cols);
        matrix(op.up, "up", out_cols, in_cols);
        distinct(op.in, op.out, "in and out");
        write(op.out, "out", out_cols);
    }

    void check(const LogitsOp& op) {
        name_ = "LogitsOp";
        const std::int64_t dim = read(op.in, "in");
        vector(op.gain, "gain", dim);
        matrix(op.weight, "weight", -1, dim);
        const WeightShape* head = weight(op.weight, "weight");
        if (head != nullptr) optional_vector(op.bias, "bias", head->rows);
        finished_ = true;
    }

    void layer(std::int32_t index) {
        if (index < 0 || index >= limits_.kv.layers) {
            report("layer {} is outside the cache of {} layers", index, limits_.kv.layers);
        }
    }
    void query_heads(std::int64_t q_cols) {
        const std::int64_t group_cols = std::int64_t{limits_.kv.kv_heads} * limits_.kv.head_dim;
        if (group_cols == 0 || q_cols % group_cols != 0) {
            report("q has {} columns, expected a multiple of {}", q_cols, group_cols);
        }
    }

    void check_window(std::int64_t window_tokens) {
        for (const SequenceSlice& slice : step_.input.sequences) {
            const std::int64_t first =
                window_tokens > 0 ? std::max<std::int64_t>(0, slice.first_position - window_tokens + 1) : 0;
            const std::int64_t end = std::int64_t{slice.first_position} + slice.rows;
            for (std::int64_t p = first / kPageTokens; p * kPageTokens < end; ++p) {
                if (slice.block_table[p] < 0) report("page {} of a sequence is visible but released", p);
            }
        }
    }

    const StepLimits& limits_;
    const Step& step_;
    std::vector<bool> written_;  // [buffers]
    std::size_t index_ = 0;
    const char* name_ = "";  // of the operation
    std::string fault_;
    bool released_pages_ = false;  // some block table has negative entries
    bool fresh_qkv_ = false;       // q, k, v hold products that are not rotated yet
    std::int32_t stored_layer_ = -1;
    bool finished_ = false;
};

}  // namespace

std::string check_step(const StepLimits& limits, const Step& step) {
    return Checker(limits, step).run();
}

}  // namespace frontier

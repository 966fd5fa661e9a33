// What every backend demands of a step before it runs: valid handles, matching shapes, operations in a possible order.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backend/backend.h"

namespace frontier {

struct WeightShape {
    std::int64_t rows = 0;  // vectors: 1
    std::int64_t cols = 0;
    bool vector = false;
};

struct StepLimits {
    std::vector<WeightShape> weights;       // by WeightId
    std::vector<std::int64_t> buffer_cols;  // by BufferId
    std::int32_t max_rows = 0;
    std::int32_t max_logits_rows = 0;
    KvCacheConfig kv;
    std::int32_t rope_pairs = 0;
};

// "" when the step may run, otherwise the first fault: "op 3 (QkvOp): k_out has 64 columns, expected 32". A fault is
// a bug of the caller (files are checked when they are loaded, requests when they are scheduled).
//
// Order: a buffer is written before it is read; keys of a layer are rotated and stored before that layer's attention,
// once; layers ascend; logits come last.
std::string check_step(const StepLimits& limits, const Step& step);

}  // namespace frontier

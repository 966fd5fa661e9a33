// The device boundary: a backend owns weights, KV cache and scratch as opaque buffers and runs recorded steps.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backend/step.h"
#include "base/result.h"
#include "kernels/kernels.h"
#include "tensor/tensor_view.h"

namespace frontier {

// What the matrix products compute in. kAuto: int8 activations for quantised weights, f32 otherwise. kF32 also
// dequantises quantised weights (the reference). kBF16/kF16: unquantised weights stored so, activations rounded so.
enum class ComputeType : std::uint8_t { kAuto, kF32, kBF16, kF16 };

struct KvCacheConfig {
    std::int32_t layers = 0;
    std::int32_t kv_heads = 0;
    std::int32_t head_dim = 0;
    KvType type = KvType::kF16;
    std::int32_t pages = 0;  // of kPageTokens tokens, each over all layers
};
std::int64_t kv_page_bytes(const KvCacheConfig& config);

// Rotary frequencies: angle of pair i at position p = p * inv_freq[i]; cos and sin are scaled by `magnitude`.
struct RopeConfig {
    std::vector<float> inv_freq;  // [pairs]
    bool interleaved = false;     // GGUF llama order; false = half-split (Hugging Face, qwen)
    // Half-split heads are brought into interleaved order first. The same model in llama's two file formats then sums
    // q . k in one order, which gives the same bits.
    bool regroup = false;
    float magnitude = 1.0F;
};

struct BackendMemory {
    std::int64_t weight_bytes = 0;       // packed
    std::int64_t weight_file_bytes = 0;  // the same tensors in their files
    std::int64_t kv_bytes = 0;
    std::int64_t scratch_bytes = 0;
};

class Backend {
public:
    virtual ~Backend() = default;

    // Takes a tensor once, in its file format; the view may be dropped afterwards. Non-finite values or block scales
    // are kBadInput errors naming the tensor. A matrix [rows, cols] serves embedding and products alike; a vector is
    // kept in f32.
    virtual Result<WeightId> upload_matrix(const TensorView& tensor) = 0;
    virtual Result<WeightId> upload_vector(const TensorView& tensor) = 0;

    // Buffers of activations, [max_rows, cols] f32. Call reserve once after the last create_buffer.
    virtual BufferId create_buffer(std::string name, std::int64_t cols) = 0;
    virtual Status reserve(std::int32_t max_rows, std::int32_t max_logits_rows) = 0;

    virtual void set_rope(RopeConfig rope) = 0;
    // Replaces the cache. kDoesNotFit with both numbers when the memory is not there.
    virtual Status create_kv_cache(const KvCacheConfig& config) = 0;
    virtual void copy_page(PageId from, PageId to) = 0;

    // Runs the step; `step` is only read. Errors are for faults of the device; shapes are FR_CHECKed.
    virtual Status submit(const Step& step) = 0;
    // Logits of the last step, [logits_rows][vocab], in the order of input.logits_rows; they may be changed, and are
    // valid until the next submit. Waits for the step.
    virtual Result<std::span<float>> read_logits() = 0;

    virtual BackendMemory memory() const = 0;
    virtual std::string compute_type_name() const = 0;  // "int8", "f32", "bf16", "int8+f32" ...: what really ran
};

}  // namespace frontier

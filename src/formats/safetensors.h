// Safetensors (huggingface/safetensors, README "Format"): single files and sharded folders with an index.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "platform/memory.h"
#include "tensor/tensor_view.h"

namespace frontier {

// F32, F16 and BF16 tensors are exposed; a tensor of another type, or without elements, is listed by inspect and
// refused when bound. The format does not align: a tensor's data may start at any byte.
class SafetensorsModel {
public:
    // `folder` holds model.safetensors, or model.safetensors.index.json and its shards; the single file is preferred
    // when both exist, as Transformers does. All offsets are checked: inside the file, not overlapping, no byte
    // without a tensor, size = shape x type. A missing shard names itself and the index. Tensors that the index does
    // not place in a shard are not part of the model.
    static Result<SafetensorsModel> open(const std::string& folder);
    // One file from memory (tests, fuzzers).
    static Result<SafetensorsModel> parse(std::span<const std::byte> bytes, std::string where);

    const std::string& where() const { return where_; }
    const std::vector<TensorView>& tensors() const { return tensors_; }
    const TensorView* find_tensor(std::string_view name) const;
    // See MappedFile::identity: a line for each shard, with its header.
    std::string identity() const;
    void release(std::size_t index) const;

    struct Unsupported {
        std::string name;
        std::string dtype;
        std::vector<std::int64_t> shape;
    };
    const std::vector<Unsupported>& unsupported() const { return unsupported_; }

private:
    static Result<SafetensorsModel> open_sharded(const std::string& folder, const std::string& index);
    void adopt(TensorView tensor);  // of the newest shard

    std::string where_;
    std::vector<TensorView> tensors_;
    std::map<std::string, std::size_t, std::less<>> index_;
    std::vector<Unsupported> unsupported_;
    struct Shard {
        MappedFile file;
    };
    std::vector<std::shared_ptr<Shard>> shards_;  // empty when parsed from memory
    std::vector<std::size_t> shard_of_tensor_;
};

}  // namespace frontier

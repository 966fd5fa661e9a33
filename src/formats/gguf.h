// GGUF v2 and v3 (ggml/docs/gguf.md): reading, split files included, and writing. Little-endian only.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "platform/memory.h"
#include "tensor/tensor_view.h"

namespace frontier {

enum class GgufType : std::uint32_t {
    kUint8,
    kInt8,
    kUint16,
    kInt16,
    kUint32,
    kInt32,
    kFloat32,
    kBool,
    kString,
    kArray,
    kUint64,
    kInt64,
    kFloat64
};

// An array of fixed-size elements stays in the map; strings are views into it.
struct GgufArray {
    GgufType element_type = GgufType::kUint8;
    std::uint64_t count = 0;
    std::span<const std::byte> data;        // fixed-size elements, unaligned, little-endian
    std::vector<std::string_view> strings;  // when element_type is kString
};

struct GgufValue {
    GgufType type = GgufType::kUint8;
    std::variant<std::uint64_t, std::int64_t, double, bool, std::string_view, GgufArray> value;
};

struct ParsedGguf;

// A model in one or several split files. All counts, offsets, shapes and types are checked on opening: every tensor's
// bytes lie inside its file, do not overlap, and its type is one we know.
class GgufFile {
public:
    // `path` is the file, or any shard of "name-00001-of-00003.gguf"; the other shards are opened too.
    static Result<GgufFile> open(const std::string& path);
    // One file from memory (tests, fuzzers); the bytes outlive the object. A split file stands for itself.
    static Result<GgufFile> parse(std::span<const std::byte> bytes, std::string where);

    const std::string& where() const { return where_; }
    std::uint32_t version() const { return version_; }

    // Metadata of the first shard, in file order.
    const std::vector<std::pair<std::string, GgufValue>>& metadata() const { return metadata_; }
    const GgufValue* find(std::string_view key) const;
    // Typed access: an error names the file, the key, the expected and the actual type. Integers of any width and
    // sign convert when the value fits; absent keys give nullopt. get_number refuses NaN and infinities, get_floats
    // NaN; get_floats takes any numbers, get_ints any integers.
    Result<std::optional<std::int64_t>> get_int(std::string_view key) const;
    Result<std::optional<double>> get_number(std::string_view key) const;
    Result<std::optional<bool>> get_bool(std::string_view key) const;
    Result<std::optional<std::string_view>> get_string(std::string_view key) const;
    Result<std::optional<std::vector<std::string_view>>> get_strings(std::string_view key) const;
    Result<std::optional<std::vector<float>>> get_floats(std::string_view key) const;
    Result<std::optional<std::vector<std::int64_t>>> get_ints(std::string_view key) const;

    // All tensors of all shards in file order; views into the maps.
    const std::vector<TensorView>& tensors() const { return tensors_; }
    const TensorView* find_tensor(std::string_view name) const;
    std::int64_t file_bytes() const;  // of the files that were opened; 0 when parsed from memory
    // See MappedFile::identity: a line for each file that was opened, with all that stands before its tensors' data.
    std::string identity() const;
    // Gives the resident pages of tensors()[index] back to the system.
    void release(std::size_t index) const;

private:
    Status add_shard(MappedFile mapped, ParsedGguf&& parsed, std::uint64_t number, std::uint64_t count);
    Status adopt_first(ParsedGguf&& parsed);
    Status adopt_tensors(ParsedGguf&& parsed, std::string_view shard_where);

    std::string where_;
    std::uint32_t version_ = 0;
    std::vector<std::pair<std::string, GgufValue>> metadata_;
    std::vector<TensorView> tensors_;
    std::map<std::string, std::size_t, std::less<>> tensor_index_;
    std::map<std::string, std::size_t, std::less<>> metadata_index_;
    struct Shard {
        MappedFile file;
        std::size_t first_tensor = 0;
    };
    std::vector<std::shared_ptr<Shard>> shards_;  // empty when parsed from memory
};

// Writes a v3 file: metadata in the order given, then the tensors' data, each produced when its turn comes.
class GgufWriter {
public:
    void add_string(std::string key, std::string value);
    void add_uint32(std::string key, std::uint32_t value);
    void add_float32(std::string key, float value);
    void add_bool(std::string key, bool value);
    void add_strings(std::string key, std::vector<std::string> values);
    void add_floats(std::string key, std::vector<float> values);
    void add_int32s(std::string key, std::vector<std::int32_t> values);
    void add_tensor(TensorInfo info);

    // `produce(index)` returns the bytes of the index-th tensor (info.bytes() of them); they are written at once.
    // The file appears under `path` only when complete (written beside it and renamed).
    using Producer = std::function<Result<std::span<const std::byte>>(std::size_t index)>;
    Status write(const std::string& path, const Producer& produce) const;

private:
    // All that stands before the tensors' data, padded; data_bytes becomes the size of the padded data.
    Result<std::string> header(const std::string& path, std::uint64_t& data_bytes) const;

    std::vector<std::pair<std::string, std::string>> entries_;  // key, encoded type and value
    std::vector<TensorInfo> tensors_;
};

}  // namespace frontier

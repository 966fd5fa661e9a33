// The bytes of one GGUF file, checked and taken apart; internal to this folder.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "formats/gguf.h"
#include "tensor/tensor_view.h"

namespace frontier {

// The specification's bounds on the length of a key (2^16 - 1 bytes) and on the alignment; names of tensors are at
// most 63 bytes in llama.cpp, 127 in its relatives for images.
inline constexpr std::uint64_t kMaxGgufKeyBytes = 65535;
inline constexpr std::uint64_t kMaxGgufTensorNameBytes = 255;
inline constexpr std::uint32_t kMaxGgufDims = 4;
inline constexpr std::uint32_t kDefaultGgufAlignmentBytes = 32;

struct ParsedGguf {
    std::uint32_t version = 0;
    std::vector<std::pair<std::string, GgufValue>> metadata;  // in file order
    std::map<std::string, std::size_t, std::less<>> metadata_index;
    std::vector<TensorView> tensors;  // in file order
};

// Everything the class comment of GgufFile promises for one file; `where` starts each error line.
Result<ParsedGguf> parse_gguf(std::span<const std::byte> bytes, std::string_view where);

// "uint32", "array"; and with the element type and count of an array: "array of 3 float32".
std::string_view gguf_type_name(GgufType type);
std::string gguf_type_text(const GgufValue& value);
// Bytes of one value of a fixed size; 0 for strings and arrays.
std::uint64_t gguf_type_bytes(GgufType type);

}  // namespace frontier

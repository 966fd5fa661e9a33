// The JSON parts of safetensors: the header of a file and the index of a sharded folder; internal to this folder.
// Both are read event by event: no tree is built, so that a hostile header costs no more than its own size.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace frontier {

struct SafetensorsEntry {
    std::string name;
    std::string dtype;
    std::vector<std::int64_t> shape;  // outermost first; each extent >= 0
    std::uint64_t begin = 0;          // from the end of the header
    std::uint64_t end = 0;
};

// Entries in the order of the header; names may repeat, fields may not. "__metadata__" is ignored.
Result<std::vector<SafetensorsEntry>> parse_safetensors_header(std::string_view json, std::string_view where);

// (tensor, shard file) pairs of "weight_map" in the order of the index. File names are plain names: no folders.
Result<std::vector<std::pair<std::string, std::string>>> parse_safetensors_index(std::string_view json,
                                                                                 std::string_view where);

}  // namespace frontier

// Ids that cross layers.
#pragma once

#include <cstdint>

namespace frontier {

using TokenId = std::int32_t;
using PageId = std::int32_t;  // a KV page; covers all layers

}  // namespace frontier

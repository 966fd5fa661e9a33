// 64-bit FNV-1a (Fowler, Noll, Vo): short, well known, good enough to compare runs; not for hostile keys.
#pragma once

#include <cstddef>
#include <cstdint>

namespace frontier {

inline std::uint64_t fnv1a64(const void* data, std::size_t size_bytes, std::uint64_t seed = 0xCBF29CE484222325ULL) {
    const auto* bytes = static_cast<const unsigned char*>(data);
    std::uint64_t hash = seed;
    for (std::size_t i = 0; i < size_bytes; ++i) hash = (hash ^ bytes[i]) * 0x100000001B3ULL;
    return hash;
}

}  // namespace frontier

// Hashes that find accidents and compare runs; neither is for hostile keys.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace frontier {

// 64-bit FNV-1a (Fowler, Noll, Vo): short and well known, a byte per multiplication.
inline std::uint64_t fnv1a64(const void* data, std::size_t size_bytes, std::uint64_t seed = 0xCBF29CE484222325ULL) {
    const auto* bytes = static_cast<const unsigned char*>(data);
    std::uint64_t hash = seed;
    for (std::size_t i = 0; i < size_bytes; ++i) hash = (hash ^ bytes[i]) * 0x100000001B3ULL;
    return hash;
}

// For gigabytes: four lanes of 64-bit words, each xored, multiplied and folded in turn, so that four multiplications
// are under way at once and the memory is the limit. Every step is a bijection of the lane and of the word: one changed
// word always changes the lane. The folding carries the high bits back to where the multiplication spreads them;
// without it two high bits of one lane would cancel, and with a mere rotation a high bit and one bit of the lane's next
// word do. The rest, the lanes and the length then go through FNV-1a.
inline std::uint64_t lanes64(const void* data, std::size_t size_bytes) {
    constexpr std::size_t kLanes = 4;
    constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15ULL;  // 2^64 / golden ratio: a dense, odd bit pattern
    std::array<std::uint64_t, kLanes> lanes = {1, 2, 3, 4};
    const auto* bytes = static_cast<const unsigned char*>(data);
    std::size_t at = 0;
    for (; at + sizeof lanes <= size_bytes; at += sizeof lanes) {
        std::array<std::uint64_t, kLanes> words;
        std::memcpy(words.data(), bytes + at, sizeof words);
        for (std::size_t i = 0; i < kLanes; ++i) {
            lanes[i] = (lanes[i] ^ words[i]) * kOdd;
            lanes[i] ^= lanes[i] >> 32;
        }
    }
    std::uint64_t hash = fnv1a64(bytes + at, size_bytes - at);
    hash = fnv1a64(lanes.data(), sizeof lanes, hash);
    return fnv1a64(&size_bytes, sizeof size_bytes, hash);
}

}  // namespace frontier

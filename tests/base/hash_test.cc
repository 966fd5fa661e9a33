#include "base/hash.h"

#include <gtest/gtest.h>

#include <set>
#include <string_view>
#include <vector>

namespace frontier {
namespace {

std::uint64_t hash(std::string_view text) {
    return fnv1a64(text.data(), text.size());
}

// Test vectors of the authors (Fowler, Noll, Vo; draft-eastlake-fnv, appendix).
TEST(Fnv1a64, PublishedVectors) {
    EXPECT_EQ(hash(""), 0xCBF29CE484222325ULL);
    EXPECT_EQ(hash("a"), 0xAF63DC4C8601EC8CULL);
    EXPECT_EQ(hash("foobar"), 0x85944171F73967E8ULL);
}

TEST(Fnv1a64, PiecesChain) {
    const std::string_view text = "foobar";
    EXPECT_EQ(fnv1a64(text.data() + 3, 3, fnv1a64(text.data(), 3)), hash(text));
}

TEST(Lanes64, EveryByteAndTheLengthCount) {
    std::vector<unsigned char> data(131);  // four rounds of the lanes, and a rest
    for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<unsigned char>(7 * i);
    std::set<std::uint64_t> hashes;
    for (std::size_t size = 0; size <= data.size(); ++size) hashes.insert(lanes64(data.data(), size));
    EXPECT_EQ(hashes.size(), data.size() + 1);
    for (unsigned char& byte : data) {
        for (int bit = 0; bit < 8; ++bit) {
            byte ^= static_cast<unsigned char>(1 << bit);
            hashes.insert(lanes64(data.data(), data.size()));
            byte ^= static_cast<unsigned char>(1 << bit);
        }
    }
    EXPECT_EQ(hashes.size(), data.size() + 1 + 8 * data.size());
}

// The highest bit of a word reaches no other bit by multiplication alone: two such changes of a lane would cancel.
TEST(Lanes64, TwoHighBitsOfOneLaneDoNotCancel) {
    std::vector<unsigned char> data(256);
    const std::uint64_t before = lanes64(data.data(), data.size());
    data[7] ^= 0x80;
    data[32 + 7] ^= 0x80;
    EXPECT_NE(lanes64(data.data(), data.size()), before);
}

// Files depend on it.
TEST(Lanes64, IsWhatItWas) {
    std::vector<unsigned char> data(100);
    for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<unsigned char>(i);
    EXPECT_EQ(lanes64(data.data(), data.size()), 0x93E371A5634EBA7EULL);
}

}  // namespace
}  // namespace frontier

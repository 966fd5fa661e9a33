#include "base/hash.h"

#include <gtest/gtest.h>

#include <string_view>

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

}  // namespace
}  // namespace frontier

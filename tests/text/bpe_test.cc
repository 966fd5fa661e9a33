#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "text/merge.h"
#include "text_test_util.h"

namespace frontier::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> encode(const TokenizerSpec& spec, std::string_view text) {
    const auto tokenizer = make(spec);
    return pieces_of(*tokenizer, *tokenizer->encode(text, {.add_special = false}));
}

TEST(Bpe, MergesByRankNotByPlace) {
    EXPECT_THAT(encode(byte_level_spec({"a b", "b c"}), "abc"), ElementsAre("ab", "c"));
    EXPECT_THAT(encode(byte_level_spec({"b c", "a b"}), "abc"), ElementsAre("a", "bc"));
    EXPECT_THAT(encode(byte_level_spec({"b c", "a b", "a bc"}), "abcab"), ElementsAre("abc", "ab"));
}

TEST(Bpe, WordsEndAtThePreTokenizersBorders) {
    EXPECT_THAT(encode(byte_level_spec({"a b"}), "a b"), ElementsAre("a", "\xC4\xA0", "b"));
}

TEST(Bpe, IgnoreMergesTakesWholeWords) {
    TokenizerSpec spec = byte_level_spec({"a b"});
    spec.pieces.push_back("xyz");
    spec.types.push_back(TokenType::kNormal);
    EXPECT_THAT(encode(spec, "xyz"), ElementsAre("x", "y", "z"));
    spec.ignore_merges = true;
    EXPECT_THAT(encode(spec, "xyz"), ElementsAre("xyz"));
    EXPECT_THAT(encode(spec, "xyzx"), ElementsAre("x", "y", "z", "x"));
}

TEST(Bpe, PiecesMayHoldSpaces) {
    TokenizerSpec spec = byte_level_spec();
    for (const char* piece : {" a", "b c", " ab c"}) {
        spec.pieces.push_back(piece);
        spec.types.push_back(TokenType::kNormal);
    }
    spec.merges = {" a b c"};
    EXPECT_TRUE(Tokenizer::create(spec).has_value());
}

TEST(Bpe, RefusesMergesOfUnknownPieces) {
    const auto error = [](std::string merge) {
        TokenizerSpec spec = byte_level_spec({"a b"});
        spec.merges.push_back(std::move(merge));
        const auto tokenizer = Tokenizer::create(spec);
        return tokenizer ? std::string("no error") : tokenizer.error().text;
    };
    EXPECT_THAT(error("ab x"), testing::AllOf(HasSubstr("merges: entry 1"), HasSubstr("'abx'")));
    EXPECT_THAT(error("abc x"), HasSubstr("'abc' is not in the vocabulary"));
    EXPECT_THAT(error("abc"), HasSubstr("is not two pieces"));
    EXPECT_THAT(error(""), HasSubstr("is not two pieces"));
    EXPECT_THAT(error("a "), HasSubstr("is not two pieces"));
    TokenizerSpec spec = byte_level_spec();
    spec.pre_tokenizer = "no such";
    EXPECT_FALSE(Tokenizer::create(spec).has_value());
}

TEST(Bpe, CharactersWithByteFallback) {
    TokenizerSpec spec = sentencepiece_spec({{"a", 0}, {"b", 0}, {"ab", 0}});
    spec.kind = TokenizerKind::kMergeBpe;
    spec.merges = {"a b"};
    spec.byte_fallback = true;
    EXPECT_THAT(encode(spec, "ab\xC3\xA9"), ElementsAre("ab", "<0xC3>", "<0xA9>"));
    spec.byte_fallback = false;
    EXPECT_THAT(encode(spec,
                       "\xC3\xA9\xC3\xA9"
                       "a"),
                ElementsAre("<unk>", "<unk>", "a"));
    spec.fuse_unknown = true;
    EXPECT_THAT(encode(spec,
                       "\xC3\xA9\xC3\xA9"
                       "a\xC3\xA9"),
                ElementsAre("<unk>", "a", "<unk>"));
}

// The plain definition: again and again the best pair, the leftmost among equals.
std::vector<TokenId> merge_slowly(std::vector<TokenId> ids, const std::vector<std::vector<int>>& rank) {
    const auto r = [&](std::size_t i) {
        return rank[static_cast<std::size_t>(ids[i])][static_cast<std::size_t>(ids[i + 1])];
    };
    while (true) {
        std::size_t best = ids.size();
        for (std::size_t i = 0; i + 1 < ids.size(); ++i)
            if (r(i) >= 0 && (best == ids.size() || r(i) < r(best))) best = i;
        if (best == ids.size()) return ids;
        // The merged token of a rank is its successor in a small cyclic alphabet, so merges go on and on.
        ids[best] = (ids[best] * 3 + ids[best + 1] + 1) % static_cast<TokenId>(rank.size());
        ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(best) + 1);
    }
}

// Tables in which later merges may have better or equal ranks, which real vocabularies hardly have: both ways of
// merging must still do exactly what the definition says.
TEST(Merge, BothWaysFollowTheDefinition) {
    RandomStream random(40);
    constexpr TokenId kAlphabet = 12;
    for (int round = 0; round < 300; ++round) {
        std::vector<std::vector<int>> rank(kAlphabet, std::vector<int>(kAlphabet, -1));
        for (auto& row : rank)
            for (int& r : row)
                if (random.next() % 3 != 0) r = static_cast<int>(random.next() % 20);
        std::vector<TokenId> ids(random.next() % 200);
        for (TokenId& id : ids) id = static_cast<TokenId>(random.next() % kAlphabet);
        const auto find = [&](const MergeSymbol& a, const MergeSymbol& b) -> MergeCandidate {
            return {rank[static_cast<std::size_t>(a.id)][static_cast<std::size_t>(b.id)],
                    (a.id * 3 + b.id + 1) % kAlphabet};
        };
        const auto run = [&](bool by_rank) {
            MergeScratch scratch;
            for (std::size_t i = 0; i < ids.size(); ++i)
                scratch.symbols.push_back({static_cast<std::uint32_t>(i), 1, -1, -1, ids[i]});
            if (by_rank)
                merge_detail::merge_by_rank(scratch, find);
            else
                merge_detail::merge_with_heap(scratch, find);
            std::vector<TokenId> result;
            for (const MergeSymbol& symbol : scratch.symbols)
                if (symbol.size != 0) result.push_back(symbol.id);
            return result;
        };
        const std::vector<TokenId> expected = merge_slowly(ids, rank);
        ASSERT_EQ(run(false), expected) << "round " << round;
        ASSERT_EQ(run(true), expected) << "round " << round;
    }
}

// The work is counted, not timed: look-ups of pairs grow in proportion to the text.
TEST(Merge, LookUpsAreLinear) {
    for (const std::size_t length : {1000U, 100'000U}) {
        MergeScratch scratch;
        for (std::size_t i = 0; i < length; ++i)
            scratch.symbols.push_back({static_cast<std::uint32_t>(i), 1, -1, -1, 0});
        std::size_t count = 0;
        merge_symbols(scratch, [&](const MergeSymbol& a, const MergeSymbol& b) -> MergeCandidate {
            ++count;
            return a.id == b.id && a.id < 20 ? MergeCandidate{a.id, a.id + 1} : MergeCandidate{};
        });
        // One look-up for each pair at first, two for each merge.
        EXPECT_LE(count, 3 * length);
    }
}

}  // namespace
}  // namespace frontier::test

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "base/rng.h"
#include "small_kernel_variants.h"
#include "tensor/half.h"

namespace frontier {
namespace {

constexpr double kUnit = 0x1p-24;  // the rounding of one f32 operation
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

float random_normal(RandomStream& random) {  // near enough: a sum of four uniforms, standard deviation 1
    double sum = -2;
    for (int i = 0; i < 4; ++i) sum += random.next_double();
    return static_cast<float>(sum * std::sqrt(3.0));
}

struct Case {
    int head_dim = 64;
    int group_heads = 1;
    int first_position = 0;
    int query_rows = 1;
    int window_tokens = 0;
    KvType type = KvType::kF16;
    float q_range = 1;  // larger: sharper attention

    int tokens() const { return first_position + query_rows; }
};

// One KV head's cache in shuffled pages whose unwritten slots are NaN, and the queries.
class Fixture {
public:
    Fixture(const Case& c, const KernelTable& kernels) : case_(c), kernels_(kernels) {
        RandomStream random(static_cast<std::uint64_t>(c.head_dim * 1000 + c.tokens()));
        const std::int64_t elements = std::int64_t{c.tokens()} * c.head_dim;
        for (std::int64_t i = 0; i < elements; ++i) k_.push_back(random_normal(random));
        for (std::int64_t i = 0; i < elements; ++i) v_.push_back(random_normal(random));
        q_stride_ = c.group_heads * c.head_dim + 3;
        q_.assign(static_cast<std::size_t>(c.query_rows * q_stride_), kNaN);
        for (int row = 0; row < c.query_rows; ++row) {
            for (int i = 0; i < c.group_heads * c.head_dim; ++i) {
                q_[row * q_stride_ + i] = random_normal(random) * c.q_range;
            }
        }
        const int pages = (c.tokens() + kPageTokens - 1) / kPageTokens;
        tile_bytes_ = std::int64_t{c.head_dim} * kPageTokens * (c.type == KvType::kF16 ? 2 : 4);
        // Pages in reverse, every second one unused.
        storage_.assign(static_cast<std::size_t>(2 * tile_bytes_ * 2 * pages), std::byte{0xFF});
        for (int p = 0; p < pages; ++p) block_table_.push_back(2 * (pages - 1 - p) + 1);
        for (int t = 0; t < c.tokens(); ++t) store(t);
    }

    void set_k(int token, int d, float value) {
        k_[token * case_.head_dim + d] = value;
        store(token);
    }
    void set_v(int token, int d, float value) {
        v_[token * case_.head_dim + d] = value;
        store(token);
    }

    // Rows [row, row + rows) as one task; other rows of the result are NaN.
    std::vector<float> run(int row, int rows) {
        const std::int64_t out_stride = case_.group_heads * case_.head_dim + 5;
        std::vector<float> out(static_cast<std::size_t>(case_.query_rows * out_stride), kNaN);
        const std::int64_t scratch_floats = attention_scratch_floats(rows * case_.group_heads, case_.head_dim);
        constexpr float kGuard = 12345.0F;
        std::vector<float> scratch(static_cast<std::size_t>(scratch_floats) + 64, kNaN);
        std::fill(scratch.end() - 64, scratch.end(), kGuard);
        kernels_.attention({.q = q_.data() + row * q_stride_,
                            .q_stride = q_stride_,
                            .query_rows = rows,
                            .group_heads = case_.group_heads,
                            .head_dim = case_.head_dim,
                            .first_position = case_.first_position + row,
                            .window_tokens = case_.window_tokens,
                            .scale = scale(),
                            .kv_type = case_.type,
                            .k_base = storage_.data(),
                            .v_base = storage_.data() + tile_bytes_,
                            .page_stride_bytes = 2 * tile_bytes_,
                            .block_table = block_table_.data(),
                            .out = out.data() + row * out_stride,
                            .out_stride = out_stride,
                            .scratch = scratch.data()});
        EXPECT_TRUE(std::all_of(scratch.end() - 64, scratch.end(), [](float x) { return x == kGuard; }));
        std::vector<float> compact;
        for (int r = 0; r < case_.query_rows; ++r) {
            const float* from = out.data() + r * out_stride;
            compact.insert(compact.end(), from, from + case_.group_heads * case_.head_dim);
            for (int i = 0; i < 5; ++i) EXPECT_TRUE(std::isnan(from[case_.group_heads * case_.head_dim + i]));
        }
        return compact;
    }
    std::vector<float> run() { return run(0, case_.query_rows); }

    // Plain softmax over all visible keys in f64, and a bound on the error of an f32 computation of it.
    void reference(std::vector<double>& expected, std::vector<double>& bound) const {
        for (int row = 0; row < case_.query_rows; ++row) {
            for (int head = 0; head < case_.group_heads; ++head) {
                reference_vector(row, head, expected, bound);
            }
        }
    }

private:
    float scale() const { return 1.0F / std::sqrt(static_cast<float>(case_.head_dim)); }
    float stored(float x) const { return case_.type == KvType::kF16 ? to_f32(to_f16(x)) : x; }

    void store(int token) {
        std::byte* page = storage_.data() + block_table_[token / kPageTokens] * 2 * tile_bytes_;
        kernels_.store_k(&k_[token * case_.head_dim], case_.head_dim, case_.type, token % kPageTokens, page);
        kernels_.store_v(&v_[token * case_.head_dim], case_.head_dim, case_.type, token % kPageTokens,
                         page + tile_bytes_);
    }

    void reference_vector(int row, int head, std::vector<double>& expected, std::vector<double>& bound) const {
        const float* q = q_.data() + row * q_stride_ + head * case_.head_dim;
        const int last = case_.first_position + row;
        const int first = case_.window_tokens > 0 ? std::max(0, last - case_.window_tokens + 1) : 0;
        std::vector<double> scores;
        double score_error = 0;
        for (int t = first; t <= last; ++t) {
            double dot = 0;
            double magnitude = 0;
            for (int d = 0; d < case_.head_dim; ++d) {
                const double term = static_cast<double>(q[d]) * stored(k_[t * case_.head_dim + d]);
                dot += term;
                magnitude += std::abs(term);
            }
            scores.push_back(dot * scale());
            // Scaling the query rounds once, then head_dim fused steps.
            score_error = std::max(score_error, (case_.head_dim + 2) * kUnit * magnitude * scale());
        }
        const double top = *std::max_element(scores.begin(), scores.end());
        const double bottom = *std::min_element(scores.begin(), scores.end());
        double weight_sum = 0;
        for (double& s : scores) weight_sum += s = std::exp(s - top);
        // Relative error of a weight: the scores of key and maximum, their difference, the exponential (2 units).
        // Over the sums: one rounding per key, two more per page for the correction.
        const double pages = static_cast<double>(scores.size()) / kPageTokens + 2;
        const double relative = 2 * score_error + kUnit * (top - bottom) + 2 * kUnit +
                                (static_cast<double>(scores.size()) + 6 * pages + 4) * kUnit;
        for (int d = 0; d < case_.head_dim; ++d) {
            double sum = 0;
            double magnitude = 0;
            for (std::size_t i = 0; i < scores.size(); ++i) {
                const double v = stored(v_[(first + static_cast<int>(i)) * case_.head_dim + d]);
                sum += scores[i] * v;
                magnitude += scores[i] * std::abs(v);
            }
            expected.push_back(sum / weight_sum);
            bound.push_back(2 * relative * magnitude / weight_sum);  // numerator and denominator
        }
    }

    Case case_;
    const KernelTable& kernels_;
    std::vector<float> k_, v_;  // [tokens][head_dim]
    std::vector<float> q_;      // [query_rows][q_stride_]
    std::int64_t q_stride_ = 0;
    std::int64_t tile_bytes_ = 0;
    std::vector<std::byte> storage_;
    std::vector<std::int32_t> block_table_;
};

void expect_matches_reference(const Case& c, const KernelVariant& variant) {
    SCOPED_TRACE(testing::Message() << variant.name << " head_dim " << c.head_dim << " group " << c.group_heads
                                    << " first " << c.first_position << " rows " << c.query_rows << " window "
                                    << c.window_tokens << " type " << static_cast<int>(c.type));
    Fixture fixture(c, variant.table);
    const std::vector<float> actual = fixture.run();
    std::vector<double> expected;
    std::vector<double> bound;
    fixture.reference(expected, bound);
    for (std::size_t i = 0; i < expected.size(); ++i) {
        const double limit = variant.exact ? 2 * kUnit * std::abs(expected[i]) + 1e-12 : bound[i];
        ASSERT_NEAR(actual[i], expected[i], limit) << "value " << i;
    }
}

class AttentionTest : public testing::Test {
protected:
    std::vector<KernelVariant> variants_ = small_kernel_variants();
};

TEST_F(AttentionTest, OneTokenAtEveryContextUpTo100) {
    for (const KernelVariant& variant : variants_) {
        for (int position = 0; position < 100; ++position) {
            for (const KvType type : {KvType::kF16, KvType::kF32}) {
                expect_matches_reference({.head_dim = 16, .first_position = position, .type = type}, variant);
            }
        }
    }
}

TEST_F(AttentionTest, HeadDimensions) {
    for (const KernelVariant& variant : variants_) {
        for (const int head_dim : {2,  4,  6,  8,  10, 14, 16,  18,  22,  24,  30,  34,  40,
                                   48, 64, 66, 72, 80, 96, 112, 128, 130, 192, 254, 256, 512}) {
            for (const KvType type : {KvType::kF16, KvType::kF32}) {
                expect_matches_reference(
                    {.head_dim = head_dim, .group_heads = 2, .first_position = 40, .query_rows = 3, .type = type},
                    variant);
                expect_matches_reference({.head_dim = head_dim, .first_position = 33, .type = type}, variant);
            }
        }
    }
}

TEST_F(AttentionTest, GroupsAndQueryBlocks) {
    for (const KernelVariant& variant : variants_) {
        for (int group = 1; group <= 8; ++group) {
            for (const int rows : {1, 2, 3, 5, 31, 32, 33, 40}) {
                for (const int first : {0, 1, 31, 32, 50}) {
                    expect_matches_reference(
                        {.head_dim = 10, .group_heads = group, .first_position = first, .query_rows = rows}, variant);
                }
            }
        }
    }
}

TEST_F(AttentionTest, Windows) {
    for (const KernelVariant& variant : variants_) {
        for (const int window : {1, 2, 7, 31, 32, 33, 64, 1000}) {
            for (const int first : {0, 5, 31, 70}) {
                for (const int rows : {1, 4, 37}) {
                    expect_matches_reference({.head_dim = 8,
                                              .group_heads = 2,
                                              .first_position = first,
                                              .query_rows = rows,
                                              .window_tokens = window},
                                             variant);
                }
            }
        }
    }
}

// Scores up to some hundred: weights underflow, the maximum moves from page to page.
TEST_F(AttentionTest, SharpScores) {
    for (const KernelVariant& variant : variants_) {
        for (const float range : {10.0F, 100.0F}) {
            expect_matches_reference(
                {.head_dim = 64, .group_heads = 3, .first_position = 200, .query_rows = 20, .q_range = range}, variant);
        }
    }
}

// Pages behind a window are not even looked up.
TEST_F(AttentionTest, PagesBehindTheWindowAreSkipped) {
    for (const KernelVariant& variant : variants_) {
        const Case c{.head_dim = 8, .first_position = 100, .query_rows = 3, .window_tokens = 10};
        Fixture fixture(c, variant.table);
        const std::vector<float> expected = fixture.run();
        for (int t = 0; t <= 90; ++t) {
            for (int d = 0; d < 8; ++d) {
                fixture.set_k(t, d, kNaN);
                fixture.set_v(t, d, kNaN);
            }
        }
        EXPECT_EQ(fixture.run(), expected) << variant.name;
    }
}

TEST_F(AttentionTest, BitsDoNotDependOnTheBlock) {
    for (const KernelVariant& variant : variants_) {
        for (const int head_dim : {6, 16, 64}) {
            for (const int group : {1, 2, 4}) {
                for (const int window : {0, 20}) {
                    Fixture fixture({.head_dim = head_dim,
                                     .group_heads = group,
                                     .first_position = 27,
                                     .query_rows = 45,
                                     .window_tokens = window},
                                    variant.table);
                    const std::vector<float> together = fixture.run();
                    const std::size_t row_floats = static_cast<std::size_t>(group * head_dim);
                    for (const int rows : {1, 2, 7}) {
                        for (int row = 0; row < 45; row += rows) {
                            const int count = std::min(rows, 45 - row);
                            const std::vector<float> part = fixture.run(row, count);
                            ASSERT_EQ(std::memcmp(&part[row * row_floats], &together[row * row_floats],
                                                  row_floats * static_cast<std::size_t>(count) * sizeof(float)),
                                      0)
                                << variant.name << " row " << row << " of " << rows;
                        }
                    }
                }
            }
        }
    }
}

// A fault in a visible key or value reaches every row that sees it, and no other.
TEST_F(AttentionTest, FaultsReachExactlyTheRowsThatSeeThem) {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    for (const KernelVariant& variant : variants_) {
        for (const int head_dim : {6, 64}) {
            for (const int rows : {1, 40}) {
                for (const int token : {0, 31, 32, 45, 69}) {
                    for (const float fault : {kNaN, kInfinity, -kInfinity}) {
                        for (const bool in_k : {true, false}) {
                            const Case c{.head_dim = head_dim,
                                         .group_heads = 2,
                                         .first_position = 70 - rows,
                                         .query_rows = rows,
                                         .type = KvType::kF32};
                            Fixture fixture(c, variant.table);
                            const std::vector<float> clean = fixture.run();
                            const int d = head_dim - 1;
                            if (in_k) fixture.set_k(token, d, fault);
                            if (!in_k) fixture.set_v(token, d, fault);
                            const std::vector<float> actual = fixture.run();
                            for (int row = 0; row < rows; ++row) {
                                for (int i = 0; i < 2 * head_dim; ++i) {
                                    const std::size_t index = static_cast<std::size_t>(row * 2 * head_dim + i);
                                    const bool hit = c.first_position + row >= token && (in_k || i % head_dim == d);
                                    if (hit) {
                                        ASSERT_FALSE(std::isfinite(actual[index])) << variant.name << " " << fault;
                                    } else {
                                        ASSERT_EQ(actual[index], clean[index]) << variant.name << " row " << row;
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

}  // namespace
}  // namespace frontier

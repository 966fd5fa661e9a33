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

constexpr double kUnit = 0x1p-24;  // half a unit in the last place of 1, the rounding of one f32 operation
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<float> random_floats(std::int64_t n, std::uint64_t seed, float range = 2.0F) {
    RandomStream random(seed);
    std::vector<float> values(static_cast<std::size_t>(n));
    for (float& v : values) v = static_cast<float>(random.next_double() * 2 - 1) * range;
    return values;
}

// `n` floats inside a frame of NaN; frame_intact() tells whether a kernel wrote beside them.
struct Framed {
    static constexpr std::int64_t kFrame = 20;
    explicit Framed(const std::vector<float>& values) : n(static_cast<std::int64_t>(values.size())) {
        storage.assign(values.size() + 2 * kFrame, kNaN);
        std::copy(values.begin(), values.end(), storage.begin() + kFrame);
    }
    float* data() { return storage.data() + kFrame; }
    bool frame_intact() const {
        for (std::int64_t i = 0; i < kFrame; ++i) {
            if (!std::isnan(storage[i]) || !std::isnan(storage[kFrame + n + i])) return false;
        }
        return true;
    }
    std::int64_t n;
    std::vector<float> storage;
};

class Elementwise : public testing::Test {
protected:
    std::vector<KernelVariant> variants_ = small_kernel_variants();
};

std::vector<std::int64_t> sizes() {
    std::vector<std::int64_t> result;
    for (std::int64_t n = 1; n <= 70; ++n) result.push_back(n);
    result.insert(result.end(), {127, 128, 1000, 2048, 5632});
    return result;
}

TEST_F(Elementwise, RmsNormMatchesDoubles) {
    for (const KernelVariant& variant : variants_) {
        SCOPED_TRACE(variant.name);
        for (const std::int64_t n : sizes()) {
            const std::vector<float> x = random_floats(n, 1 + n);
            const std::vector<float> gain = random_floats(n, 1000 + n);
            double squares = 0;
            for (const float v : x) squares += static_cast<double>(v) * v;
            const double factor = 1 / std::sqrt(squares / static_cast<double>(n) + 1e-5F);
            Framed in(x);
            Framed out(std::vector<float>(x.size(), kNaN));
            variant.table.rms_norm(in.data(), gain.data(), 1e-5F, n, out.data());
            variant.table.rms_norm(in.data(), gain.data(), 1e-5F, n, in.data());  // in place
            ASSERT_TRUE(in.frame_intact() && out.frame_intact()) << n;
            for (std::int64_t i = 0; i < n; ++i) {
                // The factor and two products are rounded; one more for the sum's own error.
                const double expected = x[i] * factor * gain[i];
                ASSERT_NEAR(out.data()[i], expected, 4 * kUnit * std::abs(expected)) << n << " " << i;
                ASSERT_EQ(out.data()[i], in.data()[i]);
            }
        }
    }
}

TEST_F(Elementwise, RmsNormKeepsFaultsAndLargeValues) {
    for (const KernelVariant& variant : variants_) {
        SCOPED_TRACE(variant.name);
        const std::vector<float> gain(33, 1.0F);
        for (std::int64_t bad = 0; bad < 33; ++bad) {
            for (const float value : {kNaN, kInfinity}) {
                std::vector<float> x = random_floats(33, 7);
                x[bad] = value;
                variant.table.rms_norm(x.data(), gain.data(), 1e-5F, 33, x.data());
                ASSERT_TRUE(std::isnan(x[bad])) << bad;
            }
        }
        std::vector<float> large(33, 1e30F);  // its square is beyond f32
        variant.table.rms_norm(large.data(), gain.data(), 1e-5F, 33, large.data());
        for (const float v : large) ASSERT_NEAR(v, 1.0F, 4 * kUnit);
    }
}

TEST_F(Elementwise, AddIsExact) {
    for (const KernelVariant& variant : variants_) {
        SCOPED_TRACE(variant.name);
        for (const std::int64_t n : sizes()) {
            const std::vector<float> a = random_floats(n, n);
            const std::vector<float> b = random_floats(n, 500 + n);
            Framed x(a);
            variant.table.add(x.data(), b.data(), n);
            ASSERT_TRUE(x.frame_intact());
            for (std::int64_t i = 0; i < n; ++i) ASSERT_EQ(x.data()[i], a[i] + b[i]);
        }
    }
}

// gate from -100 to 100 in steps that hit every remainder, with 1 as the other factor.
TEST_F(Elementwise, SiluMatchesDoubles) {
    for (const KernelVariant& variant : variants_) {
        SCOPED_TRACE(variant.name);
        std::vector<float> gate;
        for (int i = -200'000; i <= 200'003; ++i) gate.push_back(static_cast<float>(i) * 5.003e-4F);
        const auto n = static_cast<std::int64_t>(gate.size());
        const std::vector<float> up(gate.size(), 1.0F);
        Framed out(std::vector<float>(gate.size(), kNaN));
        variant.table.silu_multiply(gate.data(), up.data(), n, out.data());
        ASSERT_TRUE(out.frame_intact());
        for (std::int64_t i = 0; i < n; ++i) {
            const double g = gate[i];
            const double expected = g / (1 + std::exp(-g));
            // The exponential 2 units (2^-23), the sum, the quotient and the product one each. Below -87 the
            // exponential stops growing: there silu is under 1e-35 in size and so is its error.
            ASSERT_NEAR(out.data()[i], expected, 5 * kUnit * std::abs(expected) + 1e-35) << g;
        }
    }
}

TEST_F(Elementwise, SiluHandlesEverySizeAliasAndFault) {
    for (const KernelVariant& variant : variants_) {
        SCOPED_TRACE(variant.name);
        for (const std::int64_t n : sizes()) {
            const std::vector<float> gate = random_floats(n, n, 10);
            const std::vector<float> up = random_floats(n, 99 + n);
            Framed x(gate);
            variant.table.silu_multiply(x.data(), up.data(), n, x.data());
            ASSERT_TRUE(x.frame_intact());
            for (std::int64_t i = 0; i < n; ++i) {
                const double g = gate[i];
                const double expected = g / (1 + std::exp(-g)) * up[i];
                ASSERT_NEAR(x.data()[i], expected, 6 * kUnit * std::abs(expected));
            }
        }
        for (const float fault : {kNaN, kInfinity, -kInfinity}) {
            for (std::int64_t bad = 0; bad < 19; ++bad) {
                std::vector<float> gate(19, 1.0F);
                std::vector<float> up(19, 1.0F);
                gate[bad] = fault;
                std::vector<float> out(19);
                variant.table.silu_multiply(gate.data(), up.data(), 19, out.data());
                for (std::int64_t i = 0; i < 19; ++i) ASSERT_EQ(std::isfinite(out[i]), i != bad) << fault;
                gate[bad] = 1.0F;
                up[bad] = fault;
                variant.table.silu_multiply(gate.data(), up.data(), 19, out.data());
                for (std::int64_t i = 0; i < 19; ++i) ASSERT_EQ(std::isfinite(out[i]), i != bad) << fault;
            }
        }
    }
}

TEST_F(Elementwise, RopeMatchesDoubles) {
    for (const KernelVariant& variant : variants_) {
        SCOPED_TRACE(variant.name);
        for (const bool interleaved : {false, true}) {
            for (int pairs = 1; pairs <= 70; ++pairs) {
                const std::vector<float> x = random_floats(2 * pairs + 6, pairs);  // six values are not rotated
                std::vector<float> cos_sin;
                for (int i = 0; i < pairs; ++i) {
                    const double angle = 0.37 * i + pairs;
                    cos_sin.push_back(static_cast<float>(std::cos(angle)));
                    cos_sin.push_back(static_cast<float>(std::sin(angle)));
                }
                Framed out(x);
                variant.table.rope(out.data(), cos_sin.data(), pairs, interleaved);
                ASSERT_TRUE(out.frame_intact());
                for (int i = 0; i < pairs; ++i) {
                    const int first = interleaved ? 2 * i : i;
                    const int second = interleaved ? 2 * i + 1 : i + pairs;
                    const double c = cos_sin[2 * i];
                    const double s = cos_sin[2 * i + 1];
                    // Two products and a sum, each rounded.
                    const double bound = 2 * kUnit * (std::abs(x[first]) + std::abs(x[second]));
                    ASSERT_NEAR(out.data()[first], x[first] * c - x[second] * s, bound) << pairs << " " << i;
                    ASSERT_NEAR(out.data()[second], x[second] * c + x[first] * s, bound) << pairs << " " << i;
                }
                for (int i = 2 * pairs; i < 2 * pairs + 6; ++i) ASSERT_EQ(out.data()[i], x[i]);
            }
        }
    }
}

// Bits as tensor/half.h defines them, in the right slot, and nothing else touched.
TEST_F(Elementwise, StoresKeysAndValues) {
    for (const KernelVariant& variant : variants_) {
        SCOPED_TRACE(variant.name);
        for (const KvType type : {KvType::kF16, KvType::kF32}) {
            const std::size_t size = type == KvType::kF16 ? 2 : 4;
            for (const int head_dim : {2, 6, 8, 14, 16, 18, 32, 50, 64, 128}) {
                for (const int token : {0, 1, 17, 31}) {
                    std::vector<float> x = random_floats(head_dim, head_dim + token, 1000);
                    x[0] = 1e6F;   // beyond f16
                    x[1] = 3e-7F;  // subnormal in f16
                    if (head_dim > 2) x[2] = kNaN;
                    const std::size_t bytes = static_cast<std::size_t>(head_dim) * kPageTokens * size;
                    std::vector<std::byte> k_page(bytes, std::byte{0xA5});
                    std::vector<std::byte> v_page(bytes, std::byte{0xA5});
                    std::vector<std::byte> k_expected = k_page;
                    std::vector<std::byte> v_expected = v_page;
                    for (int d = 0; d < head_dim; ++d) {
                        const F16 half = to_f16(x[d]);
                        const void* value = type == KvType::kF16 ? static_cast<const void*>(&half) : &x[d];
                        std::memcpy(&k_expected[static_cast<std::size_t>(d * kPageTokens + token) * size], value, size);
                        std::memcpy(&v_expected[static_cast<std::size_t>(token * head_dim + d) * size], value, size);
                    }
                    variant.table.store_k(x.data(), head_dim, type, token, k_page.data());
                    variant.table.store_v(x.data(), head_dim, type, token, v_page.data());
                    ASSERT_EQ(k_page, k_expected) << head_dim << " " << token;
                    ASSERT_EQ(v_page, v_expected) << head_dim << " " << token;
                }
            }
        }
    }
}

TEST(ElementwiseVariants, HostSetsAreListed) {
    for (const Isa isa : {Isa::kScalar, Isa::kAvx2, Isa::kAvx512}) {
        bool supported = false;
        for (const Isa other : supported_isas()) supported = supported || other == isa;
        if (supported) {
            EXPECT_EQ(kernel_table(isa).isa, isa);
        }
    }
}

}  // namespace
}  // namespace frontier

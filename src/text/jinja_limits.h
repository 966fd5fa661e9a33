// What a template may consume. Templates come from model files and are as hostile as any other input.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.h"

namespace frontier::jinja {

// The longest published template has about 30 KB.
inline constexpr std::size_t kMaxSourceBytes = std::size_t{1} << 20;
// Expressions and statements within one another in the source. Published templates stay below 30; each level costs
// parser, evaluator and destructor frames on an 8 MiB stack.
inline constexpr int kMaxParseDepth = 120;
// Containers within containers; the depth of parse_json plus what a template may wrap around its input.
inline constexpr int kMaxValueDepth = 250;
// What Jinja's sandbox allows in one range().
inline constexpr std::int64_t kMaxRangeItems = 100'000;
// Namespaces live until the end of the rendering, because they are the only values that can form cycles.
inline constexpr std::size_t kMaxNamespaces = 100'000;
// Padding of center, ljust, indent and %-formats; strings grow by repetition only within the memory budget.
inline constexpr std::int64_t kMaxFieldWidth = 100'000;

// Scalars in a tuple that is a key of a dict. Tuples share their parts, so that without a limit hashing or comparing
// one of a hundred nodes could take 2^100 steps.
inline constexpr std::uint64_t kMaxKeyNodes = 1'000;
// Added to the bytes of each string and container: reference counts, the allocator's share, the slot that holds it.
inline constexpr std::size_t kObjectOverheadBytes = 64;

struct Limits {
    // Nodes evaluated plus elements and 64-byte blocks of text touched: about a second. A conversation of 1000 messages
    // needs some 10^5 with the longest published templates, 10^7 with the quadratic ones.
    std::uint64_t max_steps = 20'000'000;
    // All strings and containers ever made in one rendering, so also the peak. A prompt of a million tokens has about
    // 5 MB and is copied a few times on its way.
    std::size_t max_allocated_bytes = std::size_t{256} << 20;
    // One string, and the result.
    std::size_t max_string_bytes = std::size_t{64} << 20;
    // Evaluator levels: nested expressions, statements and macro calls. A level takes below 2 KiB of stack in a release
    // build and below 10 KiB under AddressSanitizer, of the usual 8 MiB.
    int max_depth = 400;
};

// Counts the consumption of one rendering against its limits.
class Meter {
public:
    explicit Meter(const Limits& limits) : limits_(limits) {}

    Status spend(std::uint64_t steps) {
        if (steps > limits_.max_steps - steps_) {
            steps_ = limits_.max_steps;
            return bad_input("the template takes more than {} steps", limits_.max_steps);
        }
        steps_ += steps;
        return {};
    }
    // Reading or comparing `bytes` of text.
    Status scan(std::size_t bytes) { return spend(1 + bytes / 64); }
    Status allocate(std::size_t bytes) {
        if (bytes > limits_.max_allocated_bytes - allocated_bytes_) {
            return bad_input("the template makes more than {} bytes of values", limits_.max_allocated_bytes);
        }
        allocated_bytes_ += bytes;
        return scan(bytes);
    }
    Status check_string(std::size_t bytes) const {
        if (bytes > limits_.max_string_bytes) {
            return bad_input("a string of {} bytes is longer than the allowed {}", bytes, limits_.max_string_bytes);
        }
        return {};
    }
    const Limits& limits() const { return limits_; }
    std::uint64_t steps() const { return steps_; }

private:
    Limits limits_;
    std::uint64_t steps_ = 0;
    std::size_t allocated_bytes_ = 0;
};

}  // namespace frontier::jinja

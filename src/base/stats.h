// Statistics and error metrics, defined once and tested.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace frontier {

// Empty input gives NaN. The median of an even count is the mean of the two middle values.
double median(std::span<const double> samples);
double mean(std::span<const double> samples);
// Nearest rank (no interpolation), percent in (0, 100].
double percentile(std::span<const double> samples, double percent);
// Median absolute deviation from the median, unscaled.
double median_absolute_deviation(std::span<const double> samples);

// max_i |a_i - b_i|; NaN in either input gives NaN. The spans have equal length.
double max_abs_error(std::span<const float> a, std::span<const float> b);
// sqrt(sum (a-b)^2 / sum b^2): the relative error in the 2-norm with b as the reference; 0/0 is 0.
double relative_l2_error(std::span<const float> a, std::span<const float> b);

}  // namespace frontier

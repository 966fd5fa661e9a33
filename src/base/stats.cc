#include "base/stats.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"

namespace frontier {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

std::vector<double> sorted(std::span<const double> samples) {
    std::vector<double> copy(samples.begin(), samples.end());
    std::ranges::sort(copy);
    return copy;
}

}  // namespace

double median(std::span<const double> samples) {
    if (samples.empty()) return kNaN;
    const auto s = sorted(samples);
    const std::size_t half = s.size() / 2;
    return s.size() % 2 == 1 ? s[half] : 0.5 * (s[half - 1] + s[half]);
}

double mean(std::span<const double> samples) {
    if (samples.empty()) return kNaN;
    double sum = 0;
    for (const double x : samples) sum += x;
    return sum / static_cast<double>(samples.size());
}

double percentile(std::span<const double> samples, double percent) {
    if (samples.empty()) return kNaN;
    const auto s = sorted(samples);
    const double rank = std::ceil(percent / 100.0 * static_cast<double>(s.size()));
    const auto index = static_cast<std::size_t>(std::clamp(rank, 1.0, static_cast<double>(s.size())));
    return s[index - 1];
}

double median_absolute_deviation(std::span<const double> samples) {
    const double centre = median(samples);
    std::vector<double> deviations;
    deviations.reserve(samples.size());
    for (const double x : samples) deviations.push_back(std::abs(x - centre));
    return median(deviations);
}

double max_abs_error(std::span<const float> a, std::span<const float> b) {
    FR_CHECK(a.size() == b.size());
    double worst = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        const double error = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
        if (std::isnan(error)) return kNaN;
        worst = std::max(worst, error);
    }
    return worst;
}

double relative_l2_error(std::span<const float> a, std::span<const float> b) {
    FR_CHECK(a.size() == b.size());
    double error = 0;
    double norm = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        const double difference = static_cast<double>(a[i]) - static_cast<double>(b[i]);
        error += difference * difference;
        norm += static_cast<double>(b[i]) * static_cast<double>(b[i]);
    }
    if (error == 0) return 0;
    return std::sqrt(error / norm);
}

}  // namespace frontier

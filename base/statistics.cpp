#include "base/statistics.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numbers>
#include <numeric>
#include <vector>

namespace polyring {
namespace {

/// The k-th smallest, k from 1.
double order_statistic(std::span<const double> sorted, std::size_t k) { return sorted[k - 1]; }

double median_of(std::span<const double> sorted) {
  const std::size_t n = sorted.size();
  return n % 2 == 1 ? sorted[n / 2] : std::midpoint(sorted[n / 2 - 1], sorted[n / 2]);
}

/// The smallest sample that at least `percent` of all do not exceed. In whole numbers: 0.99 * 100 is not 99.
double percentile(std::span<const double> sorted, std::size_t percent) {
  return order_statistic(sorted, std::max<std::size_t>(1, (sorted.size() * percent + 99) / 100));
}

std::vector<double> sorted_copy(std::span<const double> samples) {
  std::vector<double> sorted(samples.begin(), samples.end());
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

}  // namespace

MedianRanks median_ranks(std::size_t samples, double confidence) {
  assert(samples > 0);
  const auto n = static_cast<double>(samples);
  // Walks up the lower tail P(B < low) while both tails together leave the confidence that is asked for.
  // Logarithms, because 2^-n underflows.
  double log_probability = -n * std::numbers::ln2;  // of B = low - 1
  double tail = std::exp(log_probability);
  std::size_t low = 1;
  while (2 * (low + 1) <= samples) {
    const auto k = static_cast<double>(low);
    log_probability += std::log((n - k + 1) / k);
    const double wider_tail = tail + std::exp(log_probability);
    if (1 - 2 * wider_tail < confidence) break;
    tail = wider_tail;
    ++low;
  }
  return {low, samples + 1 - low, 1 - 2 * tail};
}

Summary summarize(std::span<const double> samples, double confidence) {
  assert(!samples.empty());
  assert(std::all_of(samples.begin(), samples.end(), [](double x) { return std::isfinite(x); }));
  const std::vector<double> sorted = sorted_copy(samples);
  const MedianRanks ranks = median_ranks(sorted.size(), confidence);
  Summary summary;
  summary.samples = sorted.size();
  summary.median = median_of(sorted);
  summary.ci_low = order_statistic(sorted, ranks.low);
  summary.ci_high = order_statistic(sorted, ranks.high);
  summary.coverage = ranks.coverage;
  summary.min = sorted.front();
  summary.p99 = percentile(sorted, 99);
  summary.max = sorted.back();
  summary.mean = std::accumulate(sorted.begin(), sorted.end(), 0.0) / static_cast<double>(sorted.size());
  summary.spread = percentile(sorted, 75) - percentile(sorted, 25);
  return summary;
}

Ratio pairwise_ratio(std::span<const double> a, std::span<const double> b) {
  assert(!a.empty() && a.size() == b.size());
  std::vector<double> ratios(a.size());
  std::transform(a.begin(), a.end(), b.begin(), ratios.begin(), [](double x, double y) {
    assert(y > 0);
    return x / y;
  });
  const Summary summary = summarize(ratios);
  return {summary.median, summary.ci_low, summary.ci_high, summary.coverage};
}

Ratio ratio_of_medians(std::span<const double> a, std::span<const double> b) {
  const Summary above = summarize(a);
  const Summary below = summarize(b);
  assert(above.min > 0 && below.min > 0);
  const double ratio = above.median / below.median;
  const double down =
      std::hypot(std::log(above.median / above.ci_low), std::log(below.ci_high / below.median));
  const double up = std::hypot(std::log(above.ci_high / above.median), std::log(below.median / below.ci_low));
  return {ratio, ratio * std::exp(-down), ratio * std::exp(up), std::min(above.coverage, below.coverage)};
}

}  // namespace polyring

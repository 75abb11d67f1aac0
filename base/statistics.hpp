// Statistics of repeated timings that assume no distribution: medians with confidence intervals from order
// statistics. Timings are skewed and have outliers, so means and normal intervals would mislead.
#pragma once

#include <cstddef>
#include <span>

namespace polyring {

/// Which of n sorted samples bound the confidence interval of the median.
struct MedianRanks {
  std::size_t low = 0;   // 1-based: the low-th smallest sample
  std::size_t high = 0;  // 1-based, n + 1 - low
  double coverage = 0;   // the probability that the median lies within, below 0.95 for n < 6
};

inline constexpr double kConfidence = 0.95;

/// The narrowest symmetric pair of ranks that covers the median with probability `confidence` or more. How
/// many of n samples fall below the median is binomial(n, 1/2), so coverage = P(low <= B < high); see David
/// and Nagaraja, "Order Statistics", 3rd edition, section 7.1. For few samples no pair reaches it (0.95: for
/// n < 6): then the pair is the smallest and the largest sample, and `coverage` is less. `samples` must be at
/// least 1.
MedianRanks median_ranks(std::size_t samples, double confidence = kConfidence);

/// All values but `coverage` have the unit of the samples.
struct Summary {
  std::size_t samples = 0;
  double median = 0;
  double ci_low = 0;  // confidence interval of the median; [min, max] for fewer than 6 samples
  double ci_high = 0;
  double coverage = 0;  // the probability that the interval contains the median
  double min = 0;
  /// Nearest rank: the smallest sample that at least 99 % of the samples do not exceed. With fewer than 100
  /// samples it is the largest.
  double p99 = 0;
  double max = 0;
  double mean = 0;
  double spread = 0;  // interquartile range, nearest ranks
};

/// `samples` must not be empty, and all of them finite; their order does not matter.
Summary summarize(std::span<const double> samples, double confidence = kConfidence);

struct Ratio {
  double median = 0;
  double ci_low = 0;
  double ci_high = 0;
  double coverage = 0;
};

/// The median of a[i] / b[i] and its confidence interval, as in Summary. For two contenders timed by turns (A
/// B A B …): a drift of the machine then affects both samples of a pair. `a` and `b` must have the same
/// length, at least 1, and every b[i] must be above 0.
Ratio pairwise_ratio(std::span<const double> a, std::span<const double> b);

/// The median of a / the median of b, for series that were measured apart from each other, with an interval
/// that rests on those of both medians (summarize()). On the logarithmic scale the ratio is a difference, and
/// its interval reaches as far as both distances to the medians' ends together, as a root of squares: Zou and
/// Donner, "Construction of confidence limits about effect measures: a general approach", Statistics in
/// Medicine 27 (2008). `coverage` is the lesser of both medians'; that of the ratio is no
/// less. Neither series may be empty, and all samples must be above 0.
Ratio ratio_of_medians(std::span<const double> a, std::span<const double> b);

}  // namespace polyring

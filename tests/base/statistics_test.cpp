#include "base/statistics.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace polyring {
namespace {

std::vector<double> counting(int n) {
  std::vector<double> samples;
  for (int i = 1; i <= n; ++i) samples.push_back(i);
  return samples;
}

/// P(low <= B < high) for B binomial(n, 1/2), by adding up Pascal's triangle.
double coverage_by_pascal(std::size_t n, std::size_t low, std::size_t high) {
  std::vector<double> row{1};
  for (std::size_t i = 0; i < n; ++i) {
    std::vector<double> next(row.size() + 1, 0);
    for (std::size_t k = 0; k < row.size(); ++k) {
      next[k] += row[k] / 2;
      next[k + 1] += row[k] / 2;
    }
    row = next;
  }
  double sum = 0;
  for (std::size_t k = low; k < high; ++k) sum += row[k];
  return sum;
}

// The ranks that tables of the sign test list for 95 %.
TEST(MedianRanks, AreThoseOfPublishedTables) {
  const struct {
    std::size_t n, low, high;
  } known[] = {{6, 1, 6},   {8, 1, 8},   {9, 2, 8},    {10, 2, 9},   {15, 4, 12},
               {20, 6, 15}, {25, 8, 18}, {50, 18, 33}, {100, 40, 61}};
  for (const auto& [n, low, high] : known) {
    EXPECT_EQ(median_ranks(n).low, low) << n;
    EXPECT_EQ(median_ranks(n).high, high) << n;
  }
}

TEST(MedianRanks, AreTheNarrowestThatCover) {
  for (std::size_t n = 1; n <= 200; ++n) {
    const MedianRanks ranks = median_ranks(n);
    EXPECT_EQ(ranks.low + ranks.high, n + 1);
    EXPECT_NEAR(ranks.coverage, coverage_by_pascal(n, ranks.low, ranks.high), 1e-9) << n;
    if (n < 6) {
      EXPECT_EQ(ranks.low, 1u) << n;
      EXPECT_LT(ranks.coverage, 0.95) << n;
      continue;
    }
    EXPECT_GE(ranks.coverage, 0.95) << n;
    if (ranks.low + 1 < ranks.high - 1) {
      EXPECT_LT(coverage_by_pascal(n, ranks.low + 1, ranks.high - 1), 0.95) << n;
    }
  }
}

TEST(MedianRanks, CoverAsMuchAsIsAskedFor) {
  for (const double confidence : {0.5, 0.9, 0.99, 0.999}) {
    for (const std::size_t n : {12UL, 20UL, 101UL}) {
      const MedianRanks ranks = median_ranks(n, confidence);
      EXPECT_GE(ranks.coverage, confidence) << n;
      EXPECT_GE(median_ranks(n, confidence - 0.1).low, ranks.low) << n;
    }
  }
  EXPECT_EQ(median_ranks(10, 0.999).low, 1);
  EXPECT_LT(median_ranks(10, 0.999).coverage, 0.999);
  EXPECT_EQ(median_ranks(11, 0.999).low, 1);
}

TEST(MedianRanks, OfManySamplesApproachTheNormalApproximation) {
  const double n = 1e6;
  const MedianRanks ranks = median_ranks(1'000'000);
  EXPECT_NEAR(static_cast<double>(ranks.low), n / 2 - 1.959964 * std::sqrt(n) / 2, 2);
  EXPECT_NEAR(ranks.coverage, 0.95, 0.001);
}

TEST(Summary, OfKnownValues) {
  std::vector<double> samples = counting(200);
  std::shuffle(samples.begin(), samples.end(), std::mt19937(1));
  const Summary summary = summarize(samples);
  EXPECT_EQ(summary.samples, 200u);
  EXPECT_DOUBLE_EQ(summary.median, 100.5);
  EXPECT_EQ(summary.min, 1);
  EXPECT_EQ(summary.max, 200);
  EXPECT_EQ(summary.p99, 198);
  EXPECT_DOUBLE_EQ(summary.mean, 100.5);
  EXPECT_EQ(summary.spread, 100);  // the 150th less the 50th
  EXPECT_EQ(summary.ci_low, static_cast<double>(median_ranks(200).low));
  EXPECT_EQ(summary.ci_high, static_cast<double>(median_ranks(200).high));
}

TEST(Summary, OfOneSampleIsThatSampleAndPromisesNothing) {
  const Summary summary = summarize(std::vector{3.5});
  EXPECT_EQ(summary.median, 3.5);
  EXPECT_EQ(summary.ci_low, 3.5);
  EXPECT_EQ(summary.ci_high, 3.5);
  EXPECT_EQ(summary.p99, 3.5);
  EXPECT_EQ(summary.spread, 0);
  EXPECT_NEAR(summary.coverage, 0, 1e-12);
}

TEST(Summary, OfFewSamplesSpansThemAll) {
  const Summary summary = summarize(std::vector<double>{5, 1, 4, 2, 3});
  EXPECT_EQ(summary.median, 3);
  EXPECT_EQ(summary.ci_low, 1);
  EXPECT_EQ(summary.ci_high, 5);
  EXPECT_DOUBLE_EQ(summary.coverage, 0.9375);
}

TEST(Summary, P99IsTheLargestBelowAHundredSamples) {
  EXPECT_EQ(summarize(counting(99)).p99, 99);
  EXPECT_EQ(summarize(counting(100)).p99, 99);
  EXPECT_EQ(summarize(counting(101)).p99, 100);
}

TEST(Summary, IsInOrderAndFollowsScaleAndOrder) {
  std::mt19937 random(2);
  std::lognormal_distribution<double> skewed(0, 2);
  for (int n = 1; n <= 60; ++n) {
    std::vector<double> samples(static_cast<std::size_t>(n));
    for (double& sample : samples) sample = skewed(random);
    const Summary summary = summarize(samples);
    EXPECT_LE(summary.min, summary.ci_low);
    EXPECT_LE(summary.ci_low, summary.median);
    EXPECT_LE(summary.median, summary.ci_high);
    EXPECT_LE(summary.ci_high, summary.max);
    EXPECT_LE(summary.median, summary.p99);
    EXPECT_LE(summary.p99, summary.max);
    std::reverse(samples.begin(), samples.end());
    for (double& sample : samples) sample *= 4;
    EXPECT_DOUBLE_EQ(summarize(samples).median, 4 * summary.median);
    EXPECT_DOUBLE_EQ(summarize(samples).ci_low, 4 * summary.ci_low);
    EXPECT_DOUBLE_EQ(summarize(samples).spread, 4 * summary.spread);
  }
}

// The promise itself: of many experiments with a very skewed distribution, as many as `coverage` says have
// the true median inside their interval.
TEST(Summary, IntervalCoversTheMedianAsOftenAsItSays) {
  std::mt19937 random(3);
  std::exponential_distribution<double> skewed(1);
  const double truth = std::log(2.0);
  constexpr int kExperiments = 20000;
  for (const std::size_t n : {3u, 6u, 11u, 40u}) {
    int covered = 0;
    double promised = 0;
    for (int experiment = 0; experiment < kExperiments; ++experiment) {
      std::vector<double> samples(n);
      for (double& sample : samples) sample = skewed(random);
      const Summary summary = summarize(samples);
      covered += summary.ci_low <= truth && truth <= summary.ci_high;
      promised = summary.coverage;
    }
    EXPECT_NEAR(static_cast<double>(covered) / kExperiments, promised, 0.01) << n;
  }
}

TEST(PairwiseRatio, OfKnownValues) {
  const std::vector<double> a{2, 6, 12, 4, 50, 9, 21};
  const std::vector<double> b{1, 2, 4, 1, 10, 1, 3};
  const Ratio ratio = pairwise_ratio(a, b);  // 2 3 3 4 5 9 7
  EXPECT_EQ(ratio.median, 4);
  EXPECT_EQ(ratio.ci_low, 2);
  EXPECT_EQ(ratio.ci_high, 9);
  EXPECT_DOUBLE_EQ(ratio.coverage, 1 - 2.0 / 128);
}

// A machine that slows down tenfold during the run changes neither the ratio nor its interval.
TEST(PairwiseRatio, IsNotMovedByDriftThatHitsBothRivals) {
  std::mt19937 random(4);
  std::uniform_real_distribution<double> noise(1, 1.01);
  std::vector<double> a;
  std::vector<double> b;
  for (int i = 0; i < 40; ++i) {
    const double drift = 1 + i * 0.25;
    a.push_back(3 * drift * noise(random));
    b.push_back(2 * drift * noise(random));
  }
  const Ratio ratio = pairwise_ratio(a, b);
  EXPECT_NEAR(ratio.median, 1.5, 0.01);
  EXPECT_LT(ratio.ci_high - ratio.ci_low, 0.02);
  const Ratio inverse = pairwise_ratio(b, a);
  EXPECT_NEAR(ratio.ci_low, 1 / inverse.ci_high, 1e-12);
}

TEST(RatioOfMedians, HasTheIntervalsOfBothMedians) {
  // Medians 5 and 10 in [2, 8] and [4, 16].
  const std::vector<double> a{1, 2, 3, 4, 5, 6, 7, 8, 9};
  std::vector<double> b;
  for (const double x : a) b.push_back(2 * x);
  const Ratio ratio = ratio_of_medians(a, b);
  EXPECT_DOUBLE_EQ(ratio.median, 0.5);
  EXPECT_NEAR(ratio.ci_low, 0.5 * std::exp(-std::hypot(std::log(5.0 / 2), std::log(16.0 / 10))), 1e-12);
  EXPECT_NEAR(ratio.ci_high, 0.5 * std::exp(std::hypot(std::log(8.0 / 5), std::log(10.0 / 4))), 1e-12);
  EXPECT_GE(ratio.coverage, 0.95);
  EXPECT_LT(ratio_of_medians(a, counting(5)).coverage, 0.95) << "too few for an interval";
  const Ratio other = ratio_of_medians(b, a);
  EXPECT_NEAR(other.ci_low, 1 / ratio.ci_high, 1e-12);
}

/// How often the interval has the true ratio in it, of times with the tail that timings have.
double ratio_coverage(std::size_t of_a, std::size_t of_b, double truth, double tail) {
  std::mt19937 random(of_a * 1000 + of_b);
  std::exponential_distribution<double> exponential;
  std::bernoulli_distribution disturbed(0.05);
  const auto series = [&](std::size_t samples, double scale) {
    std::vector<double> times(samples);
    for (double& time : times) time = scale * (1 + tail * exponential(random) * (disturbed(random) ? 20 : 1));
    return times;
  };
  constexpr int kRuns = 4000;
  int covered = 0;
  for (int run = 0; run < kRuns; ++run) {
    const Ratio ratio = ratio_of_medians(series(of_a, truth), series(of_b, 1));
    covered += ratio.ci_low <= truth && truth <= ratio.ci_high ? 1 : 0;
  }
  return static_cast<double>(covered) / kRuns;
}

TEST(RatioOfMedians, CoversTheTrueRatio) {
  for (const auto& [of_a, of_b] : {std::pair{6, 6}, {9, 9}, {20, 20}, {20, 7}, {100, 12}, {101, 101}}) {
    for (const double tail : {0.03, 0.5}) {
      const double covered =
          ratio_coverage(static_cast<std::size_t>(of_a), static_cast<std::size_t>(of_b), 0.9, tail);
      EXPECT_GE(covered, 0.945) << of_a << " " << of_b << " " << tail;  // 0.95 less what 4000 runs leave open
      EXPECT_LE(covered, 0.995) << of_a << " " << of_b << " " << tail;
    }
  }
}

}  // namespace
}  // namespace polyring

// The slowest of n ranks against closed forms, and steps that wait for it.
#include "models/jitter.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "tests/models/refusal.hpp"

namespace polyring {
namespace {

using testing::HasSubstr;

const StepCompute compute{{1.0}, {2.0}, {0.5}};
const std::vector<Bucket> buckets{{0, 1, 1, 0.5}, {1, 1, 1, 1.0}};

Step step_of(bool overlap) {
  return run_step(compute, buckets, overlap, [](std::size_t) { return Seconds{0.3}; });
}

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// The lognormal distribution function, of mean 1.
double distribution(double variation, double x) {
  const double variance = std::log1p(variation * variation);
  return 0.5 * std::erfc(-(std::log(x) + variance / 2) / std::sqrt(2 * variance));
}

TEST(SlowestQuantile, InvertsThePowerOfTheDistribution) {
  for (const double variation : {0.01, 0.05, 0.5}) {
    for (const int ranks : {1, 2, 100, 27648}) {
      for (const double probability : {0.001, 0.025, 0.5, 0.975, 0.999}) {
        const double x = slowest_quantile(variation, ranks, probability);
        EXPECT_NEAR(std::pow(distribution(variation, x), ranks), probability, 1e-9)
            << variation << " " << ranks << " " << probability;
      }
    }
  }
  EXPECT_NEAR(slowest_quantile(0.05, 1, 0.975),
              std::exp(1.959963984540054 * std::sqrt(std::log1p(0.0025)) - std::log1p(0.0025) / 2), 1e-12);
}

TEST(SlowestFactors, HaveTheDistributionOfTheMaximum) {
  constexpr int kSteps = 4000;
  for (const int ranks : {1, 4, 1000}) {
    std::vector<double> factors = slowest_factors({0.1, 7, kSteps}, ranks);
    std::sort(factors.begin(), factors.end());
    double worst = 0;
    for (std::size_t i = 0; i < factors.size(); ++i) {
      const double exact = std::pow(distribution(0.1, factors[i]), ranks);
      worst = std::max(worst, std::abs(exact - (static_cast<double>(i) + 0.5) / kSteps));
    }
    // Kolmogorov and Smirnov: 1.63 / √steps is exceeded once in a hundred seeds.
    EXPECT_LT(worst, 1.63 / std::sqrt(kSteps)) << ranks;
  }
}

TEST(SlowestFactors, HaveTheMeanOfTheLargestNormalWhereJitterIsSmall) {
  // Order statistics of n standard normal variables: 0, 1/√π and 3/(2√π) for n = 1, 2 and 3.
  constexpr double kTiny = 1e-4;
  const double means[] = {0, std::numbers::inv_sqrtpi, 1.5 * std::numbers::inv_sqrtpi};
  for (int ranks = 1; ranks <= 3; ++ranks) {
    const double mean = (mean_of(slowest_factors({kTiny, 3, 20000}, ranks)) - 1) / kTiny;
    EXPECT_NEAR(mean, means[ranks - 1], 0.025) << ranks;  // 3.5 standard errors
  }
}

TEST(SlowestFactors, AreReproducibleAndGrowWithTheRanks) {
  const auto first = slowest_factors({0.05, 1, 5}, 4);
  EXPECT_EQ(slowest_factors({0.05, 1, 5}, 4), first);
  EXPECT_NE(slowest_factors({0.05, 2, 5}, 4), first);
  const auto more = slowest_factors({0.05, 1, 5}, 8);
  for (std::size_t i = 0; i < first.size(); ++i) EXPECT_GT(more[i], first[i]);
}

TEST(SlowestFactors, AreAsManyAsTheSteps) { EXPECT_EQ(slowest_factors({0.05, 1, 200}, 27648).size(), 200u); }

TEST(WithJitter, OfNoneChangesNothing) {
  for (const bool overlap : {false, true}) {
    const Step calm = step_of(overlap);
    const JitteredStep jittered = with_jitter({0, 1, 20}, 256, compute, buckets, overlap, calm);
    EXPECT_DOUBLE_EQ(jittered.median.total().value, calm.total().value);
    EXPECT_EQ(jittered.low, jittered.high);
  }
}

TEST(WithJitter, StretchesTheComputationAndNotTheAllreduces) {
  const Jitter jitter{0.1, 1, 4001};
  const JitteredStep jittered = with_jitter(jitter, 64, compute, buckets, false, step_of(false));
  // Without overlap a step takes 3.5 times the factor, and both allreduces.
  const auto total = [](double probability) { return 3.5 * slowest_quantile(0.1, 64, probability) + 0.6; };
  EXPECT_NEAR(jittered.median.total().value, total(0.5), 0.01);
  EXPECT_NEAR(jittered.low.value, total(0.025), 0.02);
  EXPECT_NEAR(jittered.high.value, total(0.975), 0.04);
  EXPECT_NEAR(jittered.median.exposed_communication().value, 0.6, 1e-12);
}

TEST(Variation, IsReadAsPercentOrAsAFraction) {
  EXPECT_DOUBLE_EQ(parse_variation("5%"), 0.05);
  EXPECT_DOUBLE_EQ(parse_variation("0.05"), 0.05);
  EXPECT_EQ(parse_variation("0"), 0);
  EXPECT_EQ(parse_variation("100%"), 1);
  for (const char* bad : {"", "x", "-1%", "5", "101%", "5 percent", "nan", "inf"}) {
    EXPECT_THAT(refusal([&] { parse_variation(bad); }), HasSubstr("5% or 0.05")) << bad;
  }
}

}  // namespace
}  // namespace polyring

#include "bench/predict/compare_published.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "models/jitter.hpp"
#include "models/throughput.hpp"
#include "reports/published.hpp"
#include "reports/published_runs.hpp"

namespace polyring {
namespace {

class PublishedComparisonTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { comparisons_ = compare_published(); }

  static const PublishedComparison& of(const std::string& system) {
    return *std::find_if(comparisons_.begin(), comparisons_.end(),
                         [&](const PublishedComparison& comparison) {
                           return comparison.system.find(system) != std::string::npos;
                         });
  }

  static inline std::vector<PublishedComparison> comparisons_;
};

TEST_F(PublishedComparisonTest, HasAllThatWasPublished) {
  std::size_t figures = published_claims().size();
  for (const PublishedScaling& series : published_scaling()) figures += series.points.size();
  std::size_t compared = 0;
  for (const PublishedComparison& comparison : comparisons_) {
    compared += comparison.figures.size();
    EXPECT_FALSE(comparison.modelled.empty()) << comparison.system;
    for (const Modelled& modelled : comparison.modelled) {
      for (const ScaleRow& row : modelled.rows) {
        EXPECT_EQ(row.source, Source::modelled);
        EXPECT_EQ(row.rails, modelled.combination.rails);
        EXPECT_EQ(row.overlap, modelled.combination.overlap);
        EXPECT_EQ(row.batch, modelled.combination.batch);
      }
    }
  }
  EXPECT_EQ(compared, figures);
}

TEST_F(PublishedComparisonTest, EachPublishedEfficiencyHasARowOverAllCombinations) {
  const PublishedComparison& ddl = of("Caffe, ResNet-50");
  const std::vector<ScaleRow> rows = combined_rows(ddl);
  ASSERT_EQ(rows.size(), 6u);  // the baseline has none
  for (const ScaleRow& row : rows) {
    EXPECT_EQ(row.combinations, 8);
    EXPECT_TRUE(is_inside(row)) << row.gpus;
    for (const Modelled& modelled : ddl.modelled) {
      for (const ScaleRow& one : modelled.rows) {
        if (one.gpus != row.gpus) continue;
        EXPECT_LT(row.efficiency_low, one.efficiency_low);
        EXPECT_GT(row.efficiency_high, one.efficiency_high);
      }
    }
  }
  const std::vector<ScaleRow> claims = combined_rows(of("ImageNet-22K"));
  ASSERT_EQ(claims.size(), 3u);
  EXPECT_EQ(claims[1].published_run,
            "IBM PowerAI DDL, Caffe, ResNet-101 on ImageNet-22K: 58 times one of 64 servers");
  EXPECT_TRUE(combined_rows(of("Torch")).empty()) << "its rate was published, and no efficiency";
}

TEST_F(PublishedComparisonTest, DdlWithCaffeLiesWithinTheRangeOfWhatIsUnknown) {
  const PublishedComparison& ddl = of("Caffe, ResNet-50");
  ASSERT_EQ(ddl.modelled.size(), 8u);
  for (const PublishedFigure& figure : ddl.figures) {
    double least = 1;
    double most = 0;
    for (const Modelled& modelled : ddl.modelled) {
      for (const ScaleRow& row : modelled.rows) {
        if (row.gpus != figure.gpus) continue;
        least = std::min(least, *row.efficiency_low);
        most = std::max(most, *row.efficiency_high);
      }
    }
    EXPECT_LE(least - kPublishedRounding, *figure.efficiency) << figure.gpus;
    EXPECT_GE(most + kPublishedRounding, *figure.efficiency) << figure.gpus;
  }
}

TEST_F(PublishedComparisonTest, OneCombinationIsWithinTwoPointsOfDdlWithCaffeEverywhere) {
  const PublishedComparison& ddl = of("Caffe, ResNet-50");
  double nearest = 1;
  for (const Modelled& modelled : ddl.modelled)
    nearest = std::min(nearest, std::abs(worst_residual(ddl, modelled)->efficiency));
  EXPECT_LE(nearest, 0.02);
}

TEST_F(PublishedComparisonTest, WhatWasPublishedIsNotLeftOpen) {
  const auto batches = [](const PublishedComparison& comparison) {
    std::set<int> all;
    for (const Modelled& modelled : comparison.modelled) all.insert(modelled.combination.batch);
    return all;
  };
  EXPECT_EQ(batches(of("Caffe, ResNet-50")), (std::set{32, 64}));
  EXPECT_EQ(batches(of("Torch")), std::set{8192 / 256});
  EXPECT_EQ(batches(of("ResNet-101")), std::set{5120 / 256});
}

/// No throughput was published of 20 images: a GPU computes them at the rate of 32, the slowest of 256 a
/// little longer.
TEST_F(PublishedComparisonTest, SmallerBatchesTakeTheRateOfTheNearest) {
  const double alone_ms = 20e3 / find_throughput("P100", "resnet101-22k", 32)->samples_per_second;
  for (const Modelled& modelled : of("ResNet-101").modelled) {
    for (const ScaleRow& row : modelled.rows) {
      const double slowest = slowest_quantile(0.008, row.gpus, 0.5);
      if (!row.overlap) {
        EXPECT_NEAR(row.iteration_ms - row.exposed_comm_ms, slowest * alone_ms, 1e-6);
      }
      EXPECT_GE(row.iteration_ms - row.exposed_comm_ms, slowest * alone_ms - 1e-6);
    }
  }
}

}  // namespace
}  // namespace polyring

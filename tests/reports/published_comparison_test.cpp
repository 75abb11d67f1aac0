#include "reports/published_comparison.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace polyring {
namespace {

TEST(PublishedComparison, ResidualsAreThoseOfTheFarthestRow) {
  PublishedComparison comparison;
  comparison.figures = {{4, "", 1.0, {}}, {8, "", 0.9, {}}, {16, "", {}, 100.0}};
  Modelled modelled;
  modelled.rows.resize(3);
  for (std::size_t i = 0; i < 3; ++i) modelled.rows[i].gpus = 4 << i;
  modelled.rows[0].efficiency = 0.97;
  modelled.rows[1].efficiency = 0.94;
  const auto worst = worst_residual(comparison, modelled);
  ASSERT_TRUE(worst.has_value());
  EXPECT_NEAR(worst->efficiency, 0.04, 1e-12);
  EXPECT_EQ(worst->gpus, 8);
  comparison.figures.erase(comparison.figures.begin(), comparison.figures.begin() + 2);
  EXPECT_FALSE(worst_residual(comparison, modelled).has_value());
}

TEST(PublishedComparison, SaysWhichCombinationsAgree) {
  PublishedComparison comparison;
  comparison.system = "a system";
  comparison.figures = {{4, "", 0.97, {}}};
  for (const double efficiency : {0.966, 0.94}) {
    Modelled& modelled = comparison.modelled.emplace_back();
    modelled.combination.batch = efficiency > 0.95 ? 32 : 64;
    modelled.rows.resize(1);
    modelled.rows.front().gpus = 4;
    modelled.rows.front().efficiency = efficiency;
  }
  EXPECT_THAT(
      text(comparison),
      ::testing::HasSubstr("Within the published rounding everywhere: 1 rail, batch 32, no overlap."));
  EXPECT_THAT(text(comparison), ::testing::HasSubstr("at most -0.004 off, at 4 GPUs"));
  comparison.figures.front().efficiency = 0.99;
  EXPECT_THAT(text(comparison), ::testing::HasSubstr("everywhere: none."));
  EXPECT_THAT(text(comparison),
              ::testing::HasSubstr("outside of the range of all combinations: 4 GPUs (94.0 to 96.6 %)"));
}

}  // namespace
}  // namespace polyring

#include "bench/mirror.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "reports/published.hpp"

namespace polyring {
namespace {

class MirrorTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { mirrors_ = mirror_published(); }

  static const Mirror& of(const std::string& system) {
    return *std::find_if(mirrors_.begin(), mirrors_.end(), [&](const Mirror& mirror) {
      return mirror.system.find(system) != std::string::npos;
    });
  }

  static inline std::vector<Mirror> mirrors_;
};

TEST_F(MirrorTest, HasAllThatWasPublished) {
  std::size_t figures = published_claims().size();
  for (const PublishedScaling& series : published_scaling()) figures += series.points.size();
  std::size_t mirrored = 0;
  for (const Mirror& mirror : mirrors_) {
    mirrored += mirror.figures.size();
    EXPECT_NE(mirror.modelled.empty(), mirror.why_not.empty()) << mirror.system;
    for (const Modelled& modelled : mirror.modelled) {
      for (const ScaleRow& row : modelled.rows) {
        EXPECT_EQ(row.source, Source::modelled);
        EXPECT_EQ(row.rails, modelled.combination.rails);
        EXPECT_EQ(row.overlap, modelled.combination.overlap);
        EXPECT_EQ(row.batch, modelled.combination.batch);
      }
    }
  }
  EXPECT_EQ(mirrored, figures);
}

TEST_F(MirrorTest, DdlWithCaffeLiesWithinTheRangeOfWhatIsUnknown) {
  const Mirror& ddl = of("Caffe, ResNet-50");
  ASSERT_EQ(ddl.modelled.size(), 8u);
  for (const PublishedFigure& figure : ddl.figures) {
    double least = 1;
    double most = 0;
    for (const Modelled& modelled : ddl.modelled) {
      for (const ScaleRow& row : modelled.rows) {
        if (row.gpus != figure.gpus) continue;
        least = std::min(least, row.efficiency);
        most = std::max(most, row.efficiency);
      }
    }
    EXPECT_LE(least - kPublishedRounding, *figure.efficiency) << figure.gpus;
    EXPECT_GE(most + kPublishedRounding, *figure.efficiency) << figure.gpus;
  }
}

TEST_F(MirrorTest, ResidualsAreThoseOfTheFarthestRow) {
  Mirror mirror;
  mirror.figures = {{4, "", 1.0, {}}, {8, "", 0.9, {}}, {16, "", {}, 100.0}};
  Modelled modelled;
  modelled.rows.resize(3);
  for (std::size_t i = 0; i < 3; ++i) modelled.rows[i].gpus = 4 << i;
  modelled.rows[0].efficiency = 0.97;
  modelled.rows[1].efficiency = 0.94;
  const auto worst = worst_residual(mirror, modelled);
  ASSERT_TRUE(worst.has_value());
  EXPECT_NEAR(worst->efficiency, 0.04, 1e-12);
  EXPECT_EQ(worst->gpus, 8);
  mirror.figures.erase(mirror.figures.begin(), mirror.figures.begin() + 2);
  EXPECT_FALSE(worst_residual(mirror, modelled).has_value());
}

TEST_F(MirrorTest, SaysWhichCombinationsAgree) {
  Mirror mirror;
  mirror.system = "a system";
  mirror.figures = {{4, "", 0.97, {}}};
  for (const double efficiency : {0.966, 0.94}) {
    Modelled& modelled = mirror.modelled.emplace_back();
    modelled.combination.batch = efficiency > 0.95 ? 32 : 64;
    modelled.rows.resize(1);
    modelled.rows.front().gpus = 4;
    modelled.rows.front().efficiency = efficiency;
  }
  EXPECT_THAT(text(mirror), ::testing::HasSubstr(
                                "Within the published rounding everywhere: 1 rail, batch 32, no overlap."));
  EXPECT_THAT(text(mirror), ::testing::HasSubstr("at most -0.004 off, at 4 GPUs"));
  mirror.figures.front().efficiency = 0.99;
  EXPECT_THAT(text(mirror), ::testing::HasSubstr("everywhere: none."));
  EXPECT_THAT(text(mirror),
              ::testing::HasSubstr("outside of the range of all combinations: 4 GPUs (94.0 to 96.6 %)"));
}

}  // namespace
}  // namespace polyring

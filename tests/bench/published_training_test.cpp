// The model of a training step beside what others published: a check, which nothing in it may rest on.
#include "bench/predict/published_training.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/error.hpp"

namespace polyring {
namespace {

/// As it was when the costs of frameworks were first put in, and sockets and GPUDirect after that: see
/// docs/model.md.
TEST(PublishedTraining, HeldOutRunsLieInsideAsOftenAsTheManualSays) {
  const TrainingCheck check = check_all_training(true);
  EXPECT_EQ(check.tally.runs, 16);
  EXPECT_GE(check.tally.inside, 9);
  EXPECT_LE(check.tally.error, 0.07);
  EXPECT_LE(std::abs(check.tally.signed_error), 0.045);
}

TEST(PublishedTraining, RunsThatWereSeenAreTalliedApart) {
  const TrainingCheck check = check_all_training(false);
  EXPECT_EQ(check.tally.runs, 11);
  EXPECT_GE(check.tally.inside, 7);
}

TEST(PublishedTraining, HasSixSourcesAndMore) {
  std::set<std::string> systems;
  for (const PublishedTraining& run : published_training()) {
    if (run.held_out) systems.insert(run.system);
    EXPECT_FALSE(run.source.empty());
  }
  EXPECT_GE(systems.size(), 6u);
}

TEST(PublishedTraining, RangesHoldTheirMiddle) {
  for (const PublishedTraining& run : published_training()) {
    for (const CheckedPoint& point : check_training(run)) {
      EXPECT_LE(point.low, point.middle) << run.id;
      EXPECT_GE(point.high, point.middle) << run.id;
      EXPECT_GT(point.low, 0) << run.id;
      EXPECT_FALSE(point.widest.empty()) << run.id;
    }
  }
}

/// With several batches a step the same allreduce is a smaller part.
TEST(PublishedTraining, AccumulatedBatchesCommunicateLess) {
  PublishedTraining run = published_training().front();
  const double once = check_training(run).back().middle;
  for (TrainingPoint& point : run.points) point.accumulation = 8;
  EXPECT_GT(check_training(run).back().middle, once);
}

TEST(PublishedTraining, ARowWithoutPointsIsRefused) {
  constexpr std::string_view kRow =
      R"({"results": [{"id": "x", "list": "check", "system": "s", "framework": "f", "model": "vgg16", "batch": 1,
          "source": "s", "baseline": "one GPU", "data": "synthetic", "points": [{"gpus": 1, "efficiency": 1}],
          "modelled": {"machine": "base = \"minsky\"", "framework": "ddp"}}]})";
  EXPECT_THROW(parse_published_training(kRow), Error);
  EXPECT_THROW(parse_published_training("{}"), Error);
}

}  // namespace
}  // namespace polyring

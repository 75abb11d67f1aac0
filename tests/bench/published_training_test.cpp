// The model of a training step beside what others published: a check, which nothing in it may rest on.
#include "bench/predict/published_training.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/error.hpp"
#include "reports/published_runs.hpp"

namespace polyring {
namespace {

const std::vector<ScaleRow>& all() {
  static const std::vector<ScaleRow> rows = check_all_training();
  return rows;
}

/// As it was when the costs of frameworks were first put in, and sockets and GPUDirect after that: see
/// docs/model.md.
TEST(PublishedTraining, HeldOutRunsLieInsideAsOftenAsTheManualSays) {
  const RunTally tally = tally_of(all(), RunGroup::held_out);
  EXPECT_EQ(tally.runs, 16);
  EXPECT_GE(tally.inside, 9);
  EXPECT_LE(tally.error, 0.07);
  EXPECT_LE(std::abs(tally.signed_error), 0.045);
}

TEST(PublishedTraining, RunsThatWereSeenAreTalliedApart) {
  const RunTally tally = tally_of(all(), RunGroup::seen);
  EXPECT_EQ(tally.runs, 11);
  EXPECT_GE(tally.inside, 7);
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
  for (const ScaleRow& row : all()) {
    EXPECT_LE(row.efficiency_low, row.efficiency) << *row.published_run;
    EXPECT_GE(row.efficiency_high, row.efficiency) << *row.published_run;
    EXPECT_GT(row.efficiency_low, 0) << *row.published_run;
    EXPECT_TRUE(row.widest_unknown) << *row.published_run;
  }
}

TEST(PublishedTraining, RowsSayWhatWasModelled) {
  const PublishedTraining& run = published_training().front();  // one GPU is 1
  const ScaleRow row = check_training(run).back();
  EXPECT_EQ(row.published_run, run.id);
  EXPECT_EQ(row.machine, run.system);
  EXPECT_EQ(row.gpus, 64);
  EXPECT_EQ(row.nodes, 16);
  EXPECT_EQ(row.published_efficiency, run.points.back().efficiency);
  EXPECT_NEAR(row.speedup, 64 * row.efficiency, 1e-9);
  EXPECT_NEAR(row.images_per_second, 64 * row.batch / row.iteration_ms * 1e3, 1e-6);
  EXPECT_NEAR(row.images_per_second, row.efficiency * 64 * *run.single_gpu_rate,
              0.01 * row.images_per_second);
}

TEST(PublishedTraining, EachRunHasItsSourceAmongTheInputs) {
  const std::vector<Input> inputs = training_sources();
  ASSERT_EQ(inputs.size(), published_training().size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    EXPECT_EQ(inputs[i].name, published_training()[i].id);
    EXPECT_EQ(inputs[i].source, published_training()[i].source);
  }
  EXPECT_EQ(inputs.front().value, "published: 88.9 % with 64 GPUs");
}

/// With several batches a step the same allreduce is a smaller part.
TEST(PublishedTraining, AccumulatedBatchesCommunicateLess) {
  PublishedTraining run = published_training().front();
  const double once = check_training(run).back().efficiency;
  for (TrainingPoint& point : run.points) point.accumulation = 8;
  EXPECT_GT(check_training(run).back().efficiency, once);
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

// A pipelined step against the closed form of equal stages, and what delays it.
#include "models/pipeline.hpp"

#include <gtest/gtest.h>

namespace polyring {
namespace {

std::vector<PipelineStage> equal_stages(int stages, double send = 0) {
  return std::vector<PipelineStage>(static_cast<std::size_t>(stages), {{1.0}, {2.0}, {send}, {send}});
}

TEST(Pipeline, OfEqualStagesAndFreeLinksEqualsTheClosedForm) {
  for (const int p : {1, 2, 3, 4, 8}) {
    for (const int m : {1, 2, 7, 32}) {
      const PipelineStep step = run_pipeline(equal_stages(p), m);
      EXPECT_DOUBLE_EQ(step.total.value, (m + p - 1) * 3.0) << p << " " << m;
      EXPECT_NEAR(step.bubble, (p - 1.0) / (m + p - 1), 1e-12) << p << " " << m;
    }
  }
}

TEST(Pipeline, WaitsForLinksOnTheWayInAndOutOnlyWhereTheyAreFast) {
  // Each of the p − 1 links is crossed twice by the first to come; the others' sends are hidden.
  const int p = 4;
  const int m = 8;
  auto stages = equal_stages(p, 0.25);
  stages.back().send_forward = {};
  stages.front().send_backward = {};
  EXPECT_DOUBLE_EQ(run_pipeline(stages, m).total.value, (m + p - 1) * 3.0 + 2 * (p - 1) * 0.25);
}

TEST(Pipeline, IsPacedByALinkThatIsSlowerThanTheStages) {
  // Two stages: the activations of m micro-batches leave one after another, 5 s each; so do the gradients.
  std::vector<PipelineStage> stages{{{1.0}, {2.0}, {5.0}, {}}, {{1.0}, {2.0}, {}, {5.0}}};
  const int m = 6;
  const double forward = 1 + m * 5.0 + 1;
  const double backward = 2 + m * 5.0 + 2;
  EXPECT_DOUBLE_EQ(run_pipeline(stages, m).total.value, forward + backward);
}

TEST(Pipeline, IsPacedByItsSlowestStage) {
  for (std::size_t slow = 0; slow < 3; ++slow) {
    auto stages = equal_stages(3);
    stages[slow] = {{4.0}, {8.0}, {}, {}};
    const int m = 10;
    const PipelineStep step = run_pipeline(stages, m);
    // The slow stage never waits once it has begun, except at the turn: the others' time is spent once each
    // way.
    EXPECT_DOUBLE_EQ(step.total.value, m * 12.0 + 2 * 3.0) << slow;
    EXPECT_NEAR(step.bubble, 1 - m * (12.0 + 3.0 + 3.0) / 3 / step.total.value, 1e-12);
  }
}

TEST(Pipeline, OfOneStageHasNoBubble) {
  const PipelineStep step = run_pipeline({{{0.1}, {0.2}, {}, {}}}, 10);
  EXPECT_NEAR(step.bubble, 0, 1e-12);
}

}  // namespace
}  // namespace polyring

// A pipelined step against the closed form of equal stages, and what delays it.
#include "models/pipeline.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <tuple>

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

using enum PipelineOrder;

TEST(Pipeline, InEachOrderHasTheBubbleOfThePaper) {
  // Narayanan et al., arXiv 2104.04473, section 2.2: (p − 1)/m of the computation, (p − 1)/(v m) interleaved.
  for (const int p : {2, 4, 8}) {
    for (const int m : {8, 16, 64}) {
      for (const auto& [order, v] : {std::pair(gpipe, 1), std::pair(one_forward_one_backward, 1),
                                     std::pair(interleaved, 2), std::pair(interleaved, 4)}) {
        const double computed = m * v * 3.0;
        const PipelineStep step = run_pipeline(equal_stages(p * v), m, order, p);
        EXPECT_NEAR(step.total.value / computed - 1, (p - 1.0) / (v * m), 1e-12) << p << " " << m << " " << v;
        EXPECT_NEAR(step.bubble, 1 - computed / step.total.value, 1e-12);
      }
    }
  }
}

TEST(Pipeline, KeepsAsManyMicroBatchesAsThePaperHas) {
  for (const int p : {1, 2, 4, 8}) {
    for (int rank = 0; rank < p; ++rank) {
      EXPECT_EQ(most_in_flight(gpipe, p, 1, 16, rank), 16);
      EXPECT_EQ(most_in_flight(one_forward_one_backward, p, 1, 16, rank), p - rank);
      EXPECT_EQ(most_in_flight(one_forward_one_backward, p, 1, 1, rank), 1);
    }
    // p v chunks, and p − 1 more: Korthikanti et al., arXiv 2205.05198, section 4.2.3.
    EXPECT_EQ(most_in_flight(interleaved, p, 4, 16, 0), 4 * p + p - 1);
  }
}

/// The same timeline as the longest way to each pass: what a pass waits for is asked for again and again.
class LongestWay {
 public:
  LongestWay(const std::vector<PipelineStage>& stages, PipelineOrder order, int ranks, int micro_batches)
      : stages_(stages), ranks_(ranks) {
    const int chunks = static_cast<int>(stages.size()) / ranks;
    for (int rank = 0; rank < ranks; ++rank)
      passes_.push_back(passes_of(order, ranks, chunks, micro_batches, rank));
  }

  double total() {
    double latest = 0;
    for (int rank = 0; rank < ranks_; ++rank)
      latest = std::max(latest, end(rank, static_cast<int>(passes_[at(rank)].size()) - 1));
    return latest;
  }

 private:
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  double end(int rank, int number) {
    if (number < 0) return 0;
    const auto [known, added] = ends_.try_emplace({rank, number}, 0.0);
    if (!added) return known->second;
    const PipelinePass pass = passes_[at(rank)][at(number)];
    const int stage = pass.chunk * ranks_ + rank;
    const PipelineStage& work = stages_[at(stage)];
    const double begin = std::max(end(rank, number - 1), ready(pass, stage));
    const double time = begin + (pass.forward ? work.forward : work.backward).value;
    ends_[{rank, number}] = time;
    return time;
  }

  double ready(const PipelinePass& pass, int stage) {
    const int last = static_cast<int>(stages_.size()) - 1;
    if (pass.forward && stage == 0) return 0;
    if (!pass.forward && stage == last) return end_of(true, stage, pass.micro_batch);
    return arrival(pass.forward, pass.forward ? stage - 1 : stage + 1, pass.micro_batch);
  }

  double arrival(bool forward, int from, int micro_batch) {
    const int rank = from % ranks_;
    double link = 0;
    // The messages that the sender's link carries before, in its order.
    for (std::size_t i = 0; i < passes_[at(rank)].size(); ++i) {
      const PipelinePass& pass = passes_[at(rank)][i];
      const int stage = pass.chunk * ranks_ + rank;
      if (pass.forward != forward || stage == (forward ? static_cast<int>(stages_.size()) - 1 : 0)) continue;
      const double send =
          (forward ? stages_[at(stage)].send_forward : stages_[at(stage)].send_backward).value;
      link = std::max(link, end(rank, static_cast<int>(i))) + send;
      if (stage == from && pass.micro_batch == micro_batch) return link;
    }
    return -1e9;
  }

  double end_of(bool forward, int stage, int micro_batch) {
    const int rank = stage % ranks_;
    const auto& passes = passes_[at(rank)];
    const auto found = std::find_if(passes.begin(), passes.end(), [&](const PipelinePass& pass) {
      return pass.forward == forward && pass.micro_batch == micro_batch &&
             pass.chunk * ranks_ + rank == stage;
    });
    return end(rank, static_cast<int>(found - passes.begin()));
  }

  const std::vector<PipelineStage>& stages_;
  int ranks_;
  std::vector<std::vector<PipelinePass>> passes_;
  std::map<std::pair<int, int>, double> ends_;
};

TEST(Pipeline, IsTheLongestWayThroughAllPasses) {
  for (const auto& [order, v] : {std::pair(gpipe, 1), std::pair(one_forward_one_backward, 1),
                                 std::pair(interleaved, 2), std::pair(interleaved, 3)}) {
    for (const int p : {2, 3}) {
      std::vector<PipelineStage> stages;
      for (int k = 0; k < p * v; ++k) stages.push_back({{1.0 + k % 3}, {2.5 + k % 2}, {0.5 + k}, {1.5}});
      for (const int rounds : {1, 3}) {
        const int m = p * rounds;
        EXPECT_NEAR(run_pipeline(stages, m, order, p).total.value, LongestWay(stages, order, p, m).total(),
                    1e-9)
            << p << " " << m << " " << v;
      }
    }
  }
}

TEST(Pipeline, OfOneStageHasNoBubble) {
  const PipelineStep step = run_pipeline({{{0.1}, {0.2}, {}, {}}}, 10);
  EXPECT_NEAR(step.bubble, 0, 1e-12);
}

}  // namespace
}  // namespace polyring

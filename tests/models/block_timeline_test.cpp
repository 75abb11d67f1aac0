// Weights that come and gradients that leave block by block, against closed forms.
#include "models/block_timeline.hpp"

#include <gtest/gtest.h>

namespace polyring {
namespace {

constexpr int kBlocks = 5;

std::vector<BlockTimes> equal(double forward, double backward, double gather, double reduce) {
  return std::vector<BlockTimes>(kBlocks, {{forward}, {backward}, {gather}, {reduce}});
}

double total(const std::vector<BlockTimes>& blocks, int micro_batches = 1, bool in_each = true) {
  return run_blocks(blocks, micro_batches, in_each).total.value;
}

TEST(BlockTimeline, WithNothingToSendIsComputation) {
  EXPECT_DOUBLE_EQ(total(equal(1, 2, 0, 0)), kBlocks * 3.0);
  EXPECT_DOUBLE_EQ(total(equal(1, 2, 0, 0), 4), 4 * kBlocks * 3.0);
}

TEST(BlockTimeline, HidesAFastNetworkButForTheFirstGatherAndTheLastScatter) {
  // At the turn the last block's weights are asked for while it computes forward.
  EXPECT_DOUBLE_EQ(total(equal(1, 2, 0.5, 0.25)), 0.5 + kBlocks * 3.0 + 0.25);
}

TEST(BlockTimeline, IsPacedByASlowNetwork) {
  // All that is sent, one after another, and what is computed before the first and after the last of it:
  // three times the blocks, as zero=3 sends 1.5 times an allreduce.
  EXPECT_NEAR(total(equal(0.001, 0.001, 1, 1)), 3.0 * kBlocks, 0.01);
  EXPECT_GE(total(equal(0.001, 0.001, 1, 1)), 3.0 * kBlocks);
}

TEST(BlockTimeline, AsksForOneBlockAhead) {
  // Gathers as long as the passes forward are hidden from the second on; twice as long, they set the pace.
  std::vector<BlockTimes> blocks = equal(1, 100, 1, 0);
  EXPECT_DOUBLE_EQ(total(blocks), 1 + kBlocks * 101.0);
  blocks = equal(1, 100, 2, 0);
  // The gathers of all but the first begin when the one before is over; that at the turn is half hidden.
  EXPECT_DOUBLE_EQ(total(blocks), 2 * kBlocks + 2 + kBlocks * 100.0);
}

TEST(BlockTimeline, SendsGradientsOnceOrInEachMicroBatch) {
  // A network that is slower than the passes back: the last scatter is over so many scatters after the first.
  const auto blocks = equal(0, 1, 0, 3);
  EXPECT_DOUBLE_EQ(total(blocks, 4, false), 3 * kBlocks + 1 + kBlocks * 3.0);
  EXPECT_DOUBLE_EQ(total(blocks, 4, true), 1 + 4 * kBlocks * 3.0);
}

/// Two blocks forward, one second each; the weights of each come in one second.
BlockTimeline forward(const std::vector<BlockTimes>& blocks, const Interplay& interplay) {
  BlockTimeline timeline(blocks, interplay);
  timeline.forward();
  return timeline;
}

TEST(BlockTimeline, ComputesSlowerBesideTheNetwork) {
  const std::vector<BlockTimes> blocks(2, {{1}, {1}, {1}, {}});
  // Beside the second gather, from 1 to 2, two thirds of the first pass are done.
  const BlockTimeline slowed = forward(blocks, {{}, 0.5});
  EXPECT_DOUBLE_EQ(slowed.end().value, 1 + 1 + 1.0 / 3 + 1);
  EXPECT_NEAR(slowed.slowed().value, 1.0 / 3, 1e-12);
  EXPECT_NEAR(slowed.computed().value, 2 + 1.0 / 3, 1e-12);
  // With a launch of 0.1 it runs from 1.2 to 2.2.
  const BlockTimeline launched = forward(blocks, {{0.1}, 0.5});
  EXPECT_NEAR(launched.end().value, 1.1 + 0.1 + 1 + (0.9 - 2.0 / 3) + 1, 1e-12);
  EXPECT_EQ(forward(blocks, {}).slowed().value, 0);
}

TEST(BlockTimeline, NeverEndsSoonerForSlowdownOrLaunch) {
  const std::vector<BlockTimes> blocks = equal(1, 2, 0.5, 0.75);
  for (const int micro_batches : {1, 3}) {
    double before = 0;
    for (const double cost : {0.0, 0.1, 0.2, 0.4}) {
      const BlockStep step = run_blocks(blocks, micro_batches, true, {{cost}, cost});
      EXPECT_GT(step.total.value, before);
      EXPECT_NEAR((step.computed - step.slowed).value, micro_batches * kBlocks * 3.0, 1e-9);
      EXPECT_LE(step.slowed.value, cost * step.computed.value);
      before = step.total.value;
    }
  }
}

}  // namespace
}  // namespace polyring

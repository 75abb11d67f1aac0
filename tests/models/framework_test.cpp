// The ranges of what frameworks cost: in order, with sources, and of the right size.
#include "models/framework.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "tests/models/refusal.hpp"

namespace polyring {
namespace {

const CostRange* find(const std::vector<CostRange>& ranges, double StepCosts::*cost) {
  for (const CostRange& range : ranges)
    if (range.cost == cost) return &range;
  return nullptr;
}

TEST(Frameworks, HaveRangesInOrderAndWithSources) {
  for (const Framework& framework : frameworks()) {
    for (const GpuGeneration generation :
         {GpuGeneration::pascal, GpuGeneration::volta, GpuGeneration::ampere, GpuGeneration::hopper,
          GpuGeneration::cdna3, GpuGeneration::blackwell}) {
      for (const CostRange& range : cost_ranges(framework, {generation, 4, 1})) {
        const bool rising = range.least <= range.middle && range.middle <= range.most;
        const bool falling = range.least >= range.middle && range.middle >= range.most;
        EXPECT_TRUE(rising || falling) << framework.name << " " << range.name;
        EXPECT_NE(range.least, range.most) << range.name;
        EXPECT_FALSE(range.source.empty() || range.text.empty() || range.name.empty()) << range.name;
      }
    }
  }
}

TEST(Frameworks, DifferInWhatABucketWaits) {
  const CostSetting setting{GpuGeneration::volta, 4, 1};
  const auto middle = [&](std::string_view name) {
    return middle_of(cost_ranges(find_framework(name), setting));
  };
  EXPECT_LT(middle("ddp").launch_s, middle("horovod").launch_s);
  EXPECT_LT(middle("horovod").launch_s, middle("horovod-0.20").launch_s);
  EXPECT_EQ(middle("none").accesses, 0);
  EXPECT_EQ(middle("ddp").accesses, 4);
}

TEST(Frameworks, WithoutOverlapSlowNoComputing) {
  EXPECT_EQ(find(cost_ranges(find_framework("caffe"), {}), &StepCosts::slowdown), nullptr);
  const auto ddp = cost_ranges(find_framework("ddp"), {GpuGeneration::volta, 4, 1});
  ASSERT_NE(find(ddp, &StepCosts::slowdown), nullptr);
  EXPECT_DOUBLE_EQ(find(ddp, &StepCosts::slowdown)->middle, 0.04);
  const auto many_nics = cost_ranges(find_framework("ddp"), {GpuGeneration::volta, 4, 4});
  EXPECT_DOUBLE_EQ(find(many_nics, &StepCosts::slowdown)->middle, 0.08);
}

TEST(Frameworks, UnknownOnesAreRefusedWithTheKnown) {
  EXPECT_THAT(refusal([] { find_framework("dpp"); }), testing::HasSubstr("ddp"));
}

}  // namespace
}  // namespace polyring

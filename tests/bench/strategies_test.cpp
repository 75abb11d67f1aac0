// Strategies on uniform links, where closed forms are known.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/predict/scaling.hpp"
#include "simulation/price_planner.hpp"
#include "tests/bench/uniform_case.hpp"
#include "tests/models/refusal.hpp"
#include "topology/presets.hpp"

namespace polyring {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::kLatency;
using testing::kLink;
using testing::kLocalLatency;
using testing::kNic;
using ::testing::Not;
using ::testing::StartsWith;

constexpr double kComputeMs = 300;

/// Two hosts of 4 GPUs.
ScalingCase case_of(const std::string& model, const std::string& strategy, int gpus = 8) {
  ScalingCase scaling = testing::uniform_case(model, 2, kComputeMs, 8);
  scaling.gpus = {gpus};
  scaling.strategy = parse_strategy(strategy);
  return scaling;
}

ScaleRow row_of(const ScalingCase& scaling, PlanOptions options = {}) {
  return model_scaling(scaling, "ring", options).front();
}

TEST(Strategies, OfIndependentTrialsAreTheIdealLine) {
  const ScaleRow row = row_of(case_of("resnet50", "inter-model=8"));
  EXPECT_DOUBLE_EQ(row.iteration_ms, kComputeMs);
  EXPECT_EQ(row.exposed_comm_ms, 0);
  EXPECT_DOUBLE_EQ(row.images_per_second, 8 * 8 / 0.3);
  EXPECT_EQ(row.strategy, "inter-model=8");
  EXPECT_FALSE(row.bubble);
}

TEST(Strategies, OfDataAloneAreDataParallel) {
  ScalingCase scaling = case_of("resnet50", "data=8");
  const ScaleRow row = row_of(scaling);
  scaling.strategy.reset();
  EXPECT_DOUBLE_EQ(row.iteration_ms, row_of(scaling).iteration_ms);
  EXPECT_FALSE(row_of(scaling).strategy);
}

/// On DGX-1's mesh of NVLinks rings follow the links, in rank order they cross PCIe.
TEST(Strategies, SplitOverAHostTakeItsRings) {
  ScalingCase scaling = case_of("gpt2-small", "intra-model=8");
  scaling.machine = preset("dgx1-v100", 1);
  scaling.gpus = {8};
  const ScaleRow row = model_scaling(scaling, "multi-ring", {}).front();
  const Cluster host = preset("dgx1-v100", 1);
  const Count count = Count{8} * 8 * 1024 * 768;
  const double best =
      choose_plan(modelled_problem("multi-ring", host, count, 4), host, Router(host)).simulation.time.value;
  EXPECT_NEAR(row.exposed_comm_ms, 2 * 25 * best * 1e3, 1e-9 * row.exposed_comm_ms);
}

TEST(Strategies, SayWhatLimitsEachAllreduce) {
  const auto bottleneck = [](const std::string& strategy) {
    return row_of(case_of("gpt2-small", strategy)).bottleneck.value_or("");
  };
  EXPECT_THAT(bottleneck("data=4,intra-model=2"),
              AllOf(HasSubstr("gradients: "), HasSubstr("; activations: "), HasSubstr("busy")));
  EXPECT_THAT(bottleneck("data=2,pipeline=4"),
              AllOf(HasSubstr("gradients: "), HasSubstr("; stages: "), Not(HasSubstr("activations"))));
  EXPECT_THAT(bottleneck("pipeline=8"), AllOf(StartsWith("stages: "), HasSubstr("busy")));
  EXPECT_EQ(bottleneck("inter-model=8"), "nothing is sent");
}

TEST(Strategies, HaveTheBandOfACalibration) {
  for (const char* strategy : {"data=4,intra-model=2", "pipeline=4"}) {
    ScalingCase scaling = case_of("gpt2-small", strategy);
    EXPECT_FALSE(row_of(scaling).efficiency_low);
    scaling.spread = 0.25;
    const ScaleRow row = row_of(scaling);
    EXPECT_LT(*row.efficiency_low, row.efficiency) << strategy;
    EXPECT_GT(*row.efficiency_high, row.efficiency) << strategy;
  }
}

TEST(Strategies, SplitInsideAModelExchangeActivationsInBothPasses) {
  const ScalingCase scaling = case_of("gpt2-small", "intra-model=2", 2);
  PlanOptions whole;
  whole.lanes = 1;
  whole.chunk = "1GiB";
  const ScaleRow row = row_of(scaling, whole);
  // 8 samples a GPU are 16 of 1,024 tokens with 768 features; 12 layers of two halves, and the embeddings.
  const double bytes = 16.0 * 1024 * 768 * 4;
  const double allreduce = 2 * (kLocalLatency + bytes / 2 / kLink);
  EXPECT_NEAR(row.exposed_comm_ms, 2 * 25 * allreduce * 1e3, 1e-9 * row.exposed_comm_ms);
  EXPECT_NEAR(row.iteration_ms, kComputeMs + row.exposed_comm_ms, 1e-9);
}

TEST(Strategies, OfPipelinesAreComputationBubbleAndSends) {
  ScalingCase scaling = case_of("gpt2-xl", "pipeline=4", 4);
  scaling.micro_batches = 8;
  const ScaleRow row = row_of(scaling);
  ASSERT_TRUE(row.bubble);
  EXPECT_NEAR(row.iteration_ms, kComputeMs + *row.bubble * row.iteration_ms + row.exposed_comm_ms, 1e-9);
  EXPECT_GE(row.exposed_comm_ms, 0);
  EXPECT_NEAR(row.exposed_comm_ms, 0, 1e-9) << "one replica exchanges no gradients";
  // Stages are never quite equal, and links never free.
  EXPECT_GT(*row.bubble, 3.0 / 11);
  EXPECT_LT(*row.bubble, 3.0 / 11 + 0.1);
}

TEST(Strategies, OfMoreMicroBatchesHaveASmallerBubble) {
  ScalingCase scaling = case_of("gpt2-xl", "pipeline=4");
  double before = 1;
  for (const int micro_batches : {1, 4, 16}) {
    scaling.micro_batches = micro_batches;
    const ScaleRow row = row_of(scaling);
    EXPECT_LT(*row.bubble, before);
    before = *row.bubble;
  }
}

TEST(Strategies, OfHybridsExchangeTheGradientsOfTheLargestStage) {
  // Two replicas of 4 stages, one on each host: the stages' rings of two share the NIC.
  const ScalingCase scaling = case_of("resnet50", "data=2,pipeline=4");
  const ScaleRow row = row_of(scaling);
  std::int64_t most = 0;
  for (const StageBlocks& stage : balanced_stages(scaling.model, 4)) most = std::max(most, stage.parameters);
  const double allreduce = 2 * kLatency + 4 * 4.0 * static_cast<double>(most) / kNic;
  EXPECT_NEAR(row.exposed_comm_ms, allreduce * 1e3, 1e-3 * allreduce * 1e3);
  EXPECT_EQ(row.dims, "2");
}

TEST(Strategies, WaitForDataThatOnlyFirstStagesRead) {
  // One replica over both hosts: only one of them reads, all of the replica's 64 samples.
  ScalingCase scaling = case_of("gpt2-xl", "pipeline=8");
  scaling.conditions.input = InputPipeline{{{1'000'000}, ""}, {}, {10e6}};
  const ScaleRow row = row_of(scaling);
  EXPECT_EQ(row.limit, "data (NVMe)");
  EXPECT_DOUBLE_EQ(row.iteration_ms, 6400);
}

TEST(Strategies, ThatContradictOtherOptionsAreRefused) {
  const auto refused = [](const ScalingCase& scaling) { return refusal([&] { row_of(scaling); }); };
  EXPECT_THAT(refused(case_of("resnet50", "data=4,pipeline=4")), HasSubstr("= 16 GPUs and not for 8"));
  EXPECT_THAT(refused(case_of("resnet50", "intra-model=2")), HasSubstr("not known"));
  ScalingCase scaling = case_of("resnet50", "pipeline=2");
  scaling.overlap = true;
  EXPECT_THAT(refused(scaling), HasSubstr("--overlap"));
  scaling.overlap = false;
  scaling.conditions.jitter = Jitter{};
  EXPECT_THAT(refused(scaling), HasSubstr("--jitter"));
  scaling.conditions.jitter.reset();
  scaling.micro_batches = 17;
  EXPECT_THAT(refused(scaling), HasSubstr("a replica has 16"));
  scaling.micro_batches.reset();
  scaling.machine.groups.front().machine.gpus.front().memory = {100'000'000};
  EXPECT_THAT(refused(scaling), HasSubstr("does not fit"));
}

}  // namespace
}  // namespace polyring

// What frameworks cost in steps of strategies: each cost by itself against a closed form, and the same as in
// a data-parallel step.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/predict/strategies.hpp"
#include "models/jitter.hpp"
#include "tests/bench/uniform_case.hpp"
#include "tests/models/even_model.hpp"
#include "topology/presets.hpp"
#include "topology/resize.hpp"

namespace polyring {
namespace {

/// 8 equal layers on two hosts of 4 GPUs.
ScalingCase even_case() {
  ScalingCase scaling = testing::uniform_case("gpt2-small", 2, 300, 8);
  scaling.model = testing::even_model(8, 80'000'000, 128, 256, 4);
  scaling.compute = compute_of(scaling.model, {0.3});
  scaling.gpus = {8};
  return scaling;
}

StrategyParts parts_of(const ScalingCase& scaling, const std::string& text, const StepCosts& costs) {
  const Cluster cluster = with_ranks(scaling.machine, 8);
  const Router router(cluster);
  StrategyTimes times(scaling, "ring", {}, cluster, router, StrategyTimes::Detail::simulated);
  const Strategy strategy = for_gpus(parse_strategy(text), 8);
  return StrategyStep(scaling, strategy, times).run(costs);
}

/// The part with the costs less that without.
double added(const std::string& text, const StepCosts& costs, Seconds StrategyParts::*part) {
  const ScalingCase scaling = even_case();
  return (parts_of(scaling, text, costs).*part - parts_of(scaling, text, {}).*part).value;
}

TEST(CostsOfStrategies, AreTakenForEachCollectiveOfActivations) {
  StepCosts costs;
  costs.call_s = 1e-3;
  costs.ramp_s = 1e-2;
  // Two halves of 8 layers in both passes.
  EXPECT_NEAR(added("tensor=4,data=2", costs, &StrategyParts::tensor), 2 * 2 * 8 * 11e-3, 1e-9);
  // A reduce-scatter and an allgather in place of each allreduce: two launches, two halves of the rest.
  EXPECT_NEAR(added("tensor=4,sequence-parallel,data=2", costs, &StrategyParts::tensor), 2 * 2 * 8 * 12e-3,
              1e-9);
  // Each of two micro-batches anew.
  EXPECT_NEAR(added("tensor=4,data=2,micro-batch=16", costs, &StrategyParts::tensor), 2 * 2 * 2 * 8 * 11e-3,
              1e-9);
}

TEST(CostsOfStrategies, AreTakenOnceForGradientsThatLeaveAtTheEnd) {
  StepCosts costs;
  costs.launch_s = 1e-3;
  costs.ramp_s = 1e-2;
  EXPECT_NEAR(added("data=8,micro-batch=4", costs, &StrategyParts::data), 11e-3, 1e-9);
  EXPECT_NEAR(added("data=2,pipeline=4", costs, &StrategyParts::data), 11e-3, 1e-9);
}

TEST(CostsOfStrategies, StretchWhatIsSentByWhatTheLinksReach) {
  const ScalingCase scaling = even_case();
  StepCosts half;
  half.network = 0.5;
  const Seconds whole = parts_of(scaling, "data=8,micro-batch=4", {}).data;
  EXPECT_NEAR(parts_of(scaling, "data=8,micro-batch=4", half).data.value / whole.value, 2, 1e-9);
  // Inside a host the network's part does not count.
  EXPECT_EQ(added("tensor=4,data=2", half, &StrategyParts::tensor), 0);
  StepCosts inside;
  inside.inside = 0.5;
  EXPECT_NEAR(added("tensor=4,data=2", inside, &StrategyParts::tensor),
              parts_of(scaling, "tensor=4,data=2", {}).tensor.value, 1e-9);
  EXPECT_EQ(added("data=8,micro-batch=4", inside, &StrategyParts::data), 0);
}

TEST(CostsOfStrategies, WaitForTheSlowestGpu) {
  StepCosts costs;
  costs.variation = 0.02;
  const double factor = slowest_quantile(0.02, 8, 0.5);
  for (const char* text : {"data=2,tensor=4", "data=2,pipeline=4", "zero=3"})
    EXPECT_NEAR(added(text, costs, &StrategyParts::compute), (factor - 1) * 0.3, 1e-9) << text;
  EXPECT_LT(added("inter-model=8", costs, &StrategyParts::compute), 1e-4) << "trials do not wait";
}

TEST(CostsOfStrategies, SlowComputingWhereSomethingIsSentBeside) {
  StepCosts costs;
  costs.slowdown = 0.2;
  EXPECT_GT(added("zero=3", costs, &StrategyParts::compute), 0);
  EXPECT_LE(added("zero=3", costs, &StrategyParts::compute), 0.2 * 0.3);
  EXPECT_EQ(added("tensor=4,data=2", costs, &StrategyParts::total), 0) << "nothing is sent beside";
  EXPECT_GT(added("data=2,pipeline=4,zero=2", costs, &StrategyParts::compute), 0);
}

TEST(CostsOfStrategies, CopyGradientsWhereReplicasAreWhole) {
  StepCosts costs;
  costs.tensor_s = 1e-3;
  for (const char* text : {"data=8,micro-batch=4", "zero=1", "zero=3"})
    EXPECT_NEAR(added(text, costs, &StrategyParts::total), 8e-3, 1e-9) << text;
  for (const char* text : {"tensor=4,data=2", "data=2,pipeline=4", "inter-model=8"})
    EXPECT_EQ(added(text, costs, &StrategyParts::total), 0) << text;
}

TEST(CostsOfStrategies, AddUpToTheStep) {
  const ScalingCase scaling = even_case();
  const StepCosts costs{.computing = 1.1,
                        .launch_s = 1e-4,
                        .slowdown = 0.2,
                        .variation = 0.01,
                        .network = 0.7,
                        .ramp_s = 1e-4,
                        .call_s = 1e-5,
                        .inside = 0.8};
  for (const char* text : {"zero=3", "zero=1,micro-batch=4", "tensor=4,data=2", "data=2,pipeline=4,zero=2",
                           "pipeline=4,tensor=2,schedule=1f1b", "zero=3,recompute=full"}) {
    const StrategyParts parts = parts_of(scaling, text, costs);
    const Seconds sum =
        parts.compute + parts.recompute + parts.bubble + parts.tensor + parts.expert + parts.data;
    EXPECT_NEAR(sum.value / parts.total.value, 1, 1e-9) << text;
    EXPECT_GT(parts.total, parts_of(scaling, text, {}).total) << text;
  }
}

/// Of DGX H100 with these costs: a strategy of whole replicas over a data-parallel step.
double over_data_parallel(const std::string& algorithm, const StepCosts& costs) {
  ScalingCase scaling = testing::uniform_case("gpt2-xl", 2, 500, 4);
  scaling.machine = preset("dgx-h100", 1);
  scaling.framework = &find_framework("none");
  const StepModel data(scaling, algorithm, {}, 32);
  StrategyModel strategy(scaling, for_gpus({}, 32), algorithm, {}, with_ranks(scaling.machine, 32));
  return strategy.throughput(costs) / data.throughput(costs);
}

TEST(CostsOfStrategies, AreThoseOfADataParallelStep) {
  const StepCosts costs{
      .computing = 1.1, .launch_s = 1e-3, .slowdown = 0.2, .variation = 0.01, .network = 0.7, .ramp_s = 1e-3};
  EXPECT_NEAR(over_data_parallel("multi-ring", costs), 1, 1e-3) << "their plans are chosen apart";
  // Its rate is known of large allreduces; a strategy takes others to be as far from what is simulated.
  EXPECT_NEAR(over_data_parallel("nccl", costs), 1, 0.01);
}

TEST(CostsOfStrategies, GiveTheirRowsARange) {
  ScalingCase scaling = testing::uniform_case("llama3-8b", 2, 1000, 1);
  scaling.machine = preset("dgx-h100", 1);
  scaling.precision = Precision::mixed;
  scaling.gpus = {64};
  for (const char* text : {"zero=3", "tensor=4,sequence-parallel,zero=1",
                           "pipeline=4,schedule=1f1b,zero=1,micro-batch=1,recompute=full"}) {
    scaling.strategy = parse_strategy(text);
    scaling.framework = nullptr;
    const ScaleRow ideal = model_scaling(scaling, "nccl", {}).front();
    EXPECT_FALSE(ideal.efficiency_low) << text;
    scaling.framework = &find_framework("ddp");
    const ScaleRow row = model_scaling(scaling, "nccl", {}).front();
    ASSERT_TRUE(row.efficiency_low && row.efficiency_high) << text;
    EXPECT_LT(*row.efficiency_low, row.efficiency) << text;
    EXPECT_GT(*row.efficiency_high, row.efficiency) << text;
    EXPECT_LT(*row.efficiency_high, ideal.efficiency) << text;
    EXPECT_TRUE(row.widest_unknown) << text;
  }
}

}  // namespace
}  // namespace polyring

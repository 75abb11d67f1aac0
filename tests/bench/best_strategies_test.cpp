// The search for the best strategy, and its rough prices against full simulations.
#include "bench/predict/best_strategies.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "bench/predict/strategies.hpp"
#include "tests/bench/uniform_case.hpp"
#include "tests/models/even_model.hpp"
#include "tests/models/refusal.hpp"
#include "topology/presets.hpp"
#include "topology/resize.hpp"

namespace polyring {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

/// 70 billion parameters on DGX H100, at 400 TFLOP/s a GPU.
ScalingCase large_case(int gpus, int batch) {
  ScalingCase scaling;
  scaling.machine = preset("dgx-h100", 1);
  scaling.name = "dgx-h100";
  scaling.model = testing::even_70b();
  scaling.batch = batch;
  scaling.compute = compute_of(scaling.model, {batch * scaling.model.flops_per_sample() / 400e12});
  scaling.kind = ElementKind::bfloat16;
  scaling.gpus = {gpus};
  return scaling;
}

/// Two hosts of four GPUs, and 8 layers of 4 heads.
ScalingCase small_case(double gigabytes) {
  ScalingCase scaling = testing::uniform_case("gpt2-small", 2, 40, 4);
  scaling.model = testing::even_model(8, 100'000'000, 128, 256, 4);
  scaling.compute = compute_of(scaling.model, {0.2});
  scaling.gpus = {8};
  scaling.machine.groups.front().machine.gpus.front().memory = {static_cast<std::uint64_t>(gigabytes * 1e9)};
  return scaling;
}

/// All that fit, each simulated in full.
std::vector<FoundStrategy> simulate_all(const ScalingCase& scaling, const Cluster& cluster) {
  const Router router(cluster);
  std::vector<FoundStrategy> all;
  for (Strategy strategy : candidate_strategies(scaling, cluster.ranks())) {
    for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
      strategy.recompute = recompute;
      StrategyTimes times(scaling, "ring", {}, cluster, router, StrategyTimes::Detail::simulated);
      StrategyStep step(scaling, strategy, times);
      const StrategyMemory memory = step.memory();
      if (fits(memory, gpu_memory(scaling))) all.push_back({strategy, step.run(), memory});
    }
  }
  return all;
}

double sum(const StrategyParts& parts) {
  return (parts.compute + parts.recompute + parts.bubble + parts.tensor + parts.expert + parts.data).value;
}

void expect_fastest_of_all(const ScalingCase& scaling) {
  const BestStrategies found = best_strategies(scaling, "ring", {}, scaling.machine);
  const std::vector<FoundStrategy> all = simulate_all(scaling, scaling.machine);
  EXPECT_GT(all.size(), 400u);
  for (const FoundStrategy& each : all) {
    EXPECT_GE(each.parts.total.value, found.best.front().parts.total.value * (1 - 1e-9))
        << to_text(each.strategy) << " beats " << to_text(found.best.front().strategy);
  }
}

TEST(BestStrategies, AreNeverSlowerThanWhatWasConsidered) {
  for (const double gigabytes : {0.6, 40.0}) expect_fastest_of_all(small_case(gigabytes));
  // Steps that mostly wait for the network.
  ScalingCase hasty = small_case(1.0);
  hasty.compute = compute_of(hasty.model, {0.008});
  expect_fastest_of_all(hasty);
  for (Block& block : hasty.model.blocks) block.experts = {4, 2, 8'000'000, 0, 2 * 128 * 256};
  expect_fastest_of_all(hasty);
}

TEST(BestStrategies, FitAndAddUpAndComeByTime) {
  const ScalingCase scaling = small_case(1.0);
  const BestStrategies found = best_strategies(scaling, "ring", {}, scaling.machine);
  ASSERT_EQ(found.best.size(), 5u);
  EXPECT_LT(found.fitting, found.considered);
  EXPECT_GE(found.simulated, 5);
  std::set<std::string> texts;
  Seconds before;
  for (const FoundStrategy& each : found.best) {
    EXPECT_NEAR(sum(each.parts) / each.parts.total.value, 1, 1e-9) << to_text(each.strategy);
    EXPECT_LE(each.memory.total(), 1e9);
    EXPECT_LE(before, each.parts.total);
    before = each.parts.total;
    EXPECT_EQ(for_gpus(parse_strategy(to_text(each.strategy)), 8), each.strategy);
    EXPECT_TRUE(texts.insert(to_text(each.strategy)).second);
    EXPECT_THAT(why(each, gpu_memory(scaling)), HasSubstr(" of 1.0 GB"));
  }
  const Table table = table_of(found, scaling, "8 GPUs");
  EXPECT_EQ(table.size(), found.best.size());
  EXPECT_EQ(table.cells(0).front(), to_text(found.best.front().strategy));
  const std::string text = text_of(found, scaling, "8 GPUs");
  EXPECT_EQ(text.rfind(table.caption + ": " + table.cells(0).front(), 0), 0U) << text;
  EXPECT_EQ(text.find('\n'), std::string::npos);
}

/// Few parameters and much to compute: nothing is faster than whole replicas whose gradients hide.
TEST(BestStrategies, ArePlainDataParallelWhereThatIsFastest) {
  ScalingCase scaling = small_case(40);
  scaling.model = testing::even_model(8, 8'000'000, 2048, 1024, 4);
  scaling.compute = compute_of(scaling.model, {20});
  scaling.policy = {BucketPolicy::Kind::per_tensor, {}};
  scaling.overlap = true;
  const BestStrategies found = best_strategies(scaling, "ring", {}, scaling.machine);
  EXPECT_EQ(to_text(found.best.front().strategy), "data=8");
  EXPECT_TRUE(found.best.front().strategy.is_plain());
  EXPECT_NEAR(sum(found.best.front().parts) / found.best.front().parts.total.value, 1, 1e-9);
  scaling.strategy = found.best.front().strategy;
  const ScaleRow row = model_scaling(scaling, "ring", {}).front();
  EXPECT_NEAR(row.iteration_ms, 1e3 * found.best.front().parts.total.value, 1e-9);
}

TEST(BestStrategies, DifferInMoreThanZero) {
  const ScalingCase scaling = small_case(1.2);
  const BestStrategies found = best_strategies(scaling, "ring", {}, scaling.machine);
  ASSERT_EQ(found.best.size(), 5u);
  std::set<std::tuple<int, int, int>> products;
  for (const FoundStrategy& each : found.best) {
    EXPECT_TRUE(products.insert({each.strategy.intra, each.strategy.pipeline, each.strategy.expert}).second)
        << to_text(each.strategy);
    const double own = each.zeros.at(each.strategy.zero).value;
    EXPECT_DOUBLE_EQ(own, each.parts.total.value);
    for (const auto& [zero, time] : each.zeros)
      EXPECT_TRUE(time.value == 0 || time.value >= own) << to_text(each.strategy) << zero;
  }
  // 16 bytes of 100 million parameters do not fit 0.96 GB.
  const auto whole = std::find_if(found.best.begin(), found.best.end(), [](const FoundStrategy& each) {
    return each.strategy.replica_gpus() == 1;
  });
  ASSERT_NE(whole, found.best.end());
  EXPECT_EQ(whole->zeros.at(0), Seconds{});
  EXPECT_THAT(table_of(found, scaling, "8 GPUs").text(), HasSubstr("0 does not fit"));
  EXPECT_EQ(behind(found.best[0], found.best[0]), "");
  EXPECT_THAT(behind(found.best[4], found.best[0]), HasSubstr(" +"));
}

TEST(BestStrategies, OfALargeModelOnManyGpusTakeFewSimulations) {
  const ScalingCase scaling = large_case(512, 2);
  const Cluster cluster = with_ranks(scaling.machine, 512);
  const BestStrategies found = best_strategies(scaling, "nccl", {}, cluster);
  EXPECT_GT(found.fitting, 1000);
  EXPECT_LE(found.simulated, 40);
  ASSERT_EQ(found.best.size(), 5u);
  for (const FoundStrategy& each : found.best) {
    EXPECT_LE(each.memory.total(), static_cast<double>(gpu_memory(scaling).value));
    EXPECT_LE(each.strategy.intra, 8);
    // 1120 GB of states do not fit a GPU whole.
    EXPECT_TRUE(each.strategy.replica_gpus() >= 8 || each.strategy.zero > 0) << to_text(each.strategy);
    EXPECT_NEAR(sum(each.parts) / each.parts.total.value, 1, 1e-9);
  }
}

TEST(BestStrategies, PriceRoughlyWhatASimulationTakes) {
  const ScalingCase scaling = large_case(64, 4);
  const Cluster cluster = with_ranks(scaling.machine, 64);
  const Router router(cluster);
  StrategyTimes rough(scaling, "multi-ring", {}, cluster, router, StrategyTimes::Detail::rough);
  for (const char* text : {"zero=3", "tensor=8,sequence-parallel,zero=1,micro-batch=2",
                           "pipeline=4,tensor=8,schedule=1f1b,micro-batch=2",
                           "pipeline=8,interleaved=2,tensor=4,zero=1,micro-batch=1,near=data",
                           "pipeline=4,tensor=4,schedule=1f1b,zero=3,micro-batch=4,recompute=full"}) {
    const Strategy strategy = for_gpus(parse_strategy(text), 64);
    StrategyTimes exact(scaling, "multi-ring", {}, cluster, router, StrategyTimes::Detail::simulated);
    const double simulated = StrategyStep(scaling, strategy, exact).run().total.value;
    EXPECT_NEAR(StrategyStep(scaling, strategy, rough).run({}, true).total.value / simulated, 1, 0.03)
        << text;
  }
}

/// The share is 64 samples; 4 of them are computed at once, and fit the memory.
TEST(BestStrategies, JudgeADataParallelStepAsItsRowAndItsNoteDo) {
  ScalingCase scaling = small_case(2.2);
  scaling.global_batch = 8 * 64;
  scaling.strategy = Strategy{};
  ScalingCase at = with_share(scaling, 8);
  ASSERT_EQ(at.batch, 64);
  EXPECT_EQ(with_share(at, 8).at_once, 4) << "shared twice";
  EXPECT_EQ(model_scaling(scaling, "ring", {}).size(), 1u);
  EXPECT_THAT(note_of(at, for_gpus({}, 8)),
              HasSubstr("0.07 GB of activations on the GPU that needs most, the batch of 64 in parts of at "
                        "most 4"));
  const auto fitting = [&] { return best_strategies(at, "ring", {}, with_ranks(at.machine, 8)).fitting; };
  const int in_parts = fitting();
  at.at_once = at.batch;
  EXPECT_EQ(fitting(), in_parts - 1) << "64 at once do not fit";
  EXPECT_THAT(refusal([&] { check_strategy(at, for_gpus({}, 8)); }), HasSubstr("does not fit"));
}

TEST(BestStrategies, AreRefusedWhereNoneFits) {
  const auto refused = [](const ScalingCase& scaling) {
    return refusal([&] { best_strategies(scaling, "multi-ring", {}, with_ranks(scaling.machine, 8)); });
  };
  const std::string text = refused(large_case(8, 1));
  EXPECT_THAT(text, HasSubstr("a replica needs 20 GPUs at least, as pipeline=20"));
  EXPECT_THAT(text, HasSubstr("replicas that share their state need 32, as "));
  EXPECT_THAT(text, Not(HasSubstr("the best strategy")));
  // Where no split does, more GPUs do not help.
  EXPECT_THAT(refused(small_case(0.01)), EndsWith("choose a smaller model, or GPUs with more memory"));
}

}  // namespace
}  // namespace polyring

// Scaling tables on uniform links, where closed forms are known.
#include "bench/predict/scaling.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulation/in_network.hpp"
#include "tests/bench/uniform_case.hpp"
#include "tests/models/refusal.hpp"

namespace polyring {
namespace {

using ::testing::HasSubstr;
using testing::kLatency;
using testing::kLink;
using testing::kLocalLatency;
using testing::kNic;

constexpr double kComputeMs = 160;
constexpr int kBatch = 32;

/// Hosts of 4 GPUs.
ScalingCase case_of(std::vector<int> gpus) {
  ScalingCase scaling = testing::uniform_case("resnet50", 1, kComputeMs, kBatch);
  scaling.gpus = std::move(gpus);
  scaling.baseline.host = true;
  return scaling;
}

/// One chunk and one lane, so that closed forms are short.
PlanOptions whole() {
  PlanOptions options;
  options.lanes = 1;
  options.chunk = "1GiB";
  return options;
}

double gradient_bytes(const ScalingCase& scaling) {
  return 4.0 * static_cast<double>(scaling.model.total_elements());
}

TEST(Costs, AreOfEachMessageAndOfWhatIsReceived) {
  ScalingCase scaling = case_of({4, 8});
  scaling.conditions.costs = {{3e-6}, {5e-6}, {2e9}};
  const auto rows = model_scaling(scaling, "ring", whole());
  const double bytes = gradient_bytes(scaling);
  const double in_host = 6 * (kLocalLatency + 3e-6 + bytes / 4 / kLink) + 3 * bytes / 4 / 2e9;
  EXPECT_NEAR(rows[0].exposed_comm_ms, 1e3 * in_host, 1e-9);
  const double over_two = 14 * (kLatency + 5e-6 + bytes / 8 / kNic) + 7 * bytes / 8 / 2e9;
  EXPECT_NEAR(rows[1].exposed_comm_ms, 1e3 * over_two, 1e-9);
}

TEST(StrongScaling, SharesTheGlobalBatchAndItsComputation) {
  ScalingCase scaling = case_of({1, 4, 8, 16, 64});
  const auto weak = model_scaling(scaling, "ring", whole());
  scaling.global_batch = 512;
  const auto strong = model_scaling(scaling, "ring", whole());
  ASSERT_EQ(strong.size(), weak.size());
  const double host_ms = strong[1].iteration_ms;
  for (std::size_t i = 0; i < strong.size(); ++i) {
    const ScaleRow& row = strong[i];
    EXPECT_EQ(row.global_batch, 512);
    EXPECT_EQ(row.batch, 512 / row.gpus);
    // The gradients are as large as ever.
    EXPECT_NEAR(row.exposed_comm_ms, weak[i].exposed_comm_ms, 1e-9);
    EXPECT_NEAR(row.iteration_ms, kComputeMs * row.batch / kBatch + row.exposed_comm_ms, 1e-9);
    EXPECT_NEAR(row.images_per_second, 512e3 / row.iteration_ms, 1e-6);
    EXPECT_NEAR(row.speedup, host_ms / row.iteration_ms, 1e-9);
    EXPECT_NEAR(row.efficiency, row.speedup * 4 / row.gpus, 1e-9);
    EXPECT_FALSE(weak[i].global_batch);
    EXPECT_EQ(weak[i].batch, kBatch);
  }
}

TEST(StrongScaling, IsWeakScalingWhereAGpuHasTheSameBatch) {
  ScalingCase scaling = case_of({16});
  const ScaleRow weak = model_scaling(scaling, "ring", whole()).front();
  scaling.global_batch = 16 * kBatch;
  const ScaleRow strong = model_scaling(scaling, "ring", whole()).front();
  EXPECT_NEAR(strong.iteration_ms, weak.iteration_ms, 1e-9);
  // But its baseline has four times the batch a GPU.
  EXPECT_LT(strong.speedup, weak.speedup);
}

TEST(StrongScaling, IsLimitedByTheGradientsThatAllGpusExchange) {
  ScalingCase scaling = case_of({4, 8, 16, 32, 64, 128});
  scaling.global_batch = 1024;
  double before = 1.0000001;
  for (const ScaleRow& row : model_scaling(scaling, "multi-ring", {})) {
    EXPECT_LT(row.efficiency, before) << row.gpus;
    before = row.efficiency;
  }
  EXPECT_LT(before, 0.75);
}

TEST(StrongScaling, SharesTheBatchOfPipelinesToo) {
  ScalingCase scaling = case_of({8});
  scaling.strategy = parse_strategy("pipeline=4");
  scaling.micro_batches = 8;
  scaling.global_batch = 8 * 16;
  const ScaleRow strong = model_scaling(scaling, "ring", {}).front();
  EXPECT_EQ(strong.batch, 16);
  scaling.global_batch.reset();
  scaling.batch = 16;
  scaling.compute = compute_of(scaling.model, {kComputeMs * 1e-3 / 2});
  const ScaleRow weak = model_scaling(scaling, "ring", {}).front();
  EXPECT_NEAR(strong.iteration_ms, weak.iteration_ms, 1e-9);
  EXPECT_NEAR(strong.images_per_second, weak.images_per_second, 1e-6);
}

TEST(StrongScaling, RefusesSharesThatAreNotWholeAndTrialsThatShareNothing) {
  const auto refused = [](const ScalingCase& scaling) {
    return refusal([&] { model_scaling(scaling, "ring", {}); });
  };
  ScalingCase scaling = case_of({4, 8});
  scaling.global_batch = 36;
  EXPECT_THAT(refused(scaling), HasSubstr("36 does not divide among 8 GPUs;"));
  scaling.gpus = {1};
  scaling.global_batch = 6;
  EXPECT_THAT(refused(scaling), HasSubstr("6 does not divide among the 4 GPUs of one host, the baseline"));
  ScalingCase over_gpu = scaling;
  over_gpu.baseline = {};
  over_gpu.gpus = {1, 2};
  EXPECT_EQ(refused(over_gpu), "") << "no host is its baseline";
  scaling.gpus = {4};
  scaling.global_batch = 16;
  scaling.strategy = parse_strategy("inter-model=4");
  EXPECT_THAT(refused(scaling), HasSubstr("share no batch"));
}

TEST(InNetworkScaling, HasASwitchBetweenItsHosts) {
  ScalingCase scaling = case_of({4, 64});
  const auto rows = model_scaling(scaling, std::string(kInNetwork), whole());
  const double bytes = gradient_bytes(scaling);
  // A host's GPUs reach each other: one step each way.
  const double local = 2 * (kLocalLatency + bytes / 4 / kLink);
  EXPECT_NEAR(rows[0].exposed_comm_ms, 1e3 * local, 1e-9);
  EXPECT_NEAR(rows[1].exposed_comm_ms, 1e3 * (local + kLatency + 2 * bytes / kNic), 1e-9);
  EXPECT_EQ(rows[1].algorithm, "in-network");
  EXPECT_EQ(rows[1].dims, "4") << "inside a host";
  EXPECT_EQ(rows[1].source, Source::modelled);
  EXPECT_THAT(*rows[1].bottleneck, HasSubstr("nic0"));
  EXPECT_EQ(algorithm_inputs(scaling, "in-network").size(), 5u);
  EXPECT_TRUE(algorithm_inputs(scaling, "ring").empty());
}

TEST(InNetworkScaling, HasItsLatenciesOnceForEachBucket) {
  ScalingCase scaling = case_of({16});
  scaling.policy = parse_bucket_policy("fused:16MiB");
  const ScaleRow fused = model_scaling(scaling, "in-network", whole()).front();
  scaling.policy = parse_bucket_policy("none");
  const ScaleRow one = model_scaling(scaling, "in-network", whole()).front();
  // The same bytes, and the latencies once for each bucket.
  const double latencies = 1e3 * (2 * kLocalLatency + kLatency);
  const auto buckets =
      static_cast<double>(make_buckets(scaling.model, parse_bucket_policy("fused:16MiB"), 4).size());
  EXPECT_NEAR(fused.exposed_comm_ms, one.exposed_comm_ms + (buckets - 1) * latencies, 1e-9);
}

TEST(ScalingBaseline, IsOneGpuThatComputesAlone) {
  ScalingCase scaling = case_of({1, 4, 8});
  scaling.baseline = {};
  for (const ScaleRow& row : model_scaling(scaling, "ring", whole())) {
    EXPECT_NEAR(row.efficiency, kComputeMs / row.iteration_ms, 1e-12) << row.gpus;
    EXPECT_NEAR(row.speedup, row.efficiency * row.gpus, 1e-9);
    EXPECT_FALSE(row.efficiency_low);
  }
}

TEST(ScalingBaseline, MayBeAHostOfAnotherAlgorithm) {
  ScalingCase scaling = case_of({4, 8});
  const double host_ms = model_scaling(scaling, "tree", whole()).front().iteration_ms;
  scaling.baseline.algorithm = "tree";
  for (const ScaleRow& row : model_scaling(scaling, "ring", whole()))
    EXPECT_NEAR(row.efficiency, host_ms / row.iteration_ms, 1e-12) << row.gpus;
}

/// A computing time that may be half or twice as long: where it is long, communication is the smaller part,
/// so that the longest time is the best end.
TEST(FrameworkCosts, OfAnEstimatedComputingTimeCountAtBothEnds) {
  ScalingCase scaling = case_of({8});
  scaling.baseline = {};
  const auto alone = [&](double factor) {
    ScalingCase at = scaling;
    at.compute = {factor * at.compute.forward, factor * at.compute.backward, {}};
    return model_scaling(at, "ring", whole()).front().efficiency;
  };
  const double shortest = alone(0.5);
  const double longest = alone(2);
  scaling.computing_range = CostRange{&StepCosts::computing, "computing time", 0.5, 1, 2, "", ""};
  const ScaleRow row = model_scaling(scaling, "ring", whole()).front();
  EXPECT_NEAR(*row.efficiency_low, shortest, 1e-12);
  EXPECT_NEAR(*row.efficiency_high, longest, 1e-12);
  EXPECT_LT(shortest, row.efficiency);
  EXPECT_LT(row.efficiency, longest);
}

/// What frameworks cost makes every step slower, and the more GPUs the wider the range.
TEST(FrameworkCosts, AreRangesAboutTheMiddle) {
  ScalingCase scaling = case_of({4, 64, 256});
  scaling.baseline = {};
  scaling.policy = parse_bucket_policy("fused:25MiB");
  scaling.overlap = true;
  const auto ideal = model_scaling(scaling, "ring", whole());
  for (const Framework& framework : frameworks()) {
    scaling.framework = &framework;
    const auto rows = model_scaling(scaling, "ring", whole());
    double width = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      EXPECT_LT(rows[i].efficiency, ideal[i].efficiency) << framework.name;
      EXPECT_LT(*rows[i].efficiency_low, rows[i].efficiency) << framework.name;
      EXPECT_GT(*rows[i].efficiency_high, rows[i].efficiency) << framework.name;
      EXPECT_LE(*rows[i].efficiency_high, ideal[i].efficiency + 1e-12) << framework.name;
      EXPECT_TRUE(rows[i].widest_unknown);
      EXPECT_GT(*rows[i].efficiency_high - *rows[i].efficiency_low, width) << framework.name;
      width = *rows[i].efficiency_high - *rows[i].efficiency_low;
    }
  }
}

}  // namespace
}  // namespace polyring

// Strategies on uniform links, where closed forms are known.
#include "bench/predict/strategies.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulation/price_planner.hpp"
#include "tests/bench/uniform_case.hpp"
#include "tests/models/even_model.hpp"
#include "tests/models/refusal.hpp"
#include "topology/presets.hpp"
#include "topology/resize.hpp"

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
  ScalingCase scaling = case_of("bert-large", "tensor=8");
  scaling.machine = preset("dgx1-v100", 1);
  scaling.gpus = {8};
  const ScaleRow row = model_scaling(scaling, "multi-ring", {}).front();
  const Cluster host = preset("dgx1-v100", 1);
  const Count count = Count{8} * 8 * 128 * 1024;
  const double best =
      choose_plan(modelled_problem("multi-ring", host, count, 4), host, Router(host)).simulation.time.value;
  EXPECT_NEAR(row.exposed_comm_ms, 2 * 49 * best * 1e3, 1e-9 * row.exposed_comm_ms);
}

TEST(Strategies, SayWhatLimitsEachAllreduce) {
  const auto bottleneck = [](const std::string& strategy) {
    return row_of(case_of("gpt2-small", strategy)).bottleneck.value_or("");
  };
  EXPECT_THAT(bottleneck("data=4,intra-model=2"),
              AllOf(HasSubstr("gradients: "), HasSubstr("; activations: "), HasSubstr("busy")));
  EXPECT_THAT(bottleneck("data=2,pipeline=4"),
              AllOf(HasSubstr("gradients: "), HasSubstr("; stages: "), Not(HasSubstr("activations"))));
  const std::string stages = row_of(case_of("gpt2-xl", "pipeline=8")).bottleneck.value_or("");
  EXPECT_THAT(stages, AllOf(StartsWith("stages: "), HasSubstr("busy")));
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

/// 8 equal layers on two hosts of 4 GPUs.
ScalingCase even_case() {
  ScalingCase scaling = testing::uniform_case("gpt2-small", 2, kComputeMs, 8);
  scaling.model = testing::even_model(8, 80'000'000, 128, 256, 4);
  scaling.compute = compute_of(scaling.model, {kComputeMs * 1e-3});
  scaling.gpus = {8};
  return scaling;
}

ModelledStep step_of(const ScalingCase& scaling, const std::string& text,
                     const std::string& algorithm = "ring", const PlanConstraints& constraints = {}) {
  const int gpus = scaling.gpus.front();
  return model_strategy(scaling, for_gpus(parse_strategy(text), gpus), algorithm, constraints,
                        with_ranks(scaling.machine, gpus));
}

/// One chunk and one lane: what closed forms are known of.
PlanConstraints whole() {
  PlanConstraints constraints;
  constraints.chunk = Bytes{1 << 30};
  constraints.lanes = 1;
  return constraints;
}

TEST(Strategies, OfZeroHideAllButTheEnds) {
  const ScalingCase scaling = even_case();
  // A ring over both hosts enters and leaves each by its NIC once: 7/8 of a layer's 40 MB.
  const double layer = 7 * (kLatency + 40e6 / 8 / kNic);
  const auto exposed = [&](const char* text) {
    return step_of(scaling, text, "ring", whole()).time.exposed.value;
  };
  EXPECT_NEAR(exposed("zero=3") / (2 * layer), 1, 0.01) << "the first gather, and the last scatter";
  EXPECT_NEAR(exposed("zero=2") / (layer + 8 * layer), 1, 0.01) << "the last scatter, and all weights";
  EXPECT_NEAR(exposed("zero=1") / exposed("zero=2"), 1, 1e-9) << "one micro-batch";
  EXPECT_GT(exposed("zero=2,micro-batch=4"), exposed("zero=3"));
  EXPECT_NEAR(exposed("data=8,micro-batch=4") / (16 * layer), 1, 0.01)
      << "one allreduce of all, after the last";
}

TEST(Strategies, OfZeroThreeSendHalfAsMuchAgainAsAnAllreduce) {
  ScalingCase scaling = even_case();
  scaling.compute = compute_of(scaling.model, {1e-6});
  const auto total = [&](const char* text) {
    return step_of(scaling, text, "ring", whole()).time.total.value;
  };
  EXPECT_NEAR(total("zero=3") / total("micro-batch=4"), 1.5, 0.02);
}

TEST(Strategies, InOneForwardOneBackwardOrderHaveThePapersBubble) {
  ScalingCase scaling = even_case();
  scaling.machine = testing::uniform(1, 4);
  scaling.gpus = {4};
  // The same work in less memory; with links as fast as these only the first sends on the way count.
  const auto bubble = [&](const char* text) { return *step_of(scaling, text).bubble; };
  EXPECT_NEAR(bubble("pipeline=4,schedule=1f1b,micro-batch=2"), 3.0 / (16 + 3), 2e-3);
  EXPECT_NEAR(bubble("pipeline=4,schedule=1f1b,micro-batch=2"), bubble("pipeline=4,micro-batch=2"), 2e-3);
  EXPECT_NEAR(bubble("pipeline=4,interleaved=2,micro-batch=2"), 3.0 / (2 * 16 + 3), 2e-3);
}

TEST(Strategies, ThatRecomputeTakeAThirdMore) {
  const ScalingCase scaling = even_case();
  const auto total = [&](const char* text) { return step_of(scaling, text).time.total.value; };
  EXPECT_NEAR(total("zero=3,recompute=full") - total("zero=3"), kComputeMs * 1e-3 / 3, 1e-4);
  EXPECT_NEAR(total("zero=3,recompute=selective") - total("zero=3"), kComputeMs * 1e-3 / 30, 1e-4);
}

TEST(Strategies, SplitAlongTheSequenceSendAsMuch) {
  const ScalingCase scaling = even_case();
  const auto exposed = [&](const char* text) {
    return step_of(scaling, text, "ring", whole()).time.exposed.value;
  };
  EXPECT_NEAR(exposed("tensor=4,sequence-parallel,data=2") / exposed("tensor=4,data=2"), 1, 1e-6);
}

TEST(Strategies, OfExpertsSendTokensBothWaysInEachPass) {
  ScalingCase scaling = even_case();
  for (Block& block : scaling.model.blocks) {
    block.experts.count = 4;
    block.experts.parameters = 8'000'000;
  }
  const Seconds without = step_of(scaling, "data=8,expert=4,zero=3").time.exposed;
  for (Block& block : scaling.model.blocks) block.experts.sent = 2 * 128 * 256;
  const ModelledStep step = step_of(scaling, "data=8,expert=4,zero=3");
  EXPECT_THAT(step.bottleneck, HasSubstr("experts: "));
  const double bytes = 8.0 * 2 * 128 * 256 * 4;
  EXPECT_NEAR((step.time.exposed - without).value, 8 * 4 * (kLocalLatency + bytes / 4 / kLink), 1e-9);
  // Computing forward once more sends them once more.
  const Seconds again = step_of(scaling, "data=8,expert=4,zero=3,recompute=full").time.exposed;
  EXPECT_NEAR((again - without).value, 8 * 6 * (kLocalLatency + bytes / 4 / kLink), 1e-9);
}

TEST(Strategies, RunNcclAndMpiInTheirGroups) {
  ScalingCase scaling = even_case();
  scaling.machine = preset("dgx-h100", 2);
  scaling.gpus = {16};
  for (const char* text :
       {"zero=3", "tensor=4", "tensor=4,sequence-parallel,zero=1", "pipeline=2,tensor=4"}) {
    for (const char* vendor : {"nccl", "mpi"}) {
      const ModelledStep step = step_of(scaling, text, vendor);
      EXPECT_GT(step.time.exposed.value, 0) << text;
      EXPECT_THAT(step.bottleneck, HasSubstr(fmt::format("({} chooses ", vendor))) << text;
    }
    // Staging in host memory is never faster.
    EXPECT_LT(step_of(scaling, text, "nccl").time.total, step_of(scaling, text, "mpi").time.total) << text;
  }
}

TEST(Strategies, ThatDoNotDivideOrFitAreRefused) {
  ScalingCase scaling = even_case();
  const auto refused = [&](const char* text) { return refusal([&] { step_of(scaling, text); }); };
  EXPECT_THAT(refused("micro-batch=3"), HasSubstr("micro-batch=3 does not divide the 8 samples"));
  EXPECT_THAT(refused("pipeline=4,interleaved=2,micro-batch=16"), HasSubstr("micro-batches by 4"));
  ScalingCase vast = scaling;
  vast.batch = 1 << 24;
  EXPECT_THAT(refusal([&] { step_of(vast, "pipeline=8,micro-batch=1"); }),
              HasSubstr("use larger micro-batches"));
  EXPECT_THAT(refused("tensor=8"), HasSubstr("4 attention heads"));
  EXPECT_THAT(refused("expert=2"), HasSubstr("no experts"));
  EXPECT_THAT(refused("pipeline=8,interleaved=2"), HasSubstr("8 layers, which do not divide"));
  scaling.overlap = true;
  scaling.policy = {BucketPolicy::Kind::per_tensor, {}};
  EXPECT_THAT(refused("zero=2"), HasSubstr("leave out --overlap"));
  scaling.overlap = false;
  scaling.policy = {};
  scaling.machine.groups.front().machine.gpus.front().memory = {700'000'000};
  EXPECT_THAT(refused("data=8"), HasSubstr("1.28 GB of weights"));
  EXPECT_THAT(refused("data=8"), HasSubstr("a replica needs 4 GPUs at least, as pipeline=4"));
  EXPECT_EQ(refused("data=8,zero=3,micro-batch=1"), "");
}

}  // namespace
}  // namespace polyring

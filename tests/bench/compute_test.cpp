// The computing time of a step: for every machine and every model, as published where it is, else within a
// range.
#include "bench/predict/compute.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/gpu_peaks.hpp"
#include "models/model.hpp"
#include "models/throughput.hpp"
#include "tests/models/refusal.hpp"
#include "topology/presets.hpp"

namespace polyring {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

double seconds(const StepCompute& step) { return step.total().value; }

Compute resolve(const std::string& model, const std::string& gpu, const ComputeOptions& options = {},
                Bytes memory = {}) {
  return options.resolve(make_model(model), {gpu, memory});
}

TEST(Computation, IsKnownForEveryModelOnEveryMachineThatHasGpus) {
  int machines = 0;
  for (const std::string_view name : preset_names()) {
    const Cluster cluster = preset(name, 1);
    if (cluster.host(0).gpus.empty()) continue;
    ++machines;
    const Gpu& gpu = cluster.host(0).gpus.front();
    for (const ModelInfo& info : model_catalogue()) {
      const Compute compute = ComputeOptions{}.resolve(make_model(info.name), {gpu.model, gpu.memory});
      EXPECT_GE(compute.batch, 1) << name << info.name;
      EXPECT_GT(seconds(compute.fastest), 0) << name << info.name;
      EXPECT_LE(seconds(compute.fastest), seconds(compute.step)) << name << info.name;
      EXPECT_LE(seconds(compute.step), seconds(compute.slowest)) << name << info.name;
      EXPECT_EQ(compute.estimated, seconds(compute.fastest) < seconds(compute.slowest)) << name << info.name;
      EXPECT_THAT(compute.choice, HasSubstr("batch")) << name << info.name;
      EXPECT_EQ(compute.choice.find("estimated") != std::string::npos, compute.estimated) << info.name;
      EXPECT_EQ(compute.source.find("estimated") != std::string::npos, compute.estimated) << info.name;
      if (!compute.estimated) {
        EXPECT_TRUE(find_throughput(gpu.model, info.name, compute.batch, compute.precision)) << info.name;
      }
    }
  }
  EXPECT_GE(machines, 8);
}

TEST(Computation, TakesThePublishedThroughputNearestToTheUsualBatch) {
  const Compute p100 = resolve("resnet50", "Tesla P100-SXM2-16GB");
  EXPECT_EQ(p100.batch, 32);
  EXPECT_DOUBLE_EQ(seconds(p100.step), 32 / 195.0);
  EXPECT_FALSE(p100.estimated);
  EXPECT_THAT(p100.choice, HasSubstr("batch 32 per GPU is a batch with a published throughput"));
  const Compute a100 = resolve("resnet50", "NVIDIA A100-SXM4-40GB");
  EXPECT_EQ(a100.batch, 256);
  EXPECT_EQ(a100.precision, Precision::single);
}

TEST(Computation, OfAnotherBatchIsNearThatOfThePublishedOne) {
  ComputeOptions options;
  options.batch = 48;
  const Compute compute = resolve("resnet50", "P100", options);
  EXPECT_TRUE(compute.estimated);
  EXPECT_LE(seconds(compute.fastest), 48 / 210.0);  // 195 images/s at 32, 219 at 64
  EXPECT_GE(seconds(compute.slowest), 48 / 200.0);
  options.batch = 64;
  EXPECT_DOUBLE_EQ(seconds(resolve("resnet50", "P100", options).step), 64 / 219.0);
}

TEST(Computation, WithoutAThroughputIsFlopsByPeakAndUtilisation) {
  ComputeOptions options;
  options.utilisation = "40%";
  options.batch = 2;
  const Compute llama = resolve("llama3-8b", "NVIDIA H100 80GB HBM3", options);
  const double flops = make_model("llama3-8b").flops_per_sample();
  EXPECT_DOUBLE_EQ(seconds(llama.step), 2 * flops / (0.4 * 989.5e12));
  EXPECT_EQ(seconds(llama.fastest), seconds(llama.slowest));
  EXPECT_EQ(llama.precision, Precision::mixed);
  EXPECT_THAT(llama.source, HasSubstr("as stated by --utilisation"));
  options.precision = "single";
  EXPECT_DOUBLE_EQ(seconds(resolve("llama3-8b", "H100", options).step), 2 * flops / (0.4 * 494.5e12));
  // The user's part of the peak counts, whatever was published.
  options.batch = 32;
  EXPECT_DOUBLE_EQ(seconds(resolve("resnet50", "P100", options).step),
                   32 * make_model("resnet50").flops_per_sample() / (0.4 * 10.6e12));
}

TEST(Computation, TakesABatchThatFitsTheMemory) {
  const Compute small = resolve("gpt2-xl", "NVIDIA H100 80GB HBM3", {}, {32 * kGiB});
  const Compute large = resolve("gpt2-xl", "NVIDIA H100 80GB HBM3", {}, {80 * kGiB});
  EXPECT_LT(small.batch, large.batch);
  EXPECT_THAT(large.choice, HasSubstr("that fits the memory"));
  // 70 billion parameters fit no GPU: strategies decide.
  EXPECT_EQ(resolve("llama3-70b", "NVIDIA H100 80GB HBM3", {}, {80 * kGiB}).batch, 1);
  // 1,024 images of 256 that were measured on 80 GB need not fit 16.
  EXPECT_LT(resolve("resnet50", "A100", {}, {8 * kGiB}).batch, 256);
}

TEST(Computation, IsSingleForCnnsAndWithoutTensorCoresOnly) {
  EXPECT_EQ(resolve("resnet50", "H100").precision, Precision::single);
  EXPECT_EQ(resolve("bert-large", "H100").precision, Precision::mixed);
  EXPECT_EQ(resolve("bert-large", "P100").precision, Precision::single);
  EXPECT_EQ(resolve("bert-large", "V100").batch, 16);
  ComputeOptions options;
  options.precision = "mixed";
  EXPECT_EQ(resolve("resnet50", "H100", options).batch, 1280);
}

TEST(Computation, RefusesWhatItDoesNotKnow) {
  EXPECT_THAT(refusal([] { resolve("resnet50", "GTX 480"); }),
              testing::AllOf(HasSubstr("no peak of 'GTX 480' is known"), HasSubstr("H100 PCIe")));
  EXPECT_THAT(refusal([] { resolve("resnet50", ""); }), HasSubstr("--compute-ms"));
  ComputeOptions options;
  options.utilisation = "140%";
  EXPECT_THAT(refusal([&] { resolve("resnet50", "P100", options); }), HasSubstr("write it as 40% or 0.4"));
}

TEST(Computation, ThatIsStatedIsNotChosen) {
  ComputeOptions options;
  options.compute_ms = 100;
  const Compute compute = resolve("gpt3-175b", "", options);
  EXPECT_DOUBLE_EQ(seconds(compute.step), 0.1);
  EXPECT_EQ(compute.batch, 32);
  EXPECT_TRUE(compute.choice.empty());
}

}  // namespace
}  // namespace polyring

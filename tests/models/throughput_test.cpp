// Published single-GPU throughputs: each is cited, names a model of the catalogue, and is found leniently.
#include "models/throughput.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "models/model.hpp"

namespace polyring {
namespace {

TEST(Throughputs, AreCitedDistinctAndOfKnownModels) {
  const auto& all = known_throughputs();
  for (const Throughput& known : all) {
    EXPECT_FALSE(known.source.empty());
    EXPECT_GT(known.samples_per_second, 0);
    EXPECT_NO_THROW(make_model(known.model));
    const auto found = find_throughput(known.gpu, known.model, known.batch, known.precision);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->samples_per_second, known.samples_per_second) << known.gpu << " " << known.model;
  }
}

TEST(Throughputs, AreFoundByProductName) {
  for (const char* gpu : {"P100", "p100", "Tesla P100-SXM2-16GB", "NVIDIA Tesla P100"}) {
    const auto found = find_throughput(gpu, "resnet50", 32);
    ASSERT_TRUE(found) << gpu;
    EXPECT_EQ(found->samples_per_second, 195) << gpu;
  }
  EXPECT_TRUE(find_throughput("NVIDIA A100-SXM4-80GB", "resnet50", 256));
}

TEST(Throughputs, HoldForVariantsWithNearlyTheSamePeak) {
  EXPECT_TRUE(find_throughput("Tesla P100-PCIE-16GB", "resnet50", 32));  // 12 % slower
  const auto sxm = find_throughput("NVIDIA H100 80GB HBM3", "resnet50", 640);
  const auto pcie = find_throughput("NVIDIA H100 PCIe", "resnet50", 640);
  ASSERT_TRUE(sxm && pcie);
  EXPECT_LT(pcie->samples_per_second, 0.7 * sxm->samples_per_second);
  EXPECT_FALSE(find_throughput("NVIDIA H100 NVL 80GB SXM", "bert-large", 64));
}

TEST(Throughputs, OfOneModelAreSortedByBatch) {
  const auto all = throughputs_of("Tesla V100-SXM2-16GB", "resnet50", Precision::single);
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].batch, 32);
  EXPECT_EQ(all[1].batch, 96);
  EXPECT_EQ(all[2].batch, 128);
  EXPECT_TRUE(throughputs_of("T4", "vgg16", Precision::single).empty());
}

TEST(Throughputs, AreNotGuessed) {
  EXPECT_FALSE(find_throughput("P100", "resnet50", 48));
  EXPECT_FALSE(find_throughput("P100", "gpt2-xl", 32));
  EXPECT_FALSE(find_throughput("P1000", "resnet50", 32));
  EXPECT_FALSE(find_throughput("GP100", "resnet50", 32));
  EXPECT_FALSE(find_throughput("", "resnet50", 32));
  EXPECT_FALSE(find_throughput("P100", "resnet50", 32, Precision::mixed));
}

TEST(Throughputs, KeepPrecisionsApart) {
  const auto single = find_throughput("A100", "resnet50", 256);
  const auto mixed = find_throughput("A100", "resnet50", 256, Precision::mixed);
  ASSERT_TRUE(single && mixed);
  EXPECT_GT(mixed->samples_per_second, single->samples_per_second);
}

TEST(Throughputs, DeriveResNet101BetweenTheCitedOnesAndSaySo) {
  for (const int batch : {32, 64}) {
    for (const char* model : {"resnet101", "resnet101-22k"}) {
      const auto derived = find_throughput("P100", model, batch);
      ASSERT_TRUE(derived);
      EXPECT_THAT(derived->source, testing::StartsWith("derived"));
      // ResNet-101's FLOPs are half-way between the two to 0.1 % (22k classes add 0.5 %), so its time is.
      const double half_way = 0.5 / find_throughput("P100", "resnet50", batch)->samples_per_second +
                              0.5 / find_throughput("P100", "resnet152", batch)->samples_per_second;
      EXPECT_NEAR(1 / derived->samples_per_second, half_way, 0.01 * half_way);
    }
  }
  EXPECT_FALSE(find_throughput("V100", "resnet101", 96));
}

TEST(Throughputs, AgreeWithThePublishedFile) {
  const char* path = std::getenv("POLYRING_PUBLISHED");
  if (path == nullptr) GTEST_SKIP() << "POLYRING_PUBLISHED does not name a published.json";
  std::ifstream file(path);
  ASSERT_TRUE(file) << path;
  const auto p100 = nlohmann::json::parse(file).at("single_gpu_training_images_per_second").at("P100");
  for (const auto& [model, batches] : p100.items()) {
    for (const auto& [batch, rate] : batches.items()) {
      const auto found = find_throughput("P100", model, std::stoi(batch));
      ASSERT_TRUE(found) << model << " " << batch;
      EXPECT_EQ(found->samples_per_second, rate.get<double>()) << model << " " << batch;
    }
  }
}

TEST(ThroughputChoices, ListEveryCombinationOnce) {
  const std::string text = throughput_choices();
  EXPECT_THAT(text, testing::StartsWith("P100 resnet50 (batch 32, 64), "));
  EXPECT_THAT(text, testing::HasSubstr("A100 resnet50 (batch 256, 256 mixed, 512, 512 mixed)"));
  EXPECT_EQ(text.find("P100 resnet50"), text.rfind("P100 resnet50"));
}

}  // namespace
}  // namespace polyring

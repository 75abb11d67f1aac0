// Memory of strategies against the papers' figures, and what never grows.
#include "models/strategy_memory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/models/even_model.hpp"
#include "tests/models/refusal.hpp"

namespace polyring {
namespace {

using testing::even_70b;
using testing::even_model;
using ::testing::HasSubstr;

StrategyMemory need(const Model& model, const std::string& text, double samples = 1, int micro_batches = 1) {
  Strategy strategy = parse_strategy(text);
  if (strategy.replicas == 0) strategy.replicas = 1;
  TrainingState training;
  training.samples = samples;
  training.micro_batches = micro_batches;
  return strategy_memory(model, strategy, balanced_stages(model, strategy.virtual_stages()), training);
}

TEST(MemoryOfStrategies, OfStatesIsThatOfZerosFigure) {
  // Rajbhandari et al., arXiv 1910.02054, figure 1: 7.5 billion parameters on 64 GPUs.
  const Model model = even_model(1, 7'500'000'000, 1, 1, 1);
  EXPECT_NEAR(need(model, "data=64").states(), 120e9, 1e6);
  EXPECT_NEAR(need(model, "data=64,zero=1").states(), 31.4e9, 0.05e9);
  EXPECT_NEAR(need(model, "data=64,zero=2").states(), 16.6e9, 0.05e9);
  EXPECT_NEAR(need(model, "data=64,zero=3").states(), 1.9e9, 0.05e9);
  EXPECT_EQ(need(model, "data=64,fsdp").states(), need(model, "data=64,zero=3").states());
}

TEST(MemoryOfStrategies, OfALayerIsThatOfThePapersTable) {
  // Korthikanti et al., arXiv 2205.05198, table 2, of GPT-3: s = 2048, h = 12288, a = 96, so 5as/h = 80.
  constexpr double kSbh = 2048.0 * 12288;
  const Model layer = even_model(1, 1'000'000, 2048, 12288, 96);
  const auto in_sbh = [&](const std::string& text) { return need(layer, text).activations / kSbh; };
  EXPECT_DOUBLE_EQ(in_sbh("data=1"), 34 + 80);
  EXPECT_DOUBLE_EQ(in_sbh("tensor=8"), 10 + 24.0 / 8 + 80.0 / 8);
  EXPECT_DOUBLE_EQ(in_sbh("tensor=8,sequence-parallel"), (34 + 80) / 8.0);
  EXPECT_DOUBLE_EQ(in_sbh("tensor=8,recompute=selective"), 10 + 24.0 / 8);
  EXPECT_DOUBLE_EQ(in_sbh("tensor=8,sequence-parallel,recompute=selective"), 34.0 / 8);
  // The input, and what the one layer needs while it is computed again.
  EXPECT_DOUBLE_EQ(in_sbh("recompute=full"), 2 + 34);
}

TEST(MemoryOfStrategies, OfAPipelinesFirstStageIsThatOfAllLayers) {
  // Ibid., section 4.2.3: 1F1B keeps p micro-batches of L/p layers, interleaved stages 1 + (p − 1)/(p v)
  // times as much; GPipe all.
  const Model model = even_model(32, 32'000'000, 128, 256, 4);
  const double layers = need(model, "data=1").activations;
  for (const int p : {2, 4, 8}) {
    const auto of = [&](const std::string& words) {
      return need(model, fmt::format("pipeline={},{}", p, words), 1, 4 * p).activations / layers;
    };
    EXPECT_NEAR(of("schedule=1f1b"), 1, 1e-12) << p;
    EXPECT_NEAR(of("schedule=gpipe"), 4, 1e-12) << p;
    for (const int v : {2, 4})
      EXPECT_NEAR(of(fmt::format("interleaved={}", v)), 1 + (p - 1.0) / (p * v), 1e-12);
  }
}

TEST(MemoryOfStrategies, OfExpertsIsSharedByThoseThatHoldThem) {
  Model model = even_model(2, 2'000'000, 16, 16, 1);
  for (Block& block : model.blocks) {
    block.experts.count = 8;
    block.experts.parameters = 800'000;
  }
  const double dense = 16 * 400'000.0;
  const double experts = 16 * 1'600'000.0;
  EXPECT_DOUBLE_EQ(need(model, "data=8,expert=8").states(), dense + experts / 8);
  EXPECT_DOUBLE_EQ(need(model, "data=16,expert=4").states(), dense + experts / 4);
  // All states are somewhere once: zero=3 has no copy, whatever the experts' share.
  EXPECT_DOUBLE_EQ(need(model, "data=16,expert=4,zero=3").states(), (dense + experts) / 16);
}

TEST(MemoryOfStrategies, NeverGrowsWithWhatSpares) {
  const Model model = even_70b();
  const std::vector<std::vector<const char*>> falling{
      {"data=64", "data=64,zero=1", "data=64,zero=2"},
      {"data=64,recompute=none", "data=64,recompute=selective", "data=64,recompute=full"},
      {"tensor=2", "tensor=4", "tensor=8", "tensor=8,sequence-parallel"},
      {"data=8,zero=3", "data=64,zero=3", "data=512,zero=3"},
      {"pipeline=2,schedule=1f1b", "pipeline=4,schedule=1f1b", "pipeline=8,schedule=1f1b"}};
  for (const auto& words : falling) {
    for (std::size_t i = 1; i < words.size(); ++i)
      EXPECT_LT(need(model, words[i], 1, 32).total(), need(model, words[i - 1], 1, 32).total()) << words[i];
  }
}

TEST(MemoryOfStrategies, ThatIsTooLittleIsRefusedWithWhatWouldDo) {
  const Model model = even_70b();
  constexpr Bytes kMemory{80'000'000'000};
  // 16 bytes of 70 billion parameters fill 14 GPUs; 80 layers are 5 on each of 16, and 6 on some of 15.
  EXPECT_EQ(least_replica_gpus(model, {}, 8, kMemory), 16);
  EXPECT_EQ(least_replica_gpus(model, {}, 8, {1'000'000'000}), 0);
  const auto refused = [&](const std::string& text, Bytes memory) {
    return refusal([&] { check_fits(model, parse_strategy(text), need(model, text), {}, 8, memory); });
  };
  EXPECT_THAT(refused("data=8", kMemory), HasSubstr("needs 16 GPUs a replica at least"));
  EXPECT_THAT(refused("data=8", kMemory), HasSubstr("1120.00 GB of weights"));
  EXPECT_EQ(refused("data=8", {}), "") << "unknown";
  EXPECT_EQ(refused("data=64,zero=3,recompute=full", kMemory), "");
}

}  // namespace
}  // namespace polyring

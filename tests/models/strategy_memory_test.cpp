// Memory of strategies against the papers' figures, and what never grows.
#include "models/strategy_memory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/models/even_model.hpp"
#include "tests/models/refusal.hpp"

namespace polyring {
namespace {

using ::testing::EndsWith;
using testing::even_70b;
using testing::even_model;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr double kGiB = std::uint64_t{1} << 30;

StrategyMemory need(const Model& model, const std::string& text, double samples = 1, int micro_batches = 1,
                    Attention attention = Attention::fused) {
  Strategy strategy = parse_strategy(text);
  if (strategy.replicas == 0) strategy.replicas = 1;
  TrainingState training;
  training.samples = samples;
  training.micro_batches = micro_batches;
  training.attention = attention;
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
  const auto in_sbh = [&](const std::string& text, Attention attention = Attention::unfused) {
    return need(layer, text, 1, 1, attention).activations / kSbh;
  };
  EXPECT_DOUBLE_EQ(in_sbh("data=1"), 34 + 80);
  EXPECT_DOUBLE_EQ(in_sbh("tensor=8"), 10 + 24.0 / 8 + 80.0 / 8);
  EXPECT_DOUBLE_EQ(in_sbh("tensor=8,sequence-parallel"), (34 + 80) / 8.0);
  EXPECT_DOUBLE_EQ(in_sbh("tensor=8,recompute=selective"), 10 + 24.0 / 8);
  EXPECT_DOUBLE_EQ(in_sbh("tensor=8,sequence-parallel,recompute=selective"), 34.0 / 8);
  // The input, and what the one layer needs while it is computed again.
  EXPECT_DOUBLE_EQ(in_sbh("recompute=full"), 2 + 34 + 80);
  EXPECT_DOUBLE_EQ(in_sbh("recompute=full", Attention::fused), 2 + 34);
  EXPECT_DOUBLE_EQ(in_sbh("data=1", Attention::fused), 34);
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
      EXPECT_LT(need(model, words[i], 1, 32, Attention::unfused).total(),
                need(model, words[i - 1], 1, 32, Attention::unfused).total())
          << words[i];
  }
}

/// torchtitan, benchmarks/llama3_h100_202412_torchtitan.md, tables 1 and 3: Llama 3.1 8B with FSDP, two
/// sequences of 8,192 tokens a GPU; 82.4 GiB at 8 GPUs and 67.0 GiB at 128. It recomputes some products and
/// keeps others.
TEST(MemoryOfStrategies, OfFsdpIsAroundWhatWasMeasured) {
  const Model model = make_model("llama3-8b");
  const auto gibibytes = [&](const char* text) { return need(model, text, 2).total() / kGiB; };
  EXPECT_LT(gibibytes("data=8,zero=3,recompute=full"), 82.4);
  EXPECT_GT(gibibytes("data=8,zero=3"), 82.4);
  EXPECT_LT(gibibytes("data=128,zero=3,recompute=full"), 67.0);
  EXPECT_GT(gibibytes("data=128,zero=3"), 67.0);
  // What sharing among more GPUs spares depends on the states alone: float32 masters and gradients, Adam.
  EXPECT_NEAR(gibibytes("data=8,zero=3") - gibibytes("data=128,zero=3"), 82.4 - 67.0, 0.1 * (82.4 - 67.0));
}

/// NVIDIA/Megatron-LM, examples/pretrain_gpt3_175B.sh: tensor 8, pipeline 16, micro-batches of 1 of 1,536
/// sequences on 1,024 GPUs, recomputed in full; before fused attention. A100 of 80 GiB.
TEST(MemoryOfStrategies, OfMegatronsExampleFits) {
  constexpr Bytes kMemory{std::uint64_t{80} << 30};
  const Model model = make_model("gpt3-175b");
  const auto fit = [&](const std::string& text) {
    return fits(need(model, text, 1, 192, Attention::unfused), kMemory);
  };
  EXPECT_TRUE(fit("tensor=8,pipeline=16,schedule=1f1b,recompute=full"));
  EXPECT_FALSE(fit("tensor=8,pipeline=4,schedule=1f1b,recompute=full"));
  EXPECT_FALSE(fit("tensor=8,pipeline=16,schedule=1f1b"));
}

TEST(MemoryOfStrategies, FitsWhereAFifthIsLeft) {
  StrategyMemory of_100;
  of_100.weights = 60;
  of_100.activations = 40;
  EXPECT_TRUE(fits(of_100, {125}));
  EXPECT_FALSE(fits(of_100, {124}));
  EXPECT_TRUE(fits(of_100, {})) << "unknown";
}

/// What a refusal of this strategy says; empty where it fits.
std::string refused(const Model& model, const std::string& text, Bytes memory, double samples = 1,
                    int micro_batches = 1) {
  TrainingState training;
  training.samples = samples;
  training.micro_batches = micro_batches;
  Strategy strategy = parse_strategy(text);
  if (strategy.replicas == 0) strategy.replicas = 1;
  return refusal(
      [&] { check_fits(model, strategy, need(model, text, samples, micro_batches), training, 8, memory); });
}

TEST(MemoryOfStrategies, ThatIsTooLittleIsRefusedWithWhatWouldDo) {
  const Model model = even_70b();
  constexpr Bytes kMemory{80'000'000'000};
  // 16 bytes of 70 billion parameters are 17.5 times the 64 GB that may be planned with; 20 divides 80
  // layers.
  const auto least = least_replica(model, {}, 8, kMemory);
  ASSERT_TRUE(least);
  EXPECT_EQ(least->replica_gpus(), 20);
  EXPECT_EQ(least->micro_batch, 1);
  EXPECT_FALSE(least_replica(model, {}, 8, {1'000'000'000}));
  EXPECT_EQ(least_sharded(model, {}, 8, kMemory)->replicas, 32);
  const std::string text = refused(model, "data=8", kMemory);
  EXPECT_THAT(text, HasSubstr("a replica needs 20 GPUs at least, as pipeline="));
  EXPECT_THAT(text, HasSubstr("1120.00 GB of weights"));
  EXPECT_THAT(text, HasSubstr("the 64.0 GB (80 % of 80.0) that may be planned with"));
  EXPECT_EQ(refused(model, "data=8", {}), "") << "unknown";
  // What it says does fit.
  for (const Strategy& strategy : {*least, *least_sharded(model, {}, 8, kMemory)})
    EXPECT_EQ(refused(model, to_text(strategy), kMemory), "") << to_text(strategy);
}

TEST(MemoryOfStrategies, OfActivationsAloneIsRefusedWithTheBatchThatFits) {
  const Model model = make_model("resnet50");
  constexpr Bytes kMemory{16'000'000'000};
  const std::string text = refused(model, "data=8", kMemory, 100'000);
  ASSERT_THAT(text, HasSubstr("does not fit with a batch of 100000"));
  const double most = std::stod(text.substr(text.find("at most ") + 8));
  EXPECT_EQ(refused(model, "data=8", kMemory, most), "");
  EXPECT_NE(refused(model, "data=8", kMemory, most + 1), "");
  EXPECT_THAT(refused(make_model("llama3-8b"), "data=8,zero=3", {std::uint64_t{80} << 30}, 2),
              HasSubstr("a micro-batch of at most 1, or compute activations again by recompute=full"));
}

TEST(MemoryOfStrategies, OfGpipeIsRefusedWithAnOrderThatFits) {
  const Model model = make_model("gpt2-xl");
  constexpr Bytes kMemory{16'000'000'000};
  EXPECT_THAT(refused(model, "pipeline=4", kMemory, 1, 16),
              EndsWith("GPipe's order keeps all micro-batches: use schedule=1f1b"));
  EXPECT_EQ(refused(model, "pipeline=4,schedule=1f1b", kMemory, 1, 16), "");
  // With so large a micro-batch the order alone is not enough.
  const std::string text = refused(model, "pipeline=4", kMemory, 64, 16);
  ASSERT_THAT(text, HasSubstr("use schedule=1f1b, and with it use a micro-batch of at most "));
  const double most = std::stod(text.substr(text.find("at most ") + 8));
  EXPECT_EQ(refused(model, "pipeline=4,schedule=1f1b", kMemory, most, 16), "");
  EXPECT_NE(refused(model, "pipeline=4,schedule=1f1b", kMemory, most + 1, 16), "");
  // The states of a half fit no GPU, whatever the order.
  const std::string half = refused(make_model("llama3-70b"), "pipeline=2", {std::uint64_t{80} << 30}, 1, 8);
  EXPECT_THAT(half, Not(HasSubstr("GPipe")));
  EXPECT_THAT(half, HasSubstr("a replica needs "));
}

}  // namespace
}  // namespace polyring

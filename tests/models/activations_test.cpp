// What a step keeps in memory, against published formulas and counts; what a parameter takes.
#include "models/activations.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "models/model.hpp"
#include "tests/models/catalogue_names.hpp"
#include "tests/models/refusal.hpp"

namespace polyring {
namespace {

using enum Precision;

double bytes(const Block& block, Recompute recompute, const BlockSplit& split = {},
             Attention attention = Attention::unfused) {
  return static_cast<double>(activation_bytes(block, mixed, recompute, split, attention).value);
}

/// Korthikanti et al., arXiv 2205.05198, table 2: s·b·h times these, for each layer of GPT-3.
TEST(Activations, OfGpt3AreThoseOfKorthikanti) {
  const Block block = make_model("gpt3-175b").blocks[1];
  const double sh = 2048.0 * 12288;
  const double scores = 5.0 * 96 * 2048 / 12288;  // 80
  EXPECT_DOUBLE_EQ(bytes(block, Recompute::none), sh * (34 + scores));
  EXPECT_DOUBLE_EQ(bytes(block, Recompute::none, {8, false}), sh * (10 + 24.0 / 8 + scores / 8));
  EXPECT_DOUBLE_EQ(bytes(block, Recompute::none, {8, true}), sh * (34 + scores) / 8);
  EXPECT_DOUBLE_EQ(bytes(block, Recompute::selective, {8, false}), sh * (10 + 24.0 / 8));
  EXPECT_DOUBLE_EQ(bytes(block, Recompute::selective, {8, true}), sh * 34 / 8);
  EXPECT_DOUBLE_EQ(bytes(block, Recompute::full), sh * 2);
  // Fused attention keeps as much as selective recomputation.
  EXPECT_DOUBLE_EQ(bytes(block, Recompute::none, {8, true}, Attention::fused), sh * 34 / 8);
}

/// Outputs of convolutions, in millions, as timm counts them (results/benchmark-infer-amp-nchw-pt210-cu121-
/// rtx3090.csv, infer_macts; with those of the classifier). Behind each stands a batch normalisation whose
/// output is kept as well; VGG-16 has pools in place of them.
TEST(Activations, OfCnnsAreTheOutputsOfTheirConvolutions) {
  const auto millions = [](const char* name) {
    std::int64_t sum = 0;
    for (const Block& block : make_model(name).blocks) sum += block.kept.whole;
    return static_cast<double>(sum) / 1e6;
  };
  EXPECT_NEAR(millions("resnet50") / 2, 11.11, 0.01);
  EXPECT_NEAR(millions("resnet101") / 2, 16.23, 0.01);
  EXPECT_NEAR(millions("resnet152") / 2, 22.56, 0.01);
  EXPECT_NEAR(millions("inception3") / 2, 8.97, 0.01);
  const double pools = (64 * 112 * 112 + 128 * 56 * 56 + 256 * 28 * 28 + 512 * 14 * 14 + 512 * 7 * 7) / 1e6;
  EXPECT_NEAR(millions("vgg16") - pools, 13.56, 0.02);
}

class OfModels : public testing::TestWithParam<std::string> {};

TEST_P(OfModels, RecomputationKeepsLessAndSplittingDivides) {
  const Model model = make_model(GetParam());
  const auto all = [&](Recompute recompute, const BlockSplit& split = {}, Precision precision = mixed,
                       Attention attention = Attention::unfused) {
    std::uint64_t sum = 0;
    for (const Block& block : model.blocks)
      sum += activation_bytes(block, precision, recompute, split, attention).value;
    return sum;
  };
  EXPECT_LE(all(Recompute::selective), all(Recompute::none));
  EXPECT_LT(all(Recompute::full), all(Recompute::selective));
  // The first block's input are samples.
  if (model.blocks.size() > 1) {
    EXPECT_GT(all(Recompute::full), 0u);
  }
  EXPECT_EQ(all(Recompute::none, {}, mixed, Attention::fused), all(Recompute::selective));
  EXPECT_LE(all(Recompute::none, {4, true}), all(Recompute::none, {4, false}));
  EXPECT_LE(all(Recompute::none, {4, false}), all(Recompute::none));
  EXPECT_LE(all(Recompute::none), all(Recompute::none, {}, single));
  for (const Block& block : model.blocks) {
    EXPECT_EQ(recomputed_flops(block, Recompute::none), 0);
    EXPECT_LE(recomputed_flops(block, Recompute::selective), recomputed_flops(block, Recompute::full));
  }
}

INSTANTIATE_TEST_SUITE_P(Catalogue, OfModels, testing::ValuesIn(catalogue_names()), name_of_parameter);

/// ZeRO, arXiv 1910.02054, section 3.1: 16 bytes for each parameter; GPT-2 of 1.5B takes 24 GB at least.
TEST(TrainedParameter, IsThatOfZero) {
  EXPECT_EQ(trained_parameter(mixed).total(), 16);
  EXPECT_EQ(trained_parameter(mixed).optimizer, 12);
  EXPECT_EQ(trained_parameter(single).total(), 16);
  const double gpt2 = 1.5e9 * trained_parameter(mixed).total();
  EXPECT_EQ(gpt2, 24e9);
}

/// Megatron Core's user guide, "Distributed Optimizer": bfloat16 parameters and float32 gradients, 18.
TEST(TrainedParameter, AddsUpGradientsInFloat32) {
  EXPECT_EQ(trained_parameter(mixed, Optimizer::adam, 4).total(), 18);
  EXPECT_EQ(trained_parameter(mixed, Optimizer::momentum).total(), 12);
  EXPECT_EQ(trained_parameter(single, Optimizer::momentum).total(), 12);
}

TEST(PrecisionText, IsReadBack) {
  for (const Precision precision : {single, mixed}) EXPECT_EQ(parse_precision(to_text(precision)), precision);
  EXPECT_NE(refusal([] { parse_precision("double"); }).find("choose from single, mixed"), std::string::npos);
}

}  // namespace
}  // namespace polyring

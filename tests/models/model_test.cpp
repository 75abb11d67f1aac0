// The catalogue's models against published totals, published costs and the order of the backward pass.
#include "models/model.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.hpp"
#include "models/families.hpp"
#include "tests/models/catalogue_names.hpp"

namespace polyring {
namespace {

struct Published {
  std::int64_t parameters;
  std::size_t tensors;
  double forward_gmacs;  // 0: nothing published to compare with
};

// Parameters and tensors: the parameter counts of torchvision's and Hugging Face's implementations; of
// DeepLabv3+ that of its authors' log (climate-seg-benchmark, run_scripts/climseg-cgpu-513075.out). Of
// Llama 3 and Mixtral the totals of their safetensors (huggingface.co: meta-llama/Meta-Llama-3-8B and -70B,
// mistralai/Mixtral-8x7B-v0.1; keras-hub has Mixtral's, too), of Stable Diffusion that of torchinfo
// (segmind/distill-sd, README.md: 859,520,964). GPT-3's is checked below.
// GMACs: torchvision's table of classification models (its "GFLOPS" are multiply-adds).
const std::map<std::string, Published> published = {
    {"resnet50", {25557032, 161, 4.09}},    {"resnet101", {44549160, 314, 7.80}},
    {"resnet152", {60192808, 467, 11.51}},  {"resnet101-22k", {87252369, 314, 0}},
    {"vgg16", {138357544, 32, 15.47}},      {"inception3", {23834568, 284, 5.71}},
    {"deeplabv3plus", {43669251, 99, 0}},   {"bert-large", {336226108, 398, 0}},
    {"gpt2-small", {124439808, 148, 0}},    {"gpt2-xl", {1557611200, 580, 0}},
    {"gpt3-175b", {174604259328, 1156, 0}}, {"llama3-8b", {8030261248, 291, 0}},
    {"llama3-70b", {70553706496, 723, 0}},  {"mixtral-8x7b", {46702792704, 995, 0}},
    {"vit-l16", {304326632, 296, 61.55}},   {"stable-diffusion", {859520964, 686, 0}},
};

class Models : public testing::TestWithParam<std::string> {};

TEST_P(Models, AgreesWithPublishedTotals) {
  const Model model = make_model(GetParam());
  const Published& expected = published.at(model.name);
  EXPECT_EQ(model.total_elements(), expected.parameters);
  EXPECT_EQ(model.gradients.size(), expected.tensors);
  if (expected.forward_gmacs > 0) {
    EXPECT_NEAR(model.forward_flops_per_sample, 2e9 * expected.forward_gmacs,
                0.02 * 2e9 * expected.forward_gmacs);
  }
}

TEST_P(Models, CostsTwiceAsMuchBackwardButForTheFirstLayer) {
  const Model model = make_model(GetParam());
  const double ratio = model.backward_flops_per_sample() / model.forward_flops_per_sample;
  EXPECT_GT(ratio, 1.9);
  EXPECT_LE(ratio, 2.0);
}

TEST_P(Models, HasDistinctNamesAndPositiveShapes) {
  const Model model = make_model(GetParam());
  std::set<std::string> names;
  for (const Tensor& tensor : model.gradients) {
    EXPECT_TRUE(names.insert(tensor.name).second) << tensor.name;
    EXPECT_FALSE(tensor.shape.empty()) << tensor.name;
    EXPECT_THAT(tensor.shape, testing::Each(testing::Gt(0))) << tensor.name;
    EXPECT_GE(tensor.backward_flops, 0) << tensor.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Catalogue, Models, testing::ValuesIn(catalogue_names()), name_of_parameter);

TEST(ModelCatalogue, AgreesWithThePublishedFile) {
  const char* path = std::getenv("POLYRING_PUBLISHED");
  if (path == nullptr) GTEST_SKIP() << "POLYRING_PUBLISHED does not name a published.json";
  std::ifstream file(path);
  ASSERT_TRUE(file) << path;
  const auto models = nlohmann::json::parse(file).at("models");
  const auto our_name = [](const std::string& name) {
    return name == "bert-large-pretraining" ? std::string("bert-large") : name;
  };
  for (const auto& [name, parameters] : models.at("parameters").items()) {
    EXPECT_EQ(make_model(our_name(name)).total_elements(), parameters.get<std::int64_t>()) << name;
  }
  for (const auto& [name, tensors] : models.at("tensors").items()) {
    EXPECT_EQ(make_model(our_name(name)).gradients.size(), tensors.get<std::size_t>()) << name;
  }
  for (const auto& [classes, parameters] : models.at("resnet101_with_classes").items()) {
    EXPECT_EQ(resnet("resnet101", "", 101, std::stoll(classes)).total_elements(),
              parameters.get<std::int64_t>())
        << classes;
  }
}

TEST(ModelCatalogue, RefusesAnUnknownNameAndListsTheKnownOnes) {
  try {
    make_model("alexnet");
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_THAT(error.what(), testing::HasSubstr("'alexnet'"));
    for (const auto& [name, unused] : published) EXPECT_THAT(error.what(), testing::HasSubstr(name));
  }
}

TEST_P(Models, SaysWhatASampleIsCalled) {
  const Model model = make_model(GetParam());
  const bool tokens =
      model.family == Family::encoder || model.family == Family::decoder || model.family == Family::mixture;
  EXPECT_EQ(model.sample.name == "sequences", tokens);
  EXPECT_EQ(model.sample.tokens > 0, tokens);
  EXPECT_FALSE(to_text(model.family).empty());
}

TEST_P(Models, HasExpertsWithinItsBlocks) {
  const Model model = make_model(GetParam());
  EXPECT_EQ(model.active_elements() < model.total_elements(), model.family == Family::mixture);
  for (const Block& block : model.blocks) {
    EXPECT_LE(block.experts.parameters, block.parameters) << block.name;
    EXPECT_LE(block.experts.forward_flops, block.forward_flops) << block.name;
    EXPECT_LE(block.attention_flops, block.forward_flops) << block.name;
  }
}

TEST(ResNet, ReleasesTheClassifierFirstAndTheFirstConvolutionLast) {
  const Model model = make_model("resnet50");
  EXPECT_EQ(model.gradients[0].name, "fc.bias");
  EXPECT_EQ(model.gradients[1].name, "fc.weight");
  EXPECT_EQ(model.gradients[2].name, "layer4.2.bn3.bias");
  EXPECT_EQ(model.gradients[4].name, "layer4.2.conv3.weight");
  EXPECT_EQ(model.gradients.back().name, "conv1.weight");
  EXPECT_THAT(model.gradients.back().shape, testing::ElementsAre(64, 3, 7, 7));
}

TEST(ResNet, AttributesALayersCostToItsFirstGradient) {
  const Model model = make_model("resnet50");
  EXPECT_EQ(model.gradients[0].backward_flops, 2 * 2.0 * 2048 * 1000);  // fc.bias
  EXPECT_EQ(model.gradients[1].backward_flops, 0);                      // fc.weight: ready with it
  EXPECT_EQ(model.gradients[4].backward_flops, 2 * 2.0 * 7 * 7 * 512 * 2048);
  // The gradient of the image is not computed: one product, not two.
  EXPECT_EQ(model.gradients.back().backward_flops, 2.0 * 112 * 112 * 64 * 3 * 7 * 7);
}

TEST(ResNet, With22kClassesHasHalfItsGradientsInTheFirstTensors) {
  const Model model = make_model("resnet101-22k");
  EXPECT_EQ(model.gradients[1].name, "fc.weight");
  const double share =
      static_cast<double>(model.gradients[1].elements()) / static_cast<double>(model.total_elements());
  EXPECT_NEAR(share, 0.5, 0.02);
}

TEST(ResNet, HasAsManySmallTensorsAsWasPublished) {
  const Model model = make_model("resnet50");
  int small = 0;
  std::int64_t small_elements = 0;
  std::int64_t largest = 0;
  for (const Tensor& tensor : model.gradients) {
    largest = std::max(largest, tensor.elements());
    if (tensor.elements() * 4 >= 256 * 1024) continue;
    ++small;
    small_elements += tensor.elements();
  }
  EXPECT_EQ(small, 119);
  EXPECT_NEAR(static_cast<double>(small_elements) / static_cast<double>(model.total_elements()), 0.012,
              0.0005);
  EXPECT_EQ(largest, 2359296);
}

// The same log counts 115.282 TFLOP a step of 8 samples, three times those of the forward pass: convolutions
// over what they read, so that the zeros are counted by which it is padded, and 11 for each point that is
// interpolated.
TEST(DeepLab, CostsWhatItsAuthorsCountedButForPadding) {
  const auto padded = [](double rate) {
    const auto up = [&](double extent) { return std::ceil((extent + 2 * rate) / rate) * rate; };
    return up(96) * up(144) - 96 * 144;
  };
  const auto square = [](double channels) { return 9 * channels * channels; };
  double beside = 2 * 16 * 49 * 64 * (774.0 * 1158 - 768 * 1152) / 4;  // the first convolution
  beside += 2 * square(64) * (194.0 * 290 - 192 * 288) / 4;            // the one that halves the first block
  beside += 2 * (6 * square(256) * padded(2) + 3 * square(512) * padded(4));
  for (const double rate : {12, 24, 36}) beside += 2 * 9 * 2048 * 256 * padded(rate);
  beside += 11 * 256 * 96 * 144;
  const double forward = make_model("deeplabv3plus").forward_flops_per_sample;
  EXPECT_NEAR(3 * (forward + beside), 115.282e12 / 8, 2e-5 * 115.282e12 / 8);
}

TEST(Transformers, ReleaseTheSharedWordEmbeddingLast) {
  EXPECT_EQ(make_model("bert-large").gradients.back().name, "bert.embeddings.word_embeddings.weight");
  EXPECT_EQ(make_model("gpt2-small").gradients.back().name, "transformer.wte.weight");
}

// 2 FLOPs for each weight of the blocks and of the head and each token, plus the two products of attention.
TEST(Transformers, CostWhatTheClosedFormSays) {
  const auto forward = [](double layers, double d, double sequence, double head_positions,
                          double vocabulary) {
    return layers * (2 * 12 * d * d * sequence + 4 * sequence * sequence * d) +
           2 * head_positions * d * vocabulary;
  };
  EXPECT_DOUBLE_EQ(make_model("gpt2-small").forward_flops_per_sample, forward(12, 768, 1024, 1024, 50257));
  EXPECT_DOUBLE_EQ(make_model("gpt2-xl").forward_flops_per_sample, forward(48, 1600, 1024, 1024, 50257));
  const double heads = 2 * (1024.0 * 1024 * (1 + 20) + 2 * 1024);  // pooler, transform, next sentence
  EXPECT_DOUBLE_EQ(make_model("bert-large").forward_flops_per_sample,
                   forward(24, 1024, 128, 20, 30522) + heads);
}

/// Of one step of one sequence, forward and backward: Korthikanti et al., arXiv 2205.05198, appendix A, for
/// models whose head has all of the vocabulary: 72·L·s·h²·(1 + s/6h + v/12hL).
TEST(Gpt3, CostsWhatKorthikantiCounted) {
  const Model model = make_model("gpt3-175b");
  const double L = 96, s = 2048, h = 12288, v = 50257;
  EXPECT_NEAR(model.flops_per_sample(), 72 * L * s * h * h * (1 + s / (6 * h) + v / (12 * h * L)),
              1e-9 * model.flops_per_sample());
}

/// Brown et al., arXiv 2005.14165, table D.1: 174,600 million parameters, 3.14e23 FLOPs for 300 billion
/// tokens at 6 for each parameter; without the embedding of positions, and with attention, ours are 3 % more.
TEST(Gpt3, HasTheParametersAndCostThatWerePublished) {
  const Model model = make_model("gpt3-175b");
  EXPECT_NEAR(static_cast<double>(model.total_elements()), 174.6e9, 0.05e9);
  EXPECT_NEAR(model.flops_per_sample() / 2048 * 300e9, 3.14e23, 0.03 * 3.14e23);
}

/// 6 FLOPs for each weight that multiplies and each token, and attention's 12·L·d·s (PaLM, arXiv 2204.02311,
/// appendix B). The embedding does not multiply.
TEST(Decoders, CostWhatPalmsFormulaSays) {
  struct Shape {
    const char* name;
    double layers, features, vocabulary, tokens;
  };
  for (const Shape& shape :
       {Shape{"llama3-8b", 32, 4096, 128256, 8192}, Shape{"llama3-70b", 80, 8192, 128256, 8192},
        Shape{"mixtral-8x7b", 32, 4096, 32000, 4096}}) {
    const Model model = make_model(shape.name);
    const double norms = (2 * shape.layers + 1) * shape.features;
    const double weights =
        static_cast<double>(model.active_elements()) - shape.vocabulary * shape.features - norms;
    const double of_token = 6 * weights + 12 * shape.layers * shape.features * shape.tokens;
    EXPECT_NEAR(model.flops_per_sample(), of_token * shape.tokens, 1e-9 * model.flops_per_sample())
        << shape.name;
  }
}

/// Jiang et al., arXiv 2401.04088: 47B parameters; a token uses 13B of them.
TEST(Mixtral, HasEightExpertsOfWhichTwoAreActive) {
  const Model model = make_model("mixtral-8x7b");
  EXPECT_NEAR(static_cast<double>(model.active_elements()), 12.9e9, 0.05e9);
  const Block& block = model.blocks[1];
  EXPECT_EQ(block.experts.count, 8);
  EXPECT_EQ(block.experts.active, 2);
  EXPECT_EQ(block.experts.parameters, std::int64_t{8} * 3 * 4096 * 14336);
  EXPECT_EQ(block.experts.sent, std::int64_t{2} * 4096 * 4096);
  EXPECT_EQ(block.experts.forward_flops, 2.0 * 2 * 3 * 4096 * 14336 * 4096);
  EXPECT_EQ(block.heads.query, 32);
  EXPECT_EQ(block.heads.key_value, 8);
}

/// onnx-tool counts 888,870 million multiply-adds for two samples (ThanatosShinji/onnx-tool, README.md,
/// UNet2DCondition) with all that works element by element; 94 % are convolutions, matrix products and
/// attention (codetd.com/en/article/15627148).
TEST(StableDiffusion, CostsWhatWasCounted) {
  const Model model = make_model("stable-diffusion");
  const double counted = 0.94 * 888.87e9 / 2;
  EXPECT_NEAR(model.forward_flops_per_sample / 2, counted, 0.05 * counted);
}

TEST(StableDiffusion, SendsItsSkipConnectionsFromBlockToBlock) {
  const Model model = make_model("stable-diffusion");
  EXPECT_EQ(model.blocks[0].activations, 2 * 320 * 64 * 64 + 1280);
  // Beside the last block's input: the one that is left of the first convolution has been used.
  EXPECT_EQ(model.blocks[model.blocks.size() - 2].activations, 320 * 64 * 64 + 1280);
}

TEST(Llama, ReleasesItsHeadFirstAndItsEmbeddingLast) {
  const Model model = make_model("llama3-8b");
  EXPECT_EQ(model.gradients.front().name, "lm_head.weight");
  EXPECT_EQ(model.gradients.back().name, "model.embed_tokens.weight");
}

}  // namespace
}  // namespace polyring

#include "models/model.hpp"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/names.hpp"
#include "models/families.hpp"

namespace polyring {

std::int64_t Tensor::elements() const {
  std::int64_t product = 1;
  for (const std::int64_t extent : shape) product *= extent;
  return product;
}

std::int64_t Model::total_elements() const {
  std::int64_t sum = 0;
  for (const Tensor& tensor : gradients) sum += tensor.elements();
  return sum;
}

double Model::backward_flops_per_sample() const {
  double sum = 0;
  for (const Tensor& tensor : gradients) sum += tensor.backward_flops;
  return sum;
}

std::int64_t Model::active_elements() const {
  std::int64_t sum = total_elements();
  for (const Block& block : blocks) {
    const Experts& experts = block.experts;
    if (experts.count > 0) sum -= experts.parameters / experts.count * (experts.count - experts.active);
  }
  return sum;
}

std::string_view to_text(Family family) {
  switch (family) {
    case Family::cnn:
      return "CNN";
    case Family::encoder:
      return "encoder transformer";
    case Family::decoder:
      return "decoder transformer";
    case Family::mixture:
      return "mixture of experts";
    case Family::vision_transformer:
      return "vision transformer";
    case Family::diffusion:
      return "diffusion U-Net";
  }
  return "";
}

namespace {

constexpr SampleUnit images{"images", 0};

constexpr SampleUnit sequences(std::int64_t tokens) { return {"sequences", tokens}; }

/// Llama 3's and Mixtral's rows; the others' are shorter.
std::vector<ModelInfo> decoders_of_today() {
  return {
      {"gpt3-175b", "GPT-3 (175B), sequences of 2,048 tokens", Family::decoder, sequences(2048),
       [](const ModelInfo& info) {
         return gpt2(info.name, info.summary,
                     {.layers = 96, .features = 12288, .heads = 96, .vocabulary = 50257, .sequence = 2048});
       }},
      {"llama3-8b", "Llama 3 8B, sequences of 8,192 tokens", Family::decoder, sequences(8192),
       [](const ModelInfo& info) {
         return llama(info.name, info.summary,
                      {.layers = 32,
                       .features = 4096,
                       .heads = 32,
                       .key_value_heads = 8,
                       .feed_forward = 14336,
                       .vocabulary = 128256,
                       .sequence = 8192});
       }},
      {"llama3-70b", "Llama 3 70B, sequences of 8,192 tokens", Family::decoder, sequences(8192),
       [](const ModelInfo& info) {
         return llama(info.name, info.summary,
                      {.layers = 80,
                       .features = 8192,
                       .heads = 64,
                       .key_value_heads = 8,
                       .feed_forward = 28672,
                       .vocabulary = 128256,
                       .sequence = 8192});
       }},
      {"mixtral-8x7b", "Mixtral 8x7B (47B, 13B of them active), sequences of 4,096 tokens", Family::mixture,
       sequences(4096),
       [](const ModelInfo& info) {
         return llama(info.name, info.summary,
                      {.layers = 32,
                       .features = 4096,
                       .heads = 32,
                       .key_value_heads = 8,
                       .feed_forward = 14336,
                       .vocabulary = 32000,
                       .sequence = 4096,
                       .experts = 8,
                       .active = 2});
       }},
  };
}

/// BERT's samples are those of the first nine tenths of its pretraining: 128 tokens, 20 of them predicted
/// (arXiv 1810.04805, appendix A.2; max_predictions_per_seq in the README of google-research/bert).
std::vector<ModelInfo> others() {
  return {
      {"resnet50", "ResNet-50 v1.5, ImageNet-1K, 224x224 images", Family::cnn, images,
       [](const ModelInfo& info) { return resnet(info.name, info.summary, 50, 1000); }},
      {"resnet101", "ResNet-101 v1.5, ImageNet-1K, 224x224 images", Family::cnn, images,
       [](const ModelInfo& info) { return resnet(info.name, info.summary, 101, 1000); }},
      {"resnet152", "ResNet-152 v1.5, ImageNet-1K, 224x224 images", Family::cnn, images,
       [](const ModelInfo& info) { return resnet(info.name, info.summary, 152, 1000); }},
      {"resnet101-22k", "ResNet-101 v1.5, ImageNet-22K (21,841 classes), 224x224 images", Family::cnn, images,
       [](const ModelInfo& info) { return resnet(info.name, info.summary, 101, 21841); }},
      {"vgg16", "VGG-16, ImageNet-1K, 224x224 images", Family::cnn, images,
       [](const ModelInfo& info) { return vgg16(info.name, info.summary); }},
      {"inception3", "Inception v3 without the auxiliary classifier, ImageNet-1K, 299x299 images",
       Family::cnn, images, [](const ModelInfo& info) { return inception3(info.name, info.summary); }},
      {"deeplabv3plus",
       "DeepLabv3+ on ResNet-50 v2, 3 classes, climate samples of 16x768x1152 (Kurth et al., SC18)",
       Family::cnn,
       {"samples", 0},
       [](const ModelInfo& info) { return deeplab(info.name, info.summary); }},
      {"vit-l16", "ViT-L/16, ImageNet-1K, 224x224 images", Family::vision_transformer, images,
       [](const ModelInfo& info) { return vit_large(info.name, info.summary); }},
      {"stable-diffusion", "U-Net of Stable Diffusion 1.x, latents of 64x64 of 512x512 images, made before",
       Family::diffusion, images,
       [](const ModelInfo& info) { return stable_diffusion(info.name, info.summary); }},
      {"bert-large", "BERT-large with both pretraining heads, sequences of 128 tokens, 20 of them predicted",
       Family::encoder, sequences(128),
       [](const ModelInfo& info) {
         return bert(info.name, info.summary,
                     {.layers = 24,
                      .features = 1024,
                      .heads = 16,
                      .vocabulary = 30522,
                      .sequence = 128,
                      .masked = 20});
       }},
      {"gpt2-small", "GPT-2 small (124M), sequences of 1,024 tokens", Family::decoder, sequences(1024),
       [](const ModelInfo& info) {
         return gpt2(info.name, info.summary,
                     {.layers = 12, .features = 768, .heads = 12, .vocabulary = 50257, .sequence = 1024});
       }},
      {"gpt2-xl", "GPT-2 XL (1.6B), sequences of 1,024 tokens", Family::decoder, sequences(1024),
       [](const ModelInfo& info) {
         return gpt2(info.name, info.summary,
                     {.layers = 48, .features = 1600, .heads = 25, .vocabulary = 50257, .sequence = 1024});
       }},
  };
}

}  // namespace

const std::vector<ModelInfo>& model_catalogue() {
  static const std::vector<ModelInfo> catalogue = [] {
    std::vector<ModelInfo> all = others();
    const std::vector<ModelInfo> more = decoders_of_today();
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }();
  return catalogue;
}

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const ModelInfo& info : model_catalogue()) names.emplace_back(info.name);
  return names;
}

Model make_model(std::string_view name) {
  const auto& catalogue = model_catalogue();
  const auto found = std::find_if(catalogue.begin(), catalogue.end(),
                                  [&](const ModelInfo& info) { return info.name == name; });
  if (found == catalogue.end()) throw Error(ExitCode::usage, unknown_name("model", name, model_names()));
  Model model = found->make(*found);
  model.family = found->family;
  model.sample = found->sample;
  return model;
}

}  // namespace polyring

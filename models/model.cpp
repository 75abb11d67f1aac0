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

// BERT's samples are those of the first nine tenths of its pretraining: 128 tokens, 20 of them predicted
// (arXiv 1810.04805, appendix A.2; max_predictions_per_seq in the README of google-research/bert).
const std::vector<ModelInfo>& model_catalogue() {
  static const std::vector<ModelInfo> catalogue = {
      {"resnet50", "ResNet-50 v1.5, ImageNet-1K, 224x224 images",
       [](const ModelInfo& info) { return resnet(info.name, info.summary, 50, 1000); }},
      {"resnet101", "ResNet-101 v1.5, ImageNet-1K, 224x224 images",
       [](const ModelInfo& info) { return resnet(info.name, info.summary, 101, 1000); }},
      {"resnet152", "ResNet-152 v1.5, ImageNet-1K, 224x224 images",
       [](const ModelInfo& info) { return resnet(info.name, info.summary, 152, 1000); }},
      {"resnet101-22k", "ResNet-101 v1.5, ImageNet-22K (21,841 classes), 224x224 images",
       [](const ModelInfo& info) { return resnet(info.name, info.summary, 101, 21841); }},
      {"vgg16", "VGG-16, ImageNet-1K, 224x224 images",
       [](const ModelInfo& info) { return vgg16(info.name, info.summary); }},
      {"inception3", "Inception v3 without the auxiliary classifier, ImageNet-1K, 299x299 images",
       [](const ModelInfo& info) { return inception3(info.name, info.summary); }},
      {"deeplabv3plus",
       "DeepLabv3+ on ResNet-50 v2, 3 classes, climate samples of 16x768x1152 (Kurth et al., SC18)",
       [](const ModelInfo& info) { return deeplab(info.name, info.summary); }},
      {"bert-large", "BERT-large with both pretraining heads, sequences of 128 tokens, 20 of them predicted",
       [](const ModelInfo& info) {
         return bert(info.name, info.summary,
                     {.layers = 24, .features = 1024, .vocabulary = 30522, .sequence = 128, .masked = 20});
       }},
      {"gpt2-small", "GPT-2 small (124M), sequences of 1,024 tokens",
       [](const ModelInfo& info) {
         return gpt2(info.name, info.summary,
                     {.layers = 12, .features = 768, .vocabulary = 50257, .sequence = 1024});
       }},
      {"gpt2-xl", "GPT-2 XL (1.6B), sequences of 1,024 tokens",
       [](const ModelInfo& info) {
         return gpt2(info.name, info.summary,
                     {.layers = 48, .features = 1600, .vocabulary = 50257, .sequence = 1024});
       }},
  };
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
  return found->make(*found);
}

}  // namespace polyring

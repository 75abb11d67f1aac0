// The families of models, each built from its layer shapes in the file of its name.
#pragma once

#include <cstdint>
#include <string_view>

#include "models/model.hpp"

namespace polyring {

/// ResNet with bottleneck blocks; `depth` is 50, 101 or 152. Anything else is a bug.
Model resnet(std::string_view name, std::string_view summary, int depth, std::int64_t classes);

Model vgg16(std::string_view name, std::string_view summary);

Model inception3(std::string_view name, std::string_view summary);

/// DeepLabv3+ on ResNet-50 v2 for climate data, without batch normalisation.
Model deeplab(std::string_view name, std::string_view summary);

/// BERT with both pretraining heads.
struct BertShape {
  std::int64_t layers, features, heads, vocabulary;
  std::int64_t sequence;         // tokens in one sample
  std::int64_t masked;           // of them, those that the language-model head predicts
  std::int64_t positions = 512;  // that have an embedding
};
Model bert(std::string_view name, std::string_view summary, const BertShape& shape);

/// GPT-2, and GPT-3, which has its layers.
struct GptShape {
  std::int64_t layers, features, heads, vocabulary;
  std::int64_t sequence;  // tokens in one sample, and positions that have an embedding
};
Model gpt2(std::string_view name, std::string_view summary, const GptShape& shape);

struct LlamaShape {
  std::int64_t layers, features, heads;
  std::int64_t key_value_heads;  // divides heads
  std::int64_t feed_forward;     // features between the two halves of a feed-forward layer
  std::int64_t vocabulary;
  std::int64_t sequence;  // tokens in one sample
  int experts = 0;        // of each layer; 0: no mixture
  int active = 0;         // of them, for each token; the experts divide sequence · active
};
Model llama(std::string_view name, std::string_view summary, const LlamaShape& shape);

/// ViT-L/16.
Model vit_large(std::string_view name, std::string_view summary);

/// The U-Net of Stable Diffusion 1.x.
Model stable_diffusion(std::string_view name, std::string_view summary);

}  // namespace polyring

// ViT-L/16 (Dosovitskiy et al., An Image is Worth 16x16 Words, arXiv 2010.11929, table 1), with the layout
// and names of torchvision: a convolution cuts the image into patches, one token for the class is put before
// them.
#include <fmt/format.h>

#include "models/families.hpp"
#include "models/layers.hpp"

namespace polyring {

namespace {

constexpr std::int64_t kImage = 224;
constexpr std::int64_t kPatch = 16;
constexpr std::int64_t kTokens = (kImage / kPatch) * (kImage / kPatch) + 1;
constexpr std::int64_t kFeatures = 1024;
constexpr std::int64_t kHeads = 16;
constexpr std::int64_t kLayers = 24;

void encoder_layer(LayerStack& stack, const std::string& name) {
  constexpr std::int64_t d = kFeatures;
  stack.layer_norm(name + ".ln_1", d);
  stack.linear(name + ".self_attention.in_proj", d, 3 * d, kTokens);
  stack.attention_products(kTokens, kTokens, d);
  stack.linear(name + ".self_attention.out_proj", d, d, kTokens);
  stack.layer_norm(name + ".ln_2", d);
  stack.linear(name + ".mlp.0", d, 4 * d, kTokens);
  stack.linear(name + ".mlp.3", 4 * d, d, kTokens);
  // As in arXiv 2205.05198, section 4.1, without dropout, which torchvision switches off.
  stack.keep({.whole = 4 * kTokens * d, .split = 12 * kTokens * d, .scores = 2 * kHeads * kTokens * kTokens});
  stack.attention_heads({kHeads, kHeads});
  stack.end_block(name, kTokens * d, {kTokens * d, kTokens * d});  // as in transformer.cpp
}

}  // namespace

Model vit_large(std::string_view name, std::string_view summary) {
  LayerStack stack;
  stack.convolution("conv_proj", 3, kFeatures, kPatch, kImage / kPatch, true);
  stack.bias("class_token", kFeatures);
  stack.embedding("encoder.pos_embedding", kTokens, kFeatures);
  stack.end_block("conv_proj", kTokens * kFeatures);
  for (std::int64_t layer = 0; layer < kLayers; ++layer)
    encoder_layer(stack, fmt::format("encoder.layers.encoder_layer_{}", layer));
  stack.layer_norm("encoder.ln", kFeatures);
  stack.linear("heads.head", kFeatures, 1000);
  stack.keep({.whole = 2 * kTokens * kFeatures});
  stack.end_block("heads", 1000);
  return stack.finish(name, summary);
}

}  // namespace polyring

// A model of equal layers, whose sums are easy.
#pragma once

#include <string>

#include "models/model.hpp"

namespace polyring::testing {

/// `layers` layers of 1/layers of `parameters` each. A sample is `tokens` tokens of `features` features and
/// `heads` heads; kept as in Korthikanti et al., arXiv 2205.05198, section 4.1.
inline Model even_model(int layers, std::int64_t parameters, std::int64_t tokens, std::int64_t features,
                        int heads) {
  Model model;
  model.name = "even";
  const std::int64_t each = parameters / layers;
  const std::int64_t sh = tokens * features;
  const double flops = 2.0 * static_cast<double>(each) * static_cast<double>(tokens);
  for (int layer = 0; layer < layers; ++layer) {
    Block block;
    block.name = "layer" + std::to_string(layer);
    block.forward_flops = flops;
    block.backward_flops = 2 * flops;
    block.attention_flops = flops / 10;
    block.parameters = each;
    block.activations = layer + 1 == layers ? 0 : sh;
    block.exchanges = {sh, sh};
    block.kept = {sh, 4 * sh, 12 * sh, 2 * heads * tokens * tokens, 0, 2 * sh, heads * tokens * tokens};
    block.heads = {heads, heads};
    model.blocks.push_back(block);
    model.gradients.insert(model.gradients.begin(), Tensor{block.name, {each}, 2 * flops});
    model.forward_flops_per_sample += flops;
  }
  return model;
}

/// 80 layers, 70 billion parameters, 4,096 tokens of 8,192 features and 64 heads.
inline Model even_70b() { return even_model(80, 70'000'000'000, 4096, 8192, 64); }

}  // namespace polyring::testing

#include "models/layers.hpp"

#include <cassert>
#include <utility>

namespace polyring {

namespace {

/// 2 FLOPs, a multiplication and an addition, for each term of an (m × k) · (k × n) product.
double product_flops(std::int64_t m, std::int64_t k, std::int64_t n) {
  return 2.0 * static_cast<double>(m) * static_cast<double>(k) * static_cast<double>(n);
}

}  // namespace

void LayerStack::add(Layer layer) {
  layer.of_expert = in_experts_;
  layers_.push_back(std::move(layer));
}

void LayerStack::convolution(const std::string& name, std::int64_t in, std::int64_t out, Extent kernel,
                             Extent output, bool bias) {
  const std::int64_t window = in * kernel.height * kernel.width;
  Layer layer{product_flops(output.height * output.width, window, out),
              {{name + ".weight", {out, in, kernel.height, kernel.width}}}};
  if (bias) layer.parameters.push_back({name + ".bias", {out}});
  add(std::move(layer));
  last_output_ = out * output.height * output.width;
  kept_.whole += last_output_;
}

void LayerStack::batch_norm(const std::string& name, std::int64_t channels) {
  layer_norm(name, channels);
  kept_.whole += last_output_;
}

void LayerStack::layer_norm(const std::string& name, std::int64_t features) {
  add({0, {{name + ".weight", {features}}, {name + ".bias", {features}}}});
}

void LayerStack::linear(const std::string& name, std::int64_t in, std::int64_t out, std::int64_t positions,
                        bool bias) {
  Layer layer{product_flops(positions, in, out), {{name + ".weight", {out, in}}}};
  if (bias) layer.parameters.push_back({name + ".bias", {out}});
  add(std::move(layer));
}

void LayerStack::embedding(const std::string& name, std::int64_t rows, std::int64_t features) {
  add({0, {{name + ".weight", {rows, features}}}});
}

void LayerStack::bias(const std::string& name, std::int64_t features) { add({0, {{name, {features}}}}); }

void LayerStack::matrix_product(std::int64_t m, std::int64_t k, std::int64_t n) {
  add({product_flops(m, k, n), {}});
}

void LayerStack::attention_products(std::int64_t queries, std::int64_t keys, std::int64_t features) {
  matrix_product(queries, features, keys);
  matrix_product(queries, keys, features);
  attention_flops_ += 2 * product_flops(queries, features, keys);
}

void LayerStack::keep(const Kept& kept) {
  kept_.whole += kept.whole;
  kept_.split += kept.split;
  kept_.scores += kept.scores;
  kept_.logits += kept.logits;
  kept_.mask_bytes += kept.mask_bytes;
  kept_.score_mask_bytes += kept.score_mask_bytes;
}

void LayerStack::begin_experts(int count, int active, std::int64_t sent) {
  experts_ = {.count = count, .active = active, .sent = sent};
  in_experts_ = true;
}

void LayerStack::end_block(const std::string& name, std::int64_t activations,
                           std::vector<std::int64_t> exchanges) {
  Block block{name, 0, 0, 0, activations, std::move(exchanges)};
  for (; in_blocks_ < layers_.size(); ++in_blocks_) {
    const Layer& layer = layers_[in_blocks_];
    block.forward_flops += layer.forward_flops;
    block.backward_flops += (in_blocks_ == 0 ? 1 : 2) * layer.forward_flops;
    std::int64_t parameters = 0;
    for (const Parameter& parameter : layer.parameters)
      parameters += Tensor{parameter.name, parameter.shape}.elements();
    block.parameters += parameters;
    if (!layer.of_expert) continue;
    experts_.parameters += parameters;
    experts_.forward_flops += layer.forward_flops;
  }
  block.kept = std::exchange(kept_, {});
  block.experts = std::exchange(experts_, {});
  block.heads = std::exchange(heads_, {});
  block.attention_flops = std::exchange(attention_flops_, 0);
  if (!blocks_.empty()) block.kept.input = blocks_.back().activations;
  blocks_.push_back(std::move(block));
}

Model LayerStack::finish(std::string_view name, std::string_view summary) const {
  assert(!layers_.empty() && !layers_.front().parameters.empty() && in_blocks_ == layers_.size());
  Model model{std::string(name), std::string(summary), {}, 0, blocks_};
  model.blocks.back().activations = 0;  // nothing follows
  double since_last_gradient = 0;
  for (auto layer = layers_.rbegin(); layer != layers_.rend(); ++layer) {
    const bool first_of_forward = std::next(layer) == layers_.rend();
    model.forward_flops_per_sample += layer->forward_flops;
    since_last_gradient += (first_of_forward ? 1 : 2) * layer->forward_flops;
    for (auto parameter = layer->parameters.rbegin(); parameter != layer->parameters.rend(); ++parameter) {
      model.gradients.push_back({parameter->name, parameter->shape, since_last_gradient});
      since_last_gradient = 0;
    }
  }
  return model;
}

}  // namespace polyring

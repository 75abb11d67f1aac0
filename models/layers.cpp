#include "models/layers.hpp"

#include <cassert>

namespace polyring {

namespace {

/// 2 FLOPs, a multiplication and an addition, for each term of an (m × k) · (k × n) product.
double product_flops(std::int64_t m, std::int64_t k, std::int64_t n) {
  return 2.0 * static_cast<double>(m) * static_cast<double>(k) * static_cast<double>(n);
}

}  // namespace

void LayerStack::convolution(const std::string& name, std::int64_t in, std::int64_t out, Extent kernel,
                             Extent output, bool bias) {
  const std::int64_t window = in * kernel.height * kernel.width;
  Layer layer{product_flops(output.height * output.width, window, out),
              {{name + ".weight", {out, in, kernel.height, kernel.width}}}};
  if (bias) layer.parameters.push_back({name + ".bias", {out}});
  layers_.push_back(std::move(layer));
}

void LayerStack::batch_norm(const std::string& name, std::int64_t channels) {
  layers_.push_back({0, {{name + ".weight", {channels}}, {name + ".bias", {channels}}}});
}

void LayerStack::linear(const std::string& name, std::int64_t in, std::int64_t out, std::int64_t positions) {
  layers_.push_back(
      {product_flops(positions, in, out), {{name + ".weight", {out, in}}, {name + ".bias", {out}}}});
}

void LayerStack::embedding(const std::string& name, std::int64_t rows, std::int64_t features) {
  layers_.push_back({0, {{name + ".weight", {rows, features}}}});
}

void LayerStack::bias(const std::string& name, std::int64_t features) {
  layers_.push_back({0, {{name, {features}}}});
}

void LayerStack::matrix_product(std::int64_t m, std::int64_t k, std::int64_t n) {
  layers_.push_back({product_flops(m, k, n), {}});
}

void LayerStack::end_block(const std::string& name, std::int64_t activations,
                           std::vector<std::int64_t> exchanges) {
  Block block{name, 0, 0, 0, activations, std::move(exchanges)};
  for (; in_blocks_ < layers_.size(); ++in_blocks_) {
    const Layer& layer = layers_[in_blocks_];
    block.forward_flops += layer.forward_flops;
    block.backward_flops += (in_blocks_ == 0 ? 1 : 2) * layer.forward_flops;
    for (const Parameter& parameter : layer.parameters)
      block.parameters += Tensor{parameter.name, parameter.shape}.elements();
  }
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

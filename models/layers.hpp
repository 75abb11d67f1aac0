// LayerStack: builds a Model from its layers.
//
// A family file adds the layers in the order in which the forward pass runs them; finish() turns that around.
// The backward pass runs the same layers from last to first, so the gradients of the last layer are ready
// first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/model.hpp"

namespace polyring {

/// Height and width of a convolution's kernel, or of its output.
struct Extent {
  std::int64_t height = 1;
  std::int64_t width = 1;
  constexpr Extent(std::int64_t size) : height(size), width(size) {}  // NOLINT: a square is just its size
  constexpr Extent(std::int64_t h, std::int64_t w) : height(h), width(w) {}
};

class LayerStack {
 public:
  /// in × out channels. Weight [out, in, height, width], then, if asked for, bias [out].
  void convolution(const std::string& name, std::int64_t in, std::int64_t out, Extent kernel, Extent output,
                   bool bias = false);

  /// Weight and bias, [channels] each. Running statistics have no gradient. Free, see model.hpp. It follows a
  /// convolution, whose output the backward pass needs as well as what comes of it.
  void batch_norm(const std::string& name, std::int64_t channels);

  /// Weight and bias, [features] each. Free. What is kept of it, keep() says.
  void layer_norm(const std::string& name, std::int64_t features);

  /// Weight [features]. Free.
  void rms_norm(const std::string& name, std::int64_t features) { bias(name + ".weight", features); }

  /// Weight [out, in] and bias [out], if not left out, applied to `positions` rows of one sample.
  void linear(const std::string& name, std::int64_t in, std::int64_t out, std::int64_t positions = 1,
              bool bias = true);

  /// Weight [rows, features]. A lookup forward, a scatter backward: free.
  void embedding(const std::string& name, std::int64_t rows, std::int64_t features);

  /// A parameter that is added: no products, so free.
  void bias(const std::string& name, std::int64_t features);

  /// Scores of `queries` positions with `keys` others and the weighted sums of values: two products of
  /// activations, all heads together, `features` wide. Causal masks are not exploited: the full rectangle is
  /// counted.
  void attention_products(std::int64_t queries, std::int64_t keys, std::int64_t features);

  /// (m × k) · (k × n) with no parameter of its own: products of two activations, or of a weight that is
  /// owned by another layer. Its backward cost goes to the gradient that is ready next.
  void matrix_product(std::int64_t m, std::int64_t k, std::int64_t n);

  /// What the backward pass needs of the block that has been begun, beside the outputs of convolutions and
  /// batch normalisations, which are counted by themselves. `input` is not set here.
  void keep(const Kept& kept);

  /// The block that has been begun has these heads.
  void attention_heads(Heads heads) { heads_ = heads; }

  /// The layers until end_experts() are those of a mixture: `count` experts, `active` of them for a token.
  /// Each expert's layers are added with the positions that it gets of a sample on average. `sent`: see
  /// Experts.
  void begin_experts(int count, int active, std::int64_t sent);
  void end_experts() { in_experts_ = false; }

  /// Ends the block of all layers since the last one; the arguments are those of Block. Every layer must be
  /// in a block by the time of finish().
  void end_block(const std::string& name, std::int64_t activations, std::vector<std::int64_t> exchanges = {});

  /// The model, with gradients in backward order. Within a layer the order is that of the definition,
  /// reversed.
  ///
  /// The backward pass of a product costs twice its forward pass: one product for the gradient of the input,
  /// one for that of the weight. The first layer's input is data and needs no gradient, so that layer costs
  /// once.
  Model finish(std::string_view name, std::string_view summary) const;

 private:
  struct Parameter {
    std::string name;
    std::vector<std::int64_t> shape;
  };
  struct Layer {
    double forward_flops = 0;
    std::vector<Parameter> parameters;
    bool of_expert = false;
  };

  void add(Layer layer);

  std::vector<Layer> layers_;  // in forward order
  std::vector<Block> blocks_;
  std::size_t in_blocks_ = 0;  // layers
  // Of the block that has been begun.
  Kept kept_;
  Experts experts_;
  Heads heads_;
  double attention_flops_ = 0;
  bool in_experts_ = false;
  std::int64_t last_output_ = 0;  // elements, of the last convolution
};

}  // namespace polyring

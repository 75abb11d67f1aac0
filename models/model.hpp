// Model: the gradients that one training step of a neural network produces, in the order in which its
// backward pass produces them, and what that pass costs.
//
// Every model is generated from its layer shapes (resnet.cpp, vgg.cpp, inception.cpp, deeplab.cpp,
// transformer.cpp); nothing is a table of numbers. Costs count the multiplications and additions of
// convolutions and matrix products, 2 FLOPs for each multiply-add. Normalisations, activations, pooling and
// softmax are left out, as the published FLOP tables leave them out: they cost memory traffic, not
// arithmetic, so their layers come out as free here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace polyring {

/// One gradient tensor.
struct Tensor {
  std::string name;  // of the parameter it belongs to: "layer4.2.conv3.weight"
  std::vector<std::int64_t> shape;
  /// FLOPs per sample of the backward work that runs after the gradient before this one is ready and before
  /// this one is. All gradients of a layer are ready together: the first of them carries the cost, the others
  /// carry 0.
  double backward_flops = 0;

  std::int64_t elements() const;  // the product of the shape
};

/// Consecutive layers between two places where the model can be cut: only one tensor crosses such a place.
struct Block {
  std::string name;
  double forward_flops = 0;      // per sample
  double backward_flops = 0;     //
  std::int64_t parameters = 0;   // elements
  std::int64_t activations = 0;  // elements per sample that go on to the next block; 0 of the last
  /// Where its layers are split over ranks: elements per sample of each allreduce of the forward pass. The
  /// backward pass has as many of the same sizes. Empty in all blocks where no such split is known.
  std::vector<std::int64_t> exchanges;
};

struct Model {
  std::string name;
  std::string summary;            // one line: what it is, its input, where its shapes come from
  std::vector<Tensor> gradients;  // in backward order: the order in which they become ready
  double forward_flops_per_sample = 0;
  std::vector<Block> blocks{};  // in forward order; every layer is in one

  std::int64_t total_elements() const;
  double backward_flops_per_sample() const;
};

/// One row of the catalogue. To add a model: a function that builds it, and a row in model.cpp.
struct ModelInfo {
  std::string_view name;
  std::string_view summary;
  Model (*make)(const ModelInfo&);
};

const std::vector<ModelInfo>& model_catalogue();

std::vector<std::string> model_names();

/// Throws a usage Error that lists the known names when `name` is not in the catalogue.
Model make_model(std::string_view name);

}  // namespace polyring

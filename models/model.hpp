// Model: the gradients that one training step of a neural network produces, in the order in which its
// backward pass produces them, and what that pass costs.
//
// Every model is generated from its layer shapes (resnet.cpp, vgg.cpp, inception.cpp, transformer.cpp);
// nothing is a table of numbers. Costs count the multiplications and additions of convolutions and matrix
// products, 2 FLOPs for each multiply-add. Normalisations, activations, pooling and softmax are left out, as
// the published FLOP tables leave them out: they cost memory traffic, not arithmetic, so their layers come
// out as free here.
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

struct Model {
  std::string name;
  std::string summary;            // one line: what it is, its input, where its shapes come from
  std::vector<Tensor> gradients;  // in backward order: the order in which they become ready
  double forward_flops_per_sample = 0;

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

/// "resnet50, resnet101, …": for help texts and messages.
std::string model_names();

/// Throws a usage Error that lists the known names when `name` is not in the catalogue.
Model make_model(std::string_view name);

}  // namespace polyring

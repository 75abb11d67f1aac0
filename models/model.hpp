// Model: the gradients that one training step of a neural network produces, in the order in which its
// backward pass produces them, and what that pass costs.
//
// Every model is generated from its layer shapes (resnet.cpp, vgg.cpp, inception.cpp, deeplab.cpp,
// transformer.cpp, llama.cpp, vit.cpp, unet.cpp); nothing is a table of numbers. Costs count the
// multiplications and additions of convolutions and matrix products, 2 FLOPs for each multiply-add.
// Normalisations, activations, pooling and softmax are left out, as the published FLOP tables leave them out:
// they cost memory traffic, not arithmetic, so their layers come out as free here.
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

/// What the backward pass of a block needs of its forward pass, per sample: elements, unless bytes are said.
/// activations.hpp makes bytes of it.
struct Kept {
  std::int64_t input = 0;  // the block's own input, which another block made
  std::int64_t whole =
      0;  // kept by each rank of a split block; by its part of the sequence, if that is split
  std::int64_t split = 0;             // divided among the ranks of a split block
  std::int64_t scores = 0;            // attention matrices, divided as well; fused attention keeps none
  std::int64_t logits = 0;            // of the loss, in float32 whatever the precision, divided as well
  std::int64_t mask_bytes = 0;        // of dropout, divided as `whole`
  std::int64_t score_mask_bytes = 0;  // of dropout on attention matrices, divided as `scores`
};

/// The mixture of experts in a block (Shazeer et al., arXiv 1701.06538). Its parameters and FLOPs are part of
/// the block's.
struct Experts {
  int count = 0;                // 0: the block has none
  int active = 0;               // of them, for each token
  std::int64_t parameters = 0;  // elements of all experts together
  double forward_flops = 0;     // per sample, of the active ones
  /// Elements per sample that tokens send to their experts. As many come back. The forward pass has one
  /// alltoall each way where the experts are on several ranks, and so has the backward pass.
  std::int64_t sent = 0;
};

/// Heads of a block's attention: what a split of the block over ranks divides. 0: no attention.
struct Heads {
  std::int64_t query = 0;
  std::int64_t key_value = 0;  // fewer under grouped-query attention
};

/// Consecutive layers between two places where the model can be cut: only one tensor crosses such a place,
/// and in a U-Net those of its skip connections, too.
struct Block {
  std::string name;
  double forward_flops = 0;      // per sample
  double backward_flops = 0;     //
  std::int64_t parameters = 0;   // elements
  std::int64_t activations = 0;  // elements per sample that go on to the next block; 0 of the last
  /// Where its layers are split over ranks: elements per sample of each allreduce of the forward pass. The
  /// backward pass has as many of the same sizes. Empty in all blocks where no such split is known.
  std::vector<std::int64_t> exchanges;
  Kept kept{};
  /// Per sample, of the forward pass: the two products of attention, which have no weights.
  double attention_flops = 0;
  Experts experts{};
  Heads heads{};
};

/// Models of a family use GPUs about equally well: see utilisation.hpp.
enum class Family { cnn, encoder, decoder, mixture, vision_transformer, diffusion };

std::string_view to_text(Family family);  // "CNN", "encoder transformer", "decoder transformer", …

/// What is counted when throughput is stated.
struct SampleUnit {
  std::string_view name = "images";  // plural: "images", "sequences" or "samples"
  std::int64_t tokens = 0;           // in one sample; 0 where samples are not made of tokens
};

struct Model {
  std::string name;
  std::string summary;            // one line: what it is, its input, where its shapes come from
  std::vector<Tensor> gradients;  // in backward order: the order in which they become ready
  double forward_flops_per_sample = 0;
  std::vector<Block> blocks{};  // in forward order; every layer is in one
  Family family = Family::cnn;
  SampleUnit sample{};

  std::int64_t total_elements() const;
  double backward_flops_per_sample() const;
  /// Of forward and backward pass together.
  double flops_per_sample() const { return forward_flops_per_sample + backward_flops_per_sample(); }
  /// Parameters that one token or sample uses: all, without the experts that are not active.
  std::int64_t active_elements() const;
};

/// One row of the catalogue. To add a model: a function that builds it, and a row in model.cpp.
struct ModelInfo {
  std::string_view name;
  std::string_view summary;
  Family family;
  SampleUnit sample;
  Model (*make)(const ModelInfo&);
};

const std::vector<ModelInfo>& model_catalogue();

std::vector<std::string> model_names();

/// Throws a usage Error that lists the known names when `name` is not in the catalogue.
Model make_model(std::string_view name);

}  // namespace polyring

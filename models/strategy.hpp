// Strategies: how the work of a training step is divided among GPUs.
//
//   data          whole replicas, each with its own samples; allreduce of the gradients
//   pipeline      a replica's blocks in stages; activations go from stage to stage, their gradients back
//   intra-model   each layer of a stage split over ranks; allreduce of activations in both passes
//   inter-model   replicas that have nothing to do with each other: independent trials, the ideal line
//
// Ranks of one split stage are neighbours, then come the stages of a replica, then the replicas:
// rank = split + intra · (stage + pipeline · replica).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"
#include "models/model.hpp"

namespace polyring {

struct Strategy {
  int replicas = 0;  // of data or inter-model; 0: as many as there are GPUs for
  int pipeline = 1;
  int intra = 1;
  bool independent = false;  // inter-model

  /// GPUs of one replica.
  std::int64_t replica_gpus() const { return std::int64_t{pipeline} * intra; }
};

/// Reads `data=64,pipeline=4`, in any order; without data or inter-model the GPUs left over make replicas.
/// Throws a usage Error for unknown or repeated factors, for numbers below 1, and for data and inter-model
/// in one.
Strategy parse_strategy(std::string_view text);

/// `data=64,pipeline=4`: the factors above 1, or the first alone.
std::string to_text(const Strategy& strategy);

/// With its replicas counted. Throws a usage Error, which shows the product, unless the factors multiply to
/// `gpus`.
Strategy for_gpus(Strategy strategy, int gpus);

/// A stage: consecutive blocks [first, first + count).
struct StageBlocks {
  std::size_t first = 0;
  std::size_t count = 0;
  double forward_flops = 0;  // per sample
  double backward_flops = 0;
  std::int64_t parameters = 0;
  std::int64_t activations = 0;  // elements per sample that go on to the next stage
};

/// The model's blocks in `stages` stages, none empty, such that the largest has as few FLOPs as can be.
/// Throws a usage Error when the model has fewer blocks.
std::vector<StageBlocks> balanced_stages(const Model& model, int stages);

/// What a parameter occupies while it is trained: weight, gradient and Adam's two moments in float32, or in
/// mixed precision float16 weight and gradient beside float32 master weight and moments: 16 bytes either way
/// (Rajbhandari et al., ZeRO, arXiv 1910.02054, section 3.1). Activations come on top.
inline constexpr int kBytesPerTrainedParameter = 16;

/// Of the GPU that has the most parameters, under a strategy.
Bytes trained_parameters(const std::vector<StageBlocks>& stages, int intra);

/// Throws a usage Error when `needed` is more than a GPU has; `memory` of 0 is unknown and refuses nothing.
void check_memory(const std::string& model, Bytes needed, Bytes memory);

}  // namespace polyring

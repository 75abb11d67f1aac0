// Strategies: how the work of a training step is divided among GPUs.
//
//   data          whole replicas, each with its own samples; their gradients are summed
//     zero        1: an optimizer state for each part of the weights, 2: gradients too, 3: weights too
//                 (Rajbhandari et al., arXiv 1910.02054); fsdp is zero=3
//     expert      the experts of a mixture spread over neighbouring replicas; tokens go to them by alltoall
//   pipeline      a replica's blocks in stages; activations go from stage to stage, their gradients back
//   tensor        each layer of a stage split over ranks; allreduce of activations in both passes
//     sequence-parallel   reduce-scatter and allgather in their place, and what lies between is split, too
//   inter-model   replicas that have nothing to do with each other: independent trials, the ideal line
//
// Ranks of a split layer are neighbours. Then come the stages of a replica, then the replicas, or with
// near=data (as in Megatron-LM and DeepSpeed) the replicas, then the stages:
//
//   rank = split + tensor · (stage + pipeline · replica)        near=stages, the default
//   rank = split + tensor · (replica + data · stage)            near=data
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"
#include "models/activations.hpp"
#include "models/model.hpp"
#include "models/pipeline.hpp"

namespace polyring {

struct Strategy {
  int replicas = 0;  // of data or inter-model; 0: as many as there are GPUs for
  int pipeline = 1;
  int intra = 1;             // tensor
  bool independent = false;  // inter-model
  int zero = 0;              // 0: every replica holds all that is trained
  bool sequence = false;     // sequence-parallel
  int expert = 1;            // replicas that share one set of experts
  PipelineOrder order = PipelineOrder::gpipe;
  int chunks = 1;  // of a stage, where it is interleaved: virtual stages of a rank
  Recompute recompute = Recompute::none;
  int micro_batch = 0;     // samples; 0: chosen
  bool data_near = false;  // near=data

  /// GPUs of one replica.
  std::int64_t replica_gpus() const { return std::int64_t{pipeline} * intra; }
  /// Stages that a micro-batch passes through.
  int virtual_stages() const { return pipeline * chunks; }
  /// Data parallel with nothing else: what a bucketed allreduce is enough for.
  bool is_plain() const {
    return replica_gpus() == 1 && !independent && zero == 0 && expert == 1 && micro_batch == 0 &&
           recompute == Recompute::none;
  }
  bool operator==(const Strategy&) const = default;
};

/// Reads `data=64,pipeline=4`, in any order; without data or inter-model the GPUs left over make replicas.
/// Throws a usage Error for unknown, repeated or contradicting factors, and for numbers that are out of
/// range.
Strategy parse_strategy(std::string_view text);

/// `data=64,pipeline=4`: what differs from a Strategy's defaults, or the first factor alone.
std::string to_text(const Strategy& strategy);

/// With its replicas counted. Throws a usage Error, which shows the product, unless the factors multiply to
/// `gpus`.
Strategy for_gpus(Strategy strategy, int gpus);

/// Ranks of one purpose: `members` of them, `stride` apart, make a group.
struct RankGroups {
  int members = 1;
  int stride = 1;
  auto operator<=>(const RankGroups&) const = default;
};

/// Of a strategy whose replicas are counted.
RankGroups tensor_groups(const Strategy& strategy);
RankGroups data_groups(const Strategy& strategy);    // that share all weights but the experts'
RankGroups expert_groups(const Strategy& strategy);  // that hold one set of experts together
RankGroups expert_copies(const Strategy& strategy);  // that hold the same experts
/// From a rank of a stage to its counterpart in the next.
int stage_stride(const Strategy& strategy);

/// Throws a usage Error, with the numbers, for heads that tensor does not divide, experts that expert does
/// not divide, a model without experts or without layers that can be split, equal layers (of a
/// transformer) that pipeline does not divide, and layers that do not divide among interleaved stages.
void check_division(const Model& model, const Strategy& strategy);

/// The blocks that are like most others: a transformer's layers, without embeddings and head.
std::int64_t layers_of(const Model& model);

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

}  // namespace polyring

// What a strategy needs of a GPU's memory.
#pragma once

#include <string>

#include "models/precision.hpp"
#include "models/strategy.hpp"

namespace polyring {

/// What a step keeps on a GPU.
struct TrainingState {
  Precision precision = Precision::mixed;
  TrainedParameter parameter = trained_parameter(Precision::mixed);
  double samples = 1;     // in a micro-batch of a replica
  int micro_batches = 1;  // of a replica
};

/// Bytes.
struct StrategyMemory {
  double weights = 0;
  double gradients = 0;
  double optimizer = 0;
  double gathered = 0;     // weights of two blocks that zero=3 gathers; gradients of one until they leave
  double activations = 0;  // of all micro-batches in flight, and what one block computes again

  double states() const { return weights + gradients + optimizer; }
  double total() const { return states() + gathered + activations; }
};

/// Of the GPU that needs most. The strategy's replicas are counted, and check_division() accepts it.
/// `stages` are its virtual stages, by balanced_stages().
///
///   states       of Ψ parameters: weights, gradients and optimizer; zero=1 divides the last by the replicas,
///                zero=2 the last two, zero=3 all (Rajbhandari et al., arXiv 1910.02054, figure 1). Experts'
///                are divided by the replicas that hold the same ones
///   activations  by activation_bytes(), times the micro-batches that are in flight on the rank, by
///                most_in_flight()
StrategyMemory strategy_memory(const Model& model, const Strategy& strategy,
                               const std::vector<StageBlocks>& stages, const TrainingState& training);

/// The fewest GPUs that can hold a replica: tensor up to `host_gpus` times pipeline, each micro-batch one
/// sample that is computed again in full, without zero. 0 where no split is enough.
int least_replica_gpus(const Model& model, const TrainingState& training, int host_gpus, Bytes memory);

/// Of a GPU's memory, what searches and defaults count on: the rest is for the framework, its libraries and
/// buffers that live shortly. Ours.
inline constexpr double kUsableMemory = 0.9;

/// Throws a usage Error when `need` is more than `memory`, and says what would do. `memory` of 0 is unknown
/// and refuses nothing.
void check_fits(const Model& model, const Strategy& strategy, const StrategyMemory& need,
                const TrainingState& training, int host_gpus, Bytes memory);

/// "12.30 GB of weights, gradients and optimizer state, 4.50 GB of activations".
std::string to_text(const StrategyMemory& need);

}  // namespace polyring

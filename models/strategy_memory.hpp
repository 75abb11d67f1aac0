// What a training step needs of a GPU's memory: the one rule by which default batches, plain data parallelism
// and every strategy are judged.
//
// Parameters, gradients, optimizer state and activations are counted. The rest of the memory is for what is
// not: the CUDA context, libraries' workspaces, communication buffers, and what an allocator wastes.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "models/precision.hpp"
#include "models/strategy.hpp"

namespace polyring {

/// The part of a GPU's memory that may be planned with. In 454 runs on A100 and H100 whose estimated
/// parameters, gradients, optimizer state and activations were below 80 % of the memory, none ran out of it
/// (Fujii et al., arXiv 2411.06465). Some runs with more do fit.
inline constexpr double kUsableMemory = 0.8;

/// What a step keeps on a GPU.
struct TrainingState {
  Precision precision = Precision::mixed;
  TrainedParameter parameter = trained_parameter(Precision::mixed);
  double samples = 1;     // in a micro-batch of a replica
  int micro_batches = 1;  // of a replica
  Attention attention = Attention::fused;
};

/// With Adam, and gradients of `gradient_bytes` an element; see trained_parameter().
TrainingState training_state(Precision precision, int gradient_bytes, Attention attention, double samples,
                             int micro_batches = 1);

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

/// That of a plain data-parallel step, whose GPUs each hold the whole model.
StrategyMemory plain_memory(const Model& model, const TrainingState& training);

/// Whether that may be planned with. `memory` of 0 is unknown, and everything fits.
bool fits(const StrategyMemory& need, Bytes memory);

/// The strategy of the fewest GPUs that hold a replica, without zero: tensor up to `host_gpus`, times
/// pipeline that divides the layers; micro-batches of one sample, recomputed in full where that is needed.
/// Nothing where no split is enough.
std::optional<Strategy> least_replica(const Model& model, const TrainingState& training, int host_gpus,
                                      Bytes memory);

/// The same of whole replicas that share all state by zero=3, over a part of a host or over hosts, doubled.
std::optional<Strategy> least_sharded(const Model& model, const TrainingState& training, int host_gpus,
                                      Bytes memory);

/// Throws a usage Error when `need` does not fit, and says what would do.
void check_fits(const Model& model, const Strategy& strategy, const StrategyMemory& need,
                const TrainingState& training, int host_gpus, Bytes memory);

/// "a replica needs 4 GPUs at least, as tensor=4,…; …": what to do where a model fits no GPU as a whole.
/// `more` ends it where some split does fit.
std::string split_advice(const Model& model, const TrainingState& training, int host_gpus, Bytes memory,
                         std::string_view more = "");

/// "the 68.7 GB that may be planned with of 85.9 GB".
std::string usable_text(Bytes memory);

/// "12.30 GB of weights, gradients and optimizer state, 4.50 GB of activations".
std::string to_text(const StrategyMemory& need);

}  // namespace polyring

#include "models/strategy_memory.hpp"

#include <algorithm>
#include <cassert>
#include <optional>
#include <span>

#include "base/error.hpp"

namespace polyring {

namespace {

double gigabytes(double bytes) { return bytes / 1e9; }

BlockSplit split_of(const Strategy& strategy) { return {strategy.intra, strategy.sequence}; }

class Accounts {
 public:
  Accounts(const Model& model, const Strategy& strategy, const std::vector<StageBlocks>& stages,
           const TrainingState& training)
      : model_(model), strategy_(strategy), stages_(stages), training_(training) {}

  StrategyMemory of_rank(int rank) const {
    StrategyMemory need;
    double largest_chunk = 0;
    double largest_again = 0;
    for (int stage = rank; stage < static_cast<int>(stages_.size()); stage += strategy_.pipeline) {
      const StageBlocks& blocks = stages_[static_cast<std::size_t>(stage)];
      double chunk = 0;
      for (const Block& block : std::span(model_.blocks).subspan(blocks.first, blocks.count)) {
        add_states(block, need);
        chunk += kept(block, strategy_.recompute);
        if (strategy_.recompute == Recompute::full)
          largest_again = std::max(largest_again, kept(block, Recompute::selective));
      }
      largest_chunk = std::max(largest_chunk, chunk);
    }
    need.activations = training_.samples * (in_flight(rank) * largest_chunk + largest_again);
    return need;
  }

 private:
  double kept(const Block& block, Recompute recompute) const {
    return static_cast<double>(
        activation_bytes(block, training_.precision, recompute, split_of(strategy_)).value);
  }

  int in_flight(int rank) const {
    if (strategy_.pipeline == 1) return 1;
    return most_in_flight(strategy_.order, strategy_.pipeline, strategy_.chunks, training_.micro_batches,
                          rank);
  }

  void add_states(const Block& block, StrategyMemory& need) const {
    const auto of_experts = static_cast<double>(block.experts.parameters);
    const double dense = (static_cast<double>(block.parameters) - of_experts) / strategy_.intra;
    const double experts = of_experts / strategy_.intra / strategy_.expert;
    const double copies = strategy_.independent ? 1 : strategy_.replicas;
    // Held by all that need it, and the part that each replica owns.
    const double all = dense + experts;
    const double part = dense / copies + experts * strategy_.expert / copies;
    const TrainedParameter& of = training_.parameter;
    need.weights += of.weight * (strategy_.zero >= 3 ? part : all);
    need.gradients += of.gradient * (strategy_.zero >= 2 ? part : all);
    need.optimizer += of.optimizer * (strategy_.zero >= 1 ? part : all);
    if (copies == 1) return;
    const double weights = strategy_.zero >= 3 ? 2.0 * of.weight * all : 0;
    const double gradients = strategy_.zero >= 2 ? of.gradient * all : 0;
    need.gathered = std::max(need.gathered, weights + gradients);
  }

  const Model& model_;
  const Strategy& strategy_;
  const std::vector<StageBlocks>& stages_;
  const TrainingState& training_;
};

/// Whether a replica of these factors fits, with as little as can be in flight.
bool fits(const Model& model, int tensor, int pipeline, TrainingState training, Bytes memory) {
  Strategy strategy;
  strategy.replicas = 1;
  strategy.intra = tensor;
  strategy.sequence = tensor > 1;
  strategy.pipeline = pipeline;
  strategy.order = PipelineOrder::one_forward_one_backward;
  strategy.recompute = Recompute::full;
  training.samples = 1;
  training.micro_batches = 4 * pipeline;
  const StrategyMemory need = strategy_memory(model, strategy, balanced_stages(model, pipeline), training);
  return need.total() <= static_cast<double>(memory.value);
}

bool can_split(const Model& model, int tensor) {
  Strategy strategy;
  strategy.intra = tensor;
  try {
    check_division(model, strategy);
  } catch (const Error&) {
    return false;
  }
  return true;
}

}  // namespace

StrategyMemory strategy_memory(const Model& model, const Strategy& strategy,
                               const std::vector<StageBlocks>& stages, const TrainingState& training) {
  assert(strategy.replicas > 0 && static_cast<int>(stages.size()) == strategy.virtual_stages());
  const Accounts accounts(model, strategy, stages, training);
  StrategyMemory most = accounts.of_rank(0);
  for (int rank = 1; rank < strategy.pipeline; ++rank) {
    const StrategyMemory need = accounts.of_rank(rank);
    if (need.total() > most.total()) most = need;
  }
  return most;
}

int least_replica_gpus(const Model& model, const TrainingState& training, int host_gpus, Bytes memory) {
  std::optional<int> least;
  for (int tensor = 1; tensor <= host_gpus; ++tensor) {
    if (host_gpus % tensor != 0 || !can_split(model, tensor)) continue;
    for (int pipeline = 1; pipeline <= static_cast<int>(model.blocks.size()); ++pipeline) {
      if (least && tensor * pipeline >= *least) break;
      if (!fits(model, tensor, pipeline, training, memory)) continue;
      least = tensor * pipeline;
      break;
    }
  }
  return least.value_or(0);
}

void check_fits(const Model& model, const Strategy& strategy, const StrategyMemory& need,
                const TrainingState& training, int host_gpus, Bytes memory) {
  if (memory.value == 0 || need.total() <= static_cast<double>(memory.value)) return;
  const int least = least_replica_gpus(model, training, host_gpus, memory);
  const std::string remedy =
      least == 1 ? "its weights, gradients and optimizer state fit: recompute, use a smaller micro-batch, or "
                   "tensor or "
                   "pipeline"
      : least == 0 ? "no split of it fits either; choose a smaller model, or GPUs with more memory"
                   : fmt::format(
                         "without zero it needs {} GPUs a replica at least; use tensor, pipeline, zero, "
                         "recompute or a smaller micro-batch",
                         least);
  usage_error("{} does not fit with {}: {} are more than a GPU's {:.1f} GB; {}", model.name,
              to_text(strategy), to_text(need), gigabytes(static_cast<double>(memory.value)), remedy);
}

std::string to_text(const StrategyMemory& need) {
  std::string text =
      fmt::format("{:.2f} GB of weights, gradients and optimizer state", gigabytes(need.states()));
  if (need.gathered > 0) text += fmt::format(", {:.2f} GB of gathered blocks", gigabytes(need.gathered));
  return text + fmt::format(", {:.2f} GB of activations", gigabytes(need.activations));
}

}  // namespace polyring

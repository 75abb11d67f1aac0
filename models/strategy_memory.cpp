#include "models/strategy_memory.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
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
          largest_again = std::max(largest_again, kept(block, Recompute::none));
      }
      largest_chunk = std::max(largest_chunk, chunk);
    }
    need.activations = training_.samples * (in_flight(rank) * largest_chunk + largest_again);
    return need;
  }

 private:
  double kept(const Block& block, Recompute recompute) const {
    return static_cast<double>(
        activation_bytes(block, training_.precision, recompute, split_of(strategy_), training_.attention)
            .value);
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

/// With micro-batches of one sample, and no more recomputation than is needed.
std::optional<Strategy> sparing(const Model& model, Strategy strategy, TrainingState training, Bytes memory) {
  const std::vector<StageBlocks> stages = balanced_stages(model, strategy.virtual_stages());
  training.samples = 1;
  training.micro_batches = 4 * strategy.pipeline;
  strategy.micro_batch = 1;
  for (const Recompute recompute : {Recompute::none, Recompute::full}) {
    strategy.recompute = recompute;
    if (fits(strategy_memory(model, strategy, stages, training), memory)) return strategy;
  }
  return std::nullopt;
}

/// How many samples of this strategy fit; 0: not even one does.
std::int64_t most_samples(const StrategyMemory& need, double samples, Bytes memory) {
  const double room = kUsableMemory * static_cast<double>(memory.value) - (need.total() - need.activations);
  if (room <= 0 || need.activations <= 0) return 0;
  return static_cast<std::int64_t>(std::floor(room / (need.activations / samples)));
}

/// What to do where the states fit and the activations do not; empty where nothing but a split helps.
std::string smaller_advice(const Model& model, Strategy strategy, const TrainingState& training,
                           Bytes memory) {
  const std::string name = strategy.is_plain() ? "batch" : "micro-batch";
  const std::vector<StageBlocks> stages = balanced_stages(model, strategy.virtual_stages());
  const bool keeps_all = strategy.pipeline > 1 && strategy.order == PipelineOrder::gpipe;
  const std::string order = "GPipe's order keeps all micro-batches: use schedule=1f1b";
  if (keeps_all) {
    strategy.order = PipelineOrder::one_forward_one_backward;
    if (fits(strategy_memory(model, strategy, stages, training), memory)) return order;
  }
  // Smaller micro-batches are more of them, and fill a pipeline.
  TrainingState full = training;
  if (strategy.pipeline > 1) full.micro_batches = std::max(training.micro_batches, 4 * strategy.pipeline);
  std::vector<std::string> ways;
  const StrategyMemory need = strategy_memory(model, strategy, stages, full);
  if (const std::int64_t most = most_samples(need, training.samples, memory); most > 0)
    ways.push_back(fmt::format("use a {} of at most {}", name, most));
  if (strategy.recompute != Recompute::full) {
    strategy.recompute = Recompute::full;
    const StrategyMemory again = strategy_memory(model, strategy, stages, full);
    const std::int64_t most = most_samples(again, training.samples, memory);
    if (fits(strategy_memory(model, strategy, stages, training), memory)) {
      ways.emplace_back("compute activations again by recompute=full");
    } else if (most > 0) {
      ways.push_back(fmt::format("recompute=full and a {} of at most {}", name, most));
    }
  }
  const std::string all = fmt::format("{}", fmt::join(ways, ", or "));
  return keeps_all && !ways.empty() ? fmt::format("{}, and with it {}", order, all) : all;
}

}  // namespace

TrainingState training_state(Precision precision, int gradient_bytes, Attention attention, double samples,
                             int micro_batches) {
  return {precision, trained_parameter(precision, Optimizer::adam, gradient_bytes), samples, micro_batches,
          attention};
}

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

StrategyMemory plain_memory(const Model& model, const TrainingState& training) {
  Strategy strategy;
  strategy.replicas = 1;
  return strategy_memory(model, strategy, balanced_stages(model, 1), training);
}

bool fits(const StrategyMemory& need, Bytes memory) {
  return memory.value == 0 || need.total() <= kUsableMemory * static_cast<double>(memory.value);
}

std::optional<Strategy> least_replica(const Model& model, const TrainingState& training, int host_gpus,
                                      Bytes memory) {
  std::optional<Strategy> least;
  for (int tensor = 1; tensor <= host_gpus; ++tensor) {
    if (host_gpus % tensor != 0 || !can_split(model, tensor)) continue;
    for (int pipeline = 1; pipeline <= static_cast<int>(model.blocks.size()); ++pipeline) {
      if (least && tensor * pipeline >= least->replica_gpus()) break;
      if (layers_of(model) % pipeline != 0) continue;
      Strategy strategy;
      strategy.replicas = 1;
      strategy.intra = tensor;
      strategy.sequence = tensor > 1;
      strategy.pipeline = pipeline;
      if (pipeline > 1) strategy.order = PipelineOrder::one_forward_one_backward;
      const auto spared = sparing(model, strategy, training, memory);
      if (!spared) continue;
      least = spared;
      break;
    }
  }
  return least;
}

std::optional<Strategy> least_sharded(const Model& model, const TrainingState& training, int host_gpus,
                                      Bytes memory) {
  constexpr int kMostSharing = 1 << 10;
  for (int gpus = 2; gpus <= kMostSharing; gpus = gpus < host_gpus ? gpus + 1 : 2 * gpus) {
    if (gpus < host_gpus && host_gpus % gpus != 0) continue;
    Strategy strategy;
    strategy.replicas = gpus;
    strategy.zero = 3;
    if (auto spared = sparing(model, strategy, training, memory)) return spared;
  }
  return std::nullopt;
}

std::string usable_text(Bytes memory) {
  const auto of_gpu = static_cast<double>(memory.value);
  return fmt::format("the {:.1f} GB ({:.0f} % of {:.1f}) that may be planned with on a GPU",
                     gigabytes(kUsableMemory * of_gpu), 100 * kUsableMemory, gigabytes(of_gpu));
}

std::string split_advice(const Model& model, const TrainingState& training, int host_gpus, Bytes memory,
                         std::string_view more) {
  const auto replica = least_replica(model, training, host_gpus, memory);
  const auto sharded = least_sharded(model, training, host_gpus, memory);
  std::vector<std::string> ways;
  if (replica && replica->replica_gpus() > 1) {
    ways.push_back(
        fmt::format("a replica needs {} GPUs at least, as {}", replica->replica_gpus(), to_text(*replica)));
  } else if (replica) {
    ways.push_back(fmt::format("one GPU is enough with {}", to_text(*replica)));
  }
  if (sharded)
    ways.push_back(
        fmt::format("replicas that share their state need {}, as {}", sharded->replicas, to_text(*sharded)));
  if (ways.empty()) return "no split of it fits either: choose a smaller model, or GPUs with more memory";
  return fmt::format("{}{}", fmt::join(ways, "; "), more);
}

void check_fits(const Model& model, const Strategy& strategy, const StrategyMemory& need,
                const TrainingState& training, int host_gpus, Bytes memory) {
  if (fits(need, memory)) return;
  const std::string with =
      strategy.is_plain() ? fmt::format("a batch of {:.0f}", training.samples) : to_text(strategy);
  std::string advice = smaller_advice(model, strategy, training, memory);
  if (advice.empty())
    advice = split_advice(model, training, host_gpus, memory, "; the best strategy finds the fastest");
  usage_error("{} does not fit with {}: {} are more than {}; {}", model.name, with, to_text(need),
              usable_text(memory), advice);
}

std::string to_text(const StrategyMemory& need) {
  std::string text =
      fmt::format("{:.2f} GB of weights, gradients and optimizer state", gigabytes(need.states()));
  if (need.gathered > 0) text += fmt::format(", {:.2f} GB of gathered blocks", gigabytes(need.gathered));
  return text + fmt::format(", {:.2f} GB of activations", gigabytes(need.activations));
}

}  // namespace polyring

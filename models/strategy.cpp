#include "models/strategy.hpp"

#include <algorithm>
#include <cassert>
#include <map>
#include <set>
#include <utility>

#include "base/error.hpp"

namespace polyring {

namespace {

double flops(const Block& block) { return block.forward_flops + block.backward_flops; }

/// How many stages it takes when none may have more than `most` FLOPs, filled from the front.
int stages_within(const std::vector<Block>& blocks, double most) {
  int stages = 1;
  double held = 0;
  for (const Block& block : blocks) {
    if (held > 0 && held + flops(block) > most) {
      ++stages;
      held = 0;
    }
    held += flops(block);
  }
  return stages;
}

/// The least of the largest stages: always the sum of some consecutive blocks.
double least_largest(const std::vector<Block>& blocks, int stages) {
  std::set<double> sums;
  double largest_block = 0;
  for (std::size_t first = 0; first < blocks.size(); ++first) {
    double sum = 0;
    for (std::size_t last = first; last < blocks.size(); ++last) sums.insert(sum += flops(blocks[last]));
    largest_block = std::max(largest_block, flops(blocks[first]));
  }
  const std::vector<double> sorted(sums.lower_bound(largest_block), sums.end());
  return *std::partition_point(sorted.begin(), sorted.end(),
                               [&](double most) { return stages_within(blocks, most) > stages; });
}

}  // namespace

Strategy for_gpus(Strategy strategy, int gpus) {
  const std::int64_t of_replica = strategy.replica_gpus();
  if (strategy.replicas == 0) {
    if (gpus % of_replica != 0) {
      usage_error(
          "a replica of pipeline {} x tensor {} = {} GPUs does not divide {} GPUs; change the GPUs or the "
          "strategy",
          strategy.pipeline, strategy.intra, of_replica, gpus);
    }
    strategy.replicas = static_cast<int>(gpus / of_replica);
  }
  if (of_replica * strategy.replicas != gpus) {
    usage_error(
        "the strategy is for {} {} x pipeline {} x tensor {} = {} GPUs and not for {}; change the GPUs or "
        "the strategy",
        strategy.independent ? "inter-model" : "data", strategy.replicas, strategy.pipeline, strategy.intra,
        of_replica * strategy.replicas, gpus);
  }
  if (strategy.replicas % strategy.expert != 0) {
    usage_error("expert={} does not divide {} replicas; change the GPUs or the strategy", strategy.expert,
                strategy.replicas);
  }
  return strategy;
}

RankGroups tensor_groups(const Strategy& strategy) { return {strategy.intra, 1}; }

RankGroups data_groups(const Strategy& strategy) {
  const int stride = strategy.data_near ? strategy.intra : strategy.intra * strategy.pipeline;
  return {strategy.independent ? 1 : strategy.replicas, stride};
}

RankGroups expert_groups(const Strategy& strategy) { return {strategy.expert, data_groups(strategy).stride}; }

RankGroups expert_copies(const Strategy& strategy) {
  const RankGroups data = data_groups(strategy);
  return {data.members / strategy.expert, data.stride * strategy.expert};
}

int stage_stride(const Strategy& strategy) {
  return strategy.data_near ? strategy.intra * strategy.replicas : strategy.intra;
}

std::int64_t layers_of(const Model& model) {
  std::map<std::pair<double, std::int64_t>, std::int64_t> equal;
  std::int64_t most = 0;
  for (const Block& block : model.blocks) most = std::max(most, ++equal[{flops(block), block.parameters}]);
  return most;
}

void check_division(const Model& model, const Strategy& strategy) {
  int experts = 0;
  bool splits = false;
  for (const Block& block : model.blocks) {
    splits = splits || !block.exchanges.empty();
    experts = std::max(experts, block.experts.count);
    const auto [query, key_value] = block.heads;
    // More ranks than heads of keys and values hold copies of these.
    if (query % strategy.intra != 0 || (key_value % strategy.intra != 0 && strategy.intra % key_value != 0)) {
      usage_error(
          "{} has {} attention heads, {} of keys and values, which tensor={} does not divide; choose a "
          "divisor",
          model.name, query, key_value, strategy.intra);
    }
  }
  if (strategy.intra > 1 && !splits) {
    usage_error("how the layers of {} are split over ranks is not known; use tensor with a transformer",
                model.name);
  }
  if (strategy.expert > 1 && experts == 0)
    usage_error("{} has no experts; leave expert={} out", model.name, strategy.expert);
  if (experts % strategy.expert != 0) {
    usage_error("{} has {} experts, which expert={} does not divide; choose a divisor", model.name, experts,
                strategy.expert);
  }
  const std::int64_t layers = layers_of(model);
  if (splits && layers > 1 && layers % strategy.pipeline != 0) {
    usage_error("{} has {} layers, which pipeline={} does not divide; choose a divisor of {}", model.name,
                layers, strategy.pipeline, layers);
  }
  if (strategy.chunks == 1) return;
  if (layers % strategy.virtual_stages() != 0) {
    usage_error(
        "{} has {} layers, which do not divide among pipeline={} x interleaved={} stages; choose divisors",
        model.name, layers, strategy.pipeline, strategy.chunks);
  }
}

std::vector<StageBlocks> balanced_stages(const Model& model, int stages) {
  assert(stages > 0 && !model.blocks.empty());
  if (model.blocks.size() < static_cast<std::size_t>(stages)) {
    usage_error("{} has {} block{} and cannot be cut into {} stages; use fewer", model.name,
                model.blocks.size(), model.blocks.size() == 1 ? "" : "s", stages);
  }
  // Rounding must not make a stage that is exactly as large as the largest one too large.
  const double most = least_largest(model.blocks, stages) * (1 + 1e-12);
  std::vector<StageBlocks> result;
  for (std::size_t i = 0; i < model.blocks.size(); ++i) {
    const Block& block = model.blocks[i];
    const std::size_t blocks_left = model.blocks.size() - i;
    const std::size_t stages_left = static_cast<std::size_t>(stages) - result.size();
    // A new stage where this one is full, or where each block that is left is needed for a stage of its own.
    const bool full =
        result.empty() || result.back().forward_flops + result.back().backward_flops + flops(block) > most;
    if (stages_left > 0 && (full || blocks_left == stages_left)) result.push_back({.first = i});
    StageBlocks& stage = result.back();
    ++stage.count;
    stage.forward_flops += block.forward_flops;
    stage.backward_flops += block.backward_flops;
    stage.parameters += block.parameters;
    stage.activations = block.activations;
  }
  return result;
}

}  // namespace polyring

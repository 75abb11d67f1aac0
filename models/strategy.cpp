#include "models/strategy.hpp"

#include <algorithm>
#include <cassert>
#include <charconv>
#include <limits>
#include <set>

#include "base/error.hpp"

namespace polyring {

namespace {

constexpr int kLargestFactor = 1 << 20;

struct Factor {
  std::string_view name;
  int value = 0;
};

Factor parse_factor(std::string_view word, std::string_view whole) {
  const std::size_t equals = word.find('=');
  const auto value_text = equals == std::string_view::npos ? "" : word.substr(equals + 1);
  Factor factor{word.substr(0, equals), 0};
  const char* end = value_text.data() + value_text.size();
  const auto [rest, error] = std::from_chars(value_text.data(), end, factor.value);
  if (error != std::errc{} || rest != end || factor.value < 1 || factor.value > kLargestFactor) {
    usage_error("strategy '{}': '{}' is not a factor from 1 to {}; write it as data=64,pipeline=4", whole,
                word, kLargestFactor);
  }
  return factor;
}

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

Strategy parse_strategy(std::string_view text) {
  Strategy strategy;
  std::set<std::string_view> seen;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t comma = std::min(text.find(',', begin), text.size());
    const Factor factor = parse_factor(text.substr(begin, comma - begin), text);
    begin = comma + 1;
    if (!seen.insert(factor.name).second)
      usage_error("strategy '{}' has two factors {}; give one", text, factor.name);
    if (factor.name == "pipeline") {
      strategy.pipeline = factor.value;
    } else if (factor.name == "intra-model") {
      strategy.intra = factor.value;
    } else if (factor.name == "data" || factor.name == "inter-model") {
      strategy.replicas = factor.value;
      strategy.independent = factor.name == "inter-model";
    } else {
      usage_error("strategy '{}': '{}' is none of data, pipeline, intra-model, inter-model; name one of them",
                  text, factor.name);
    }
  }
  if (seen.contains("data") && seen.contains("inter-model"))
    usage_error("strategy '{}': replicas are either data or inter-model; give one of them", text);
  return strategy;
}

std::string to_text(const Strategy& strategy) {
  const std::string replicas =
      fmt::format("{}={}", strategy.independent ? "inter-model" : "data", strategy.replicas);
  std::string text = strategy.replicas == 1 && strategy.replica_gpus() > 1 ? "" : replicas;
  const auto add = [&](const char* name, int value) {
    if (value > 1) text += fmt::format("{}{}={}", text.empty() ? "" : ",", name, value);
  };
  add("pipeline", strategy.pipeline);
  add("intra-model", strategy.intra);
  return text;
}

Strategy for_gpus(Strategy strategy, int gpus) {
  const std::int64_t of_replica = strategy.replica_gpus();
  if (strategy.replicas == 0) {
    if (gpus % of_replica != 0) {
      usage_error(
          "a replica of pipeline {} x intra-model {} = {} GPUs does not divide {} GPUs; change the GPUs or "
          "the "
          "strategy",
          strategy.pipeline, strategy.intra, of_replica, gpus);
    }
    strategy.replicas = static_cast<int>(gpus / of_replica);
  }
  if (of_replica * strategy.replicas != gpus) {
    usage_error(
        "the strategy is for {} {} x pipeline {} x intra-model {} = {} GPUs and not for {}; change the GPUs "
        "or "
        "the strategy",
        strategy.independent ? "inter-model" : "data", strategy.replicas, strategy.pipeline, strategy.intra,
        of_replica * strategy.replicas, gpus);
  }
  return strategy;
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

Bytes trained_parameters(const std::vector<StageBlocks>& stages, int intra) {
  std::int64_t most = 0;
  for (const StageBlocks& stage : stages) most = std::max(most, stage.parameters);
  return {static_cast<std::uint64_t>((most + intra - 1) / intra) * kBytesPerTrainedParameter};
}

void check_memory(const std::string& model, Bytes needed, Bytes memory) {
  if (memory.value == 0 || needed <= memory) return;
  const auto gigabytes = [](Bytes bytes) { return static_cast<double>(bytes.value) / 1e9; };
  usage_error(
      "{} does not fit: its weights, gradients and optimizer state take {:.1f} GB of a GPU's {:.1f} GB, "
      "{} bytes a parameter; split it by a strategy with pipeline or intra-model",
      model, gigabytes(needed), gigabytes(memory), kBytesPerTrainedParameter);
}

}  // namespace polyring

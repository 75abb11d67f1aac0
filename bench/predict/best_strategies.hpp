// The search behind --strategy best: which product of data, zero, tensor, pipeline and expert parallelism is
// fastest on so many GPUs, of those that fit their memory.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "bench/predict/strategies.hpp"
#include "reports/tables.hpp"

namespace polyring {

struct FoundStrategy {
  Strategy strategy;
  StrategyParts parts;  // simulated
  StrategyMemory memory;
  /// What each stage of zero takes that the product can have: simulated, or in proportion to its price; 0:
  /// none fits.
  std::map<int, Seconds> zeros{};
};

struct BestStrategies {
  std::vector<FoundStrategy> best;  // the fastest first; no two of the same tensor x pipeline x expert
  int considered = 0;
  int fitting = 0;
  int simulated = 0;
};

/// All strategies that divide something and are worth a price on `gpus` GPUs: tensor by the divisors of a
/// host, or of an NVLink domain, that divide the heads, in its sequence-parallel form; pipeline by divisors
/// of the model's layers, in 1F1B order and interleaved; zero of each stage; expert by divisors of the
/// experts; replicas near or far; micro-batches of 1, 2, 4, … samples. Each recomputes as little as its
/// memory allows.
std::vector<Strategy> candidate_strategies(const ScalingCase& scaling, int gpus);

/// Those that fit are priced with collectives between two simulated sizes and pipelines by a closed form. The
/// cheapest, of more products than are wanted, are simulated in full and sorted by that, beside plain data
/// parallelism with the case's own buckets. Of each product tensor x pipeline x expert the fastest is shown.
/// Throws a usage Error where none fits, with the GPUs that a replica needs at least, and as model_strategy()
/// does.
BestStrategies best_strategies(const ScalingCase& scaling, const std::string& algorithm,
                               const PlanConstraints& constraints, const Cluster& cluster, int wanted = 5);

/// "computing 84 %, tensor collectives 9 %, bubble 5 %, gradients and weights 2 %; 61.2 of 80.0 GB".
std::string why(const FoundStrategy& found, Bytes memory);

/// The two parts of the step in which it differs most from `best`: "tensor collectives +7.6 %", of its step.
std::string behind(const FoundStrategy& found, const FoundStrategy& best);

/// Titles and notes begin so.
inline constexpr std::string_view kBestStrategies = "The best strategies on ";

/// A row for each: the strategy, its step time against the best one's, and why. The caption has `where`, as
/// "64 GPUs of dgx-h100 with nccl", and how many were considered.
Table table_of(const BestStrategies& found, const ScalingCase& scaling, std::string_view where);
/// The same as one sentence.
std::string text_of(const BestStrategies& found, const ScalingCase& scaling, std::string_view where);

}  // namespace polyring

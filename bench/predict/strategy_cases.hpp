// --strategy and the options beside it: for each strategy a case of the scaling table.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/cli/command_line.hpp"
#include "bench/cli/options.hpp"
#include "bench/predict/scaling.hpp"

namespace polyring {

/// What other options say.
struct StrategySettings {
  const PlanOptions& plan;
  bool own_buckets = false;  // --bucket or --overlap
  bool own_counts = false;   // --gpus
  bool no_overlap = false;   // --no-overlap
};

/// What --strategy best found: tables in the format of --format, with titles, and the same as notes.
struct FoundTables {
  std::string tables;
  std::vector<std::string> notes;
};

struct StrategyOptions {
  std::vector<std::string> strategies;  // factors, or `best`
  std::optional<int> micro_batches;
  bool unfused_attention = false;

  void add_to(Subcommand command);

  /// Whether some strategy is more than data parallelism.
  bool divide() const;

  /// For each strategy the same case, at the GPU counts that are asked for, or that it is for. `found` gets
  /// what is to be said of the best ones. Throws as parse_strategy() and best_strategies() do, and for
  /// options that contradict a strategy.
  std::vector<ScalingCase> cases(const ScalingCase& scaling, const std::string& algorithm,
                                 const StrategySettings& settings, FoundTables& found) const;
};

}  // namespace polyring

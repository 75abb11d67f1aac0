#include "bench/predict/strategy_cases.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "bench/cli/presentation.hpp"
#include "bench/predict/best_strategies.hpp"
#include "bench/predict/strategies.hpp"
#include "topology/resize.hpp"

namespace polyring {
namespace {

/// What --strategy takes in place of factors.
constexpr std::string_view kBest = "best";

/// Options that the best strategies choose themselves.
void refuse_choices_of_best(bool micro_batches, bool no_overlap) {
  if (micro_batches) usage_error("--strategy best chooses the micro-batches; leave --micro-batches out");
  if (no_overlap)
    usage_error("--strategy best chooses what overlaps the backward pass; leave --no-overlap out");
}

/// A pipeline's gradients leave after its last micro-batch with zero=1, too.
void refuse_no_overlap(const Strategy& strategy) {
  if (strategy.zero == 0 || (strategy.zero == 1 && strategy.pipeline > 1)) return;
  usage_error(
      "with zero gradients leave block by block during the backward pass; leave out --no-overlap, or zero");
}

/// The fastest strategies at each GPU count, and why.
void add_best(const ScalingCase& scaling, const std::string& algorithm, const StrategySettings& settings,
              std::vector<ScalingCase>& cases, FoundTables& tables) {
  for (const int gpus : scaling.gpus) {
    const ScalingCase at = with_share(scaling, gpus);
    const BestStrategies found = best_strategies(at, algorithm, settings.plan.constraints(algorithm),
                                                 with_ranks(scaling.machine, gpus));
    const std::string where = fmt::format("{} GPUs of {} with {}", gpus, scaling.name, algorithm);
    tables.notes.push_back(text_of(found, at, where));
    tables.tables += shown(table_of(found, at, where)) + "\n";
    for (const FoundStrategy& each : found.best) {
      cases.push_back(divided(scaling, each.strategy, false));
      cases.back().gpus = {gpus};
    }
  }
}

}  // namespace

void StrategyOptions::add_to(Subcommand command) {
  command
      .add_option(
          "--strategy", strategies,
          "How work is divided: data, zero, pipeline, tensor, sequence-parallel, expert and more, such as "
          "data=64,pipeline=4, with data of what GPUs are left; or best: the five fastest that fit the "
          "memory; may be repeated")
      .one_value_each_time()
      .type_name("NAME=N,…");
  command.add_option("--micro-batches", micro_batches, "Of a pipeline; by default 4 for each stage")
      .range(1, 1 << 20)
      .type_name("N");
  command.add_flag("--unfused-attention", unfused_attention,
                   "Attention matrices take up memory, as before FlashAttention (2022)");
}

bool StrategyOptions::divide() const {
  return std::any_of(strategies.begin(), strategies.end(), [](const std::string& text) {
    return text == kBest || !parse_strategy(text).is_plain();
  });
}

std::vector<ScalingCase> StrategyOptions::cases(const ScalingCase& scaling, const std::string& algorithm,
                                                const StrategySettings& settings, FoundTables& found) const {
  std::vector<ScalingCase> cases;
  for (const std::string& text : strategies) {
    if (text == kBest) {
      refuse_choices_of_best(micro_batches.has_value(), settings.no_overlap);
      add_best(scaling, algorithm, settings, cases, found);
      continue;
    }
    cases.push_back(divided(scaling, parse_strategy(text), settings.own_buckets));
    ScalingCase& at = cases.back();
    if (settings.no_overlap) refuse_no_overlap(*at.strategy);
    if (!settings.own_counts && at.strategy->replicas > 0) {
      const std::int64_t product = at.strategy->replica_gpus() * at.strategy->replicas;
      at.gpus = parse_counts(std::to_string(product), "the strategy's GPUs");
    }
  }
  const auto pipelined = [](const ScalingCase& at) { return at.strategy->pipeline > 1; };
  if (micro_batches && std::none_of(cases.begin(), cases.end(), pipelined))
    usage_error("--micro-batches are a pipeline's; give a --strategy with pipeline, or leave them out");
  if (cases.empty()) cases.push_back(scaling);
  return cases;
}

}  // namespace polyring

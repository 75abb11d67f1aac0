// Steps of strategies that split a replica over GPUs, share what is trained among replicas, or let replicas
// alone: each made of schedules and messages, simulated like the rest.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/predict/scaling.hpp"
#include "bench/predict/strategy_step.hpp"

namespace polyring {

/// A step of all GPUs of the cluster under a strategy whose factors multiply to their number, by schedules of
/// ours or by what `nccl` and `mpi` would choose: what StepModel is of data parallelism.
class StrategyModel {
 public:
  StrategyModel(const StrategyModel&) = delete;  // its parts refer to each other

  /// Throws a usage Error for what is not modelled together, and for a model that cannot be split so, or does
  /// not fit the GPUs' memory.
  StrategyModel(const ScalingCase& scaling, const Strategy& strategy, const std::string& algorithm,
                const PlanConstraints& constraints, const Cluster& cluster);

  const std::vector<CostRange>& ranges() const { return times_.ranges(); }
  /// With each cost in the middle of its range.
  ModelledStep step();
  /// Samples per second of all GPUs. Of pipelines of very many passes by their closed form, in proportion.
  double throughput(const StepCosts& costs);

 private:
  struct Timed {
    StepTime time;
    std::optional<double> bubble;
  };

  Timed time(const StepCosts& costs, bool rough = false);
  double samples() const;

  const ScalingCase& scaling_;
  Strategy strategy_;
  Cluster cluster_;
  Router router_;
  StrategyTimes times_;
  StrategyStep step_;
  bool long_ = false;
  std::optional<double> middle_;  // the simulated step over that of the closed form
};

/// StrategyModel::step().
ModelledStep model_strategy(const ScalingCase& scaling, const Strategy& strategy,
                            const std::string& algorithm, const PlanConstraints& constraints,
                            const Cluster& cluster);

/// How gradients are exchanged, as rows say it.
struct GradientExchange {
  std::string bucket;    // of --bucket; or "per-block", where each block's gradients leave by themselves
  bool overlap = false;  // beside the backward pass
};

/// What a step of this strategy does, whatever was asked for: zero's gradients leave block by block, and a
/// pipeline's after its last micro-batch, unless zero=2 or 3 exchanges them in every pass.
GradientExchange exchange_of(const ScalingCase& scaling, const Strategy& strategy);

/// Throws a usage Error for a strategy that cannot divide the model, the batch or the experts, and for one
/// that does not fit the GPUs' memory with all that strategy_memory() counts. The strategy's replicas are
/// counted.
void check_strategy(const ScalingCase& scaling, const Strategy& strategy);

/// The case with this strategy. The framework's buckets are those of data parallelism.
ScalingCase divided(const ScalingCase& scaling, const Strategy& strategy, bool own_buckets);

/// What is to be said below the table.
std::string note_of(const ScalingCase& scaling, const Strategy& strategy);

/// Of the machine's first GPU; 0: unknown.
Bytes gpu_memory(const ScalingCase& scaling);

/// "1F1B order, 16 micro-batches": of a pipeline.
std::string schedule_text(const Strategy& strategy, int micro_batches);

}  // namespace polyring

#include "bench/predict/strategies.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "base/error.hpp"

namespace polyring {
namespace {

/// Passes that take so long that the ends of ranges are priced by a closed form.
constexpr std::int64_t kMostPassesOften = 1 << 17;

Count shared(Count elements, int ranks) { return (elements + ranks - 1) / ranks; }

void refuse_contradictions(const ScalingCase& scaling, const Strategy& strategy) {
  const bool buckets = scaling.overlap || scaling.policy.kind != BucketPolicy::Kind::none;
  if (strategy.pipeline > 1 && buckets) {
    usage_error(
        "a pipeline's gradients are exchanged whole after its last micro-batch; leave out --overlap and "
        "--bucket, or the pipeline");
  }
  if (strategy.zero > 0 && buckets) {
    usage_error(
        "with zero gradients leave block by block during the backward pass; leave out --overlap and "
        "--bucket, "
        "or zero");
  }
  const bool alone = strategy.replica_gpus() == 1 && strategy.zero == 0 && strategy.expert == 1;
  if (!alone && scaling.conditions.jitter)
    usage_error("jitter is modelled for data and inter-model only; leave out --jitter, or the other factors");
}

/// One stage, all gradients at every replica, one micro-batch: as a data-parallel step in buckets, where each
/// pass takes its exchanges longer and a GPU has a share of each gradient.
bool in_buckets(const Strategy& strategy, int micro_batches) {
  return strategy.pipeline == 1 && strategy.zero == 0 && strategy.expert == 1 && micro_batches == 1 &&
         strategy.recompute == Recompute::none;
}

StepTime run_in_buckets(const ScalingCase& scaling, const Strategy& strategy, StrategyStep& step,
                        const StrategyParts& parts, int ranks) {
  const Seconds exchanged = 0.5 * parts.tensor;
  const double factor = step.computing();
  CalmStep calm{{factor * scaling.compute.forward + exchanged, factor * scaling.compute.backward + exchanged,
                 factor * scaling.compute.optimizer + step.copies()},
                make_buckets(scaling.model, scaling.policy, size_of(scaling.kind)),
                scaling.overlap,
                {},
                step.interplay()};
  if (strategy.independent) calm.buckets.clear();
  for (Bucket& bucket : calm.buckets) bucket.elements = shared(bucket.elements, strategy.intra);
  calm.step = run_step(
      calm.compute, calm.buckets, calm.overlap,
      [&](std::size_t i) { return step.sent(step.gradients(), calm.buckets[i].elements); }, calm.interplay);
  // Trials do not wait for each other's stragglers.
  StepTime time = with_stragglers(scaling.conditions, calm, strategy.independent ? 1 : ranks);
  time.exposed = time.exposed + parts.tensor;
  return time;
}

/// The slowest of the sends forward from one stage to the next.
Simulation slowest_send(const Strategy& strategy, const StrategyStep& step, StrategyTimes& times) {
  Simulation slowest = times.send(strategy, 0, true, step.sent_bytes(0));
  for (int boundary = 1; boundary + 1 < strategy.pipeline; ++boundary) {
    const Simulation other = times.send(strategy, boundary, true, step.sent_bytes(boundary));
    if (slowest.time < other.time) slowest = other;
  }
  return slowest;
}

/// Of the largest collective of each kind, and of what the stages of a pipeline send.
std::string bottlenecks(const Strategy& strategy, const StrategyStep& step, StrategyTimes& times,
                        const Router& router) {
  const StrategyCounts& counts = step.counts();
  std::vector<std::string> all;
  if (strategy.replicas > 1 && !strategy.independent) {
    const bool whole = strategy.zero == 0 || (strategy.zero == 1 && strategy.pipeline > 1);
    all.push_back("gradients: " +
                  times.bottleneck(step.gradients(), whole ? counts.gradients : counts.block));
  }
  if (strategy.intra > 1)
    all.push_back("activations: " + times.bottleneck(step.activations(), counts.exchange));
  if (strategy.expert > 1) all.push_back("experts: " + times.bottleneck(step.tokens(), counts.dispatch));
  if (strategy.pipeline > 1)
    all.push_back("stages: " + bottleneck_text(slowest_send(strategy, step, times), router));
  return all.empty() ? "nothing is sent" : fmt::format("{}", fmt::join(all, "; "));
}

}  // namespace

ScalingCase divided(const ScalingCase& scaling, const Strategy& strategy, bool own_buckets) {
  ScalingCase result = scaling;
  result.strategy = strategy;
  if (strategy.is_plain()) return result;
  // What divides a model calls NCCL or MPI itself.
  if (result.framework != nullptr && !result.framework_stated) result.framework = &find_framework("ddp");
  if (own_buckets) return result;
  result.policy = {};
  result.overlap = false;
  return result;
}

Bytes gpu_memory(const ScalingCase& scaling) {
  const Machine& host = scaling.machine.host(0);
  return host.gpus.empty() ? Bytes{} : host.gpus.front().memory;
}

GradientExchange exchange_of(const ScalingCase& scaling, const Strategy& strategy) {
  if (strategy.independent || in_buckets(strategy, micro_batches_of(scaling, strategy)))
    return {to_text(scaling.policy), scaling.overlap};
  const bool by_block = strategy.pipeline > 1 ? strategy.zero >= 2 : strategy.zero >= 1 || scaling.overlap;
  return by_block ? GradientExchange{"per-block", true} : GradientExchange{"none", false};
}

void check_strategy(const ScalingCase& scaling, const Strategy& strategy) {
  check_division(scaling.model, strategy);
  const std::vector<StageBlocks> stages = balanced_stages(scaling.model, strategy.virtual_stages());
  const TrainingState training = training_of(scaling, strategy);
  check_fits(scaling.model, strategy, strategy_memory(scaling.model, strategy, stages, training), training,
             scaling.machine.host(0).ranks(), gpu_memory(scaling));
}

StrategyModel::StrategyModel(const ScalingCase& scaling, const Strategy& strategy,
                             const std::string& algorithm, const PlanConstraints& constraints,
                             const Cluster& cluster)
    : scaling_((refuse_contradictions(scaling, strategy), check_strategy(scaling, strategy), scaling)),
      strategy_(strategy),
      cluster_(cluster),
      router_(cluster_),
      times_(scaling_, algorithm, constraints, cluster_, router_, StrategyTimes::Detail::simulated),
      step_(scaling_, strategy_, times_) {
  long_ = std::int64_t{step_.micro_batches()} * strategy.virtual_stages() > kMostPassesOften;
}

StrategyModel::Timed StrategyModel::time(const StepCosts& costs, bool rough) {
  const StrategyParts parts = step_.run(costs, rough);
  Timed result;
  if (in_buckets(strategy_, step_.micro_batches())) {
    result.time = run_in_buckets(scaling_, strategy_, step_, parts, cluster_.ranks());
  } else {
    result.time.total = parts.total;
    result.time.exposed = parts.tensor + parts.expert + parts.data;
    if (strategy_.pipeline > 1) result.bubble = parts.bubble.value / parts.total.value;
  }
  const Limit limit = result.time.exposed > scaling_.compute.total() ? Limit::network : Limit::compute;
  add_feed(scaling_.conditions, result.time, limit, samples(),
           std::min(cluster_.host_count(), strategy_.replicas));
  return result;
}

double StrategyModel::samples() const { return static_cast<double>(cluster_.ranks()) * scaling_.batch; }

ModelledStep StrategyModel::step() {
  const Timed timed = time(middle_of(ranges()));
  ModelledStep result;
  result.nodes = cluster_.host_count();
  result.plan = times_.plan_of(step_.gradients());
  result.time = timed.time;
  result.bubble = timed.bubble;
  result.bottleneck = bottlenecks(strategy_, step_, times_, router_);
  return result;
}

double StrategyModel::throughput(const StepCosts& costs) {
  if (!long_) return samples() / time(costs).time.total.value;
  const StepCosts middle = middle_of(ranges());
  if (!middle_) middle_ = time(middle).time.total.value / time(middle, true).time.total.value;
  return samples() / (*middle_ * time(costs, true).time.total.value);
}

ModelledStep model_strategy(const ScalingCase& scaling, const Strategy& strategy,
                            const std::string& algorithm, const PlanConstraints& constraints,
                            const Cluster& cluster) {
  return StrategyModel(scaling, strategy, algorithm, constraints, cluster).step();
}

std::string schedule_text(const Strategy& strategy, int micro_batches) {
  const std::string order = strategy.order == PipelineOrder::gpipe ? "GPipe's order"
                            : strategy.chunks == 1
                                ? "1F1B order"
                                : fmt::format("{} interleaved chunks a stage", strategy.chunks);
  return fmt::format("{} micro-batches in {}", micro_batches, order);
}

std::string note_of(const ScalingCase& scaling, const Strategy& strategy) {
  const TrainingState training = training_of(scaling, strategy);
  const StrategyMemory need = strategy_memory(
      scaling.model, strategy, balanced_stages(scaling.model, strategy.virtual_stages()), training);
  TrainingState alone = training;
  alone.samples = alone.micro_batches = 1;
  const bool whole_fits = fits(plain_memory(scaling.model, alone), gpu_memory(scaling));
  std::string text =
      fmt::format("Strategy {}: {} on the GPU that needs most", to_text(strategy), to_text(need));
  if (strategy.pipeline > 1) {
    text += ", " + schedule_text(strategy, training.micro_batches);
  } else if (training.micro_batches > 1) {
    text += fmt::format(", {} micro-batches one after another", training.micro_batches);
  } else if (strategy.is_plain() && training.samples < scaling.batch) {
    text += fmt::format(", the batch of {} in parts of at most {:.0f}", scaling.batch, training.samples);
  }
  if (!whole_fits) text += "; speedup is over GPUs with memory for the whole model, which these do not have";
  return text + ".";
}

}  // namespace polyring

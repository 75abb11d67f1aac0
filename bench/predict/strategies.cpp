#include "bench/predict/strategies.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/error.hpp"
#include "models/pipeline.hpp"
#include "simulation/group_allreduce.hpp"
#include "simulation/messages.hpp"

namespace polyring {
namespace {

Count shared(Count elements, int ranks) { return (elements + ranks - 1) / ranks; }

/// What one step is made of.
struct Parts {
  const ScalingCase& scaling;
  const Strategy& strategy;
  const Cluster& cluster;
  const Router& router;
  int element_size;
  std::vector<StageBlocks> stages;
  int micro_batches;
  double samples;       // in a micro-batch of a replica
  double slowness = 1;  // all that is sent takes so many times as long as modelled
};

Count activations(const Parts& parts, std::int64_t of_sample) {
  return static_cast<Count>(std::ceil(parts.samples * static_cast<double>(of_sample)));
}

/// The allreduces of a stage's activations in one pass of a micro-batch.
Seconds exchanges(const Parts& parts, const StageBlocks& stage, GroupAllreduce& allreduce) {
  Seconds sum;
  for (std::size_t block = stage.first; block < stage.first + stage.count; ++block) {
    for (const std::int64_t elements : parts.scaling.model.blocks[block].exchanges)
      sum = sum + allreduce.time(activations(parts, elements));
  }
  return parts.slowness * sum;
}

/// One tensor from every rank of a stage to its counterpart in the next, or back, in all replicas at once.
Simulation send(const Parts& parts, int stage, bool forward) {
  const double bytes =
      static_cast<double>(parts.element_size) *
      static_cast<double>(activations(parts, parts.stages[static_cast<std::size_t>(stage)].activations));
  const int intra = parts.strategy.intra;
  const int replica_gpus = static_cast<int>(parts.strategy.replica_gpus());
  std::vector<Message> messages;
  for (int replica = 0; replica < parts.strategy.replicas; ++replica) {
    for (int split = 0; split < intra; ++split) {
      const int from = replica * replica_gpus + stage * intra + split;
      messages.push_back(forward ? Message{from, from + intra, bytes} : Message{from + intra, from, bytes});
    }
  }
  return simulate(messages, parts.cluster, parts.router, parts.scaling.conditions.costs);
}

PipelineStep run_stages(const Parts& parts, GroupAllreduce& of_activations) {
  const Model& model = parts.scaling.model;
  const StepCompute& compute = parts.scaling.compute;
  // Of the computing time of the batch of one GPU.
  const double part = parts.samples / parts.scaling.batch / parts.strategy.intra;
  std::vector<PipelineStage> stages;
  for (const StageBlocks& stage : parts.stages) {
    const Seconds exchanged = exchanges(parts, stage, of_activations);
    const double forward = part * stage.forward_flops / model.forward_flops_per_sample;
    const double backward = part * stage.backward_flops / model.backward_flops_per_sample();
    stages.push_back(
        {forward * compute.forward + exchanged, backward * compute.backward + exchanged, {}, {}});
  }
  for (int boundary = 0; boundary + 1 < parts.strategy.pipeline; ++boundary) {
    stages[static_cast<std::size_t>(boundary)].send_forward =
        parts.slowness * send(parts, boundary, true).time;
    stages[static_cast<std::size_t>(boundary) + 1].send_backward =
        parts.slowness * send(parts, boundary, false).time;
  }
  return run_pipeline(stages, parts.micro_batches);
}

Count largest_exchange(const Parts& parts) {
  std::int64_t largest = 0;
  for (const Block& block : parts.scaling.model.blocks) {
    for (const std::int64_t elements : block.exchanges) largest = std::max(largest, elements);
  }
  return activations(parts, largest);
}

int micro_batches_of(const ScalingCase& scaling, const Strategy& strategy) {
  if (strategy.pipeline == 1) return 1;
  const std::int64_t samples = scaling.batch * strategy.replica_gpus();
  // GPipe: the bubble is negligible with four micro-batches for each stage (section 2.3).
  if (!scaling.micro_batches) return static_cast<int>(std::min<std::int64_t>(4 * strategy.pipeline, samples));
  if (*scaling.micro_batches > samples) {
    usage_error(
        "{} micro-batches need as many samples, and a replica has {} (batch {} on {} GPUs); use fewer",
        *scaling.micro_batches, samples, scaling.batch, strategy.replica_gpus());
  }
  return *scaling.micro_batches;
}

void refuse_contradictions(const ScalingCase& scaling, const Strategy& strategy) {
  const bool buckets = scaling.overlap || scaling.policy.kind != BucketPolicy::Kind::none;
  if (strategy.pipeline > 1 && buckets) {
    usage_error(
        "a pipeline's gradients are exchanged whole after its last micro-batch; leave out --overlap and "
        "--bucket, or the pipeline");
  }
  if (strategy.replica_gpus() > 1 && scaling.conditions.jitter)
    usage_error("jitter is modelled for data and inter-model only; leave out --jitter, or the other factors");
  const auto& blocks = scaling.model.blocks;
  const auto cannot = [](const Block& block) { return block.exchanges.empty(); };
  if (strategy.intra > 1 && std::all_of(blocks.begin(), blocks.end(), cannot)) {
    usage_error(
        "how the layers of {} are split over ranks is not known; use intra-model with bert-large, "
        "gpt2-small or gpt2-xl",
        scaling.model.name);
  }
}

/// Without a pipeline: as a data-parallel step, but that each pass takes its exchanges longer and a GPU has a
/// share of each gradient.
StepTime one_stage(const Parts& parts, GroupAllreduce& of_activations, GroupAllreduce& of_gradients) {
  const ScalingCase& scaling = parts.scaling;
  const Seconds exchanged = exchanges(parts, parts.stages.front(), of_activations);
  CalmStep calm{
      {scaling.compute.forward + exchanged, scaling.compute.backward + exchanged, scaling.compute.optimizer},
      make_buckets(scaling.model, scaling.policy, parts.element_size),
      scaling.overlap,
      {}};
  if (parts.strategy.independent) calm.buckets.clear();
  for (Bucket& bucket : calm.buckets) bucket.elements = shared(bucket.elements, parts.strategy.intra);
  calm.step = run_step(calm.compute, calm.buckets, calm.overlap, [&](std::size_t i) {
    return parts.slowness * of_gradients.time(calm.buckets[i].elements);
  });
  // Trials do not wait for each other's stragglers.
  StepTime time =
      with_stragglers(scaling.conditions, calm, parts.strategy.independent ? 1 : parts.cluster.ranks());
  time.exposed = time.exposed + 2 * exchanged;
  return time;
}

struct StrategyStep {
  StepTime time;
  std::optional<double> bubble;
};

StrategyStep run_strategy(const Parts& parts, GroupAllreduce& of_activations, GroupAllreduce& of_gradients,
                          Count gradients) {
  StrategyStep step;
  if (parts.strategy.pipeline == 1) {
    step.time = one_stage(parts, of_activations, of_gradients);
    return step;
  }
  const PipelineStep run = run_stages(parts, of_activations);
  step.time.total = run.total + parts.slowness * of_gradients.time(gradients);
  const Seconds waited = run.bubble * run.total;
  step.bubble = waited.value / step.time.total.value;
  // The difference of large numbers: nothing exposed may come out as less than that.
  step.time.exposed = std::max(Seconds{}, step.time.total - parts.scaling.compute.total() - waited);
  return step;
}

/// That which takes longest of the sends forward from one stage to the next.
Simulation slowest_send(const Parts& parts) {
  Simulation slowest = send(parts, 0, true);
  for (int boundary = 1; boundary + 1 < parts.strategy.pipeline; ++boundary) {
    const Simulation other = send(parts, boundary, true);
    if (slowest.time < other.time) slowest = other;
  }
  return slowest;
}

/// Of the largest allreduce of each kind, and of what the stages of a pipeline send.
std::string bottlenecks(const Parts& parts, GroupAllreduce& of_activations, GroupAllreduce& of_gradients,
                        Count gradients) {
  std::vector<std::string> all;
  if (parts.strategy.replicas > 1 && !parts.strategy.independent)
    all.push_back("gradients: " + bottleneck_text(of_gradients.run(gradients), parts.router));
  if (parts.strategy.intra > 1) {
    all.push_back("activations: " +
                  bottleneck_text(of_activations.run(largest_exchange(parts)), parts.router));
  }
  if (parts.strategy.pipeline > 1)
    all.push_back("stages: " + bottleneck_text(slowest_send(parts), parts.router));
  return all.empty() ? "nothing is sent" : fmt::format("{}", fmt::join(all, "; "));
}

}  // namespace

ModelledStep model_strategy(const ScalingCase& scaling, const Strategy& strategy,
                            const std::string& algorithm, const PlanConstraints& constraints,
                            const Cluster& cluster) {
  refuse_contradictions(scaling, strategy);
  const Router router(cluster);
  const int size = size_of(scaling.kind);
  const int replica_gpus = static_cast<int>(strategy.replica_gpus());
  const int micro_batches = micro_batches_of(scaling, strategy);
  Parts parts{scaling,       strategy,
              cluster,       router,
              size,          balanced_stages(scaling.model, strategy.pipeline),
              micro_batches, static_cast<double>(scaling.batch) * replica_gpus / micro_batches};
  Count gradients = 0;
  for (const StageBlocks& stage : parts.stages)
    gradients = std::max(gradients, shared(stage.parameters, strategy.intra));
  PlanConstraints of_groups = constraints;  // dimensions are those of the gradients' groups
  of_groups.dims.clear();
  of_groups.patterns.clear();
  const SimulationOptions options{.costs = scaling.conditions.costs};
  GroupAllreduce of_activations(cluster, router, algorithm, of_groups,
                                ElementSizes(scaling.kind, ReduceOp::sum, scaling.partials), strategy.intra,
                                1, largest_exchange(parts), options);
  GroupAllreduce of_gradients(cluster, router, algorithm, constraints,
                              ElementSizes(scaling.kind, ReduceOp::avg, scaling.partials),
                              strategy.independent ? 1 : strategy.replicas, replica_gpus, gradients, options);

  ModelledStep result;
  result.nodes = cluster.host_count();
  result.plan = of_gradients.plan();
  const auto step_with = [&](double slowness) {
    parts.slowness = slowness;
    return run_strategy(parts, of_activations, of_gradients, gradients);
  };
  StrategyStep step = step_with(1);
  if (scaling.spread) {
    const double total = step.time.total.value;
    result.least = total / step_with(1 + *scaling.spread).time.total.value;
    result.most = total / step_with(1 / (1 + *scaling.spread)).time.total.value;
  }
  result.time = step.time;
  result.bubble = step.bubble;
  result.bottleneck = bottlenecks(parts, of_activations, of_gradients, gradients);
  const Limit limit = result.time.exposed > scaling.compute.total() ? Limit::network : Limit::compute;
  add_feed(scaling.conditions, result.time, limit, static_cast<double>(cluster.ranks()) * scaling.batch,
           std::min(result.nodes, strategy.replicas));
  return result;
}

std::string note_of(const ScalingCase& scaling, const Strategy& strategy) {
  const Bytes memory = scaling.machine.host(0).gpus.front().memory;
  const bool whole_fits =
      memory.value == 0 || trained_parameters(balanced_stages(scaling.model, 1), 1) <= memory;
  std::string text = fmt::format(
      "Strategy {}: {:.2f} GB of parameters, gradients and optimizer state on a GPU ({} bytes a parameter)",
      to_text(strategy),
      static_cast<double>(
          trained_parameters(balanced_stages(scaling.model, strategy.pipeline), strategy.intra).value) /
          1e9,
      kBytesPerTrainedParameter);
  if (strategy.pipeline > 1)
    text += fmt::format(", {} micro-batches in GPipe's order", micro_batches_of(scaling, strategy));
  if (!whole_fits)
    text += "; speedup is over one host whose GPUs would hold the whole model, which these do not";
  return text + ".";
}

}  // namespace polyring

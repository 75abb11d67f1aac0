#include "bench/predict/strategy_step.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.hpp"
#include "models/jitter.hpp"

namespace polyring {

namespace {

/// Of all ranks, in one direction: more take seconds and gigabytes.
constexpr std::int64_t kMostPasses = std::int64_t{1} << 22;

std::int64_t samples_of_replica(const ScalingCase& scaling, const Strategy& strategy) {
  return scaling.batch * strategy.replica_gpus();
}

[[noreturn]] void refuse_micro_batches(const ScalingCase& scaling, const Strategy& strategy,
                                       std::int64_t micro_batches, const char* why) {
  usage_error("{} micro-batches {}, and a replica has {} (batch {} on {} GPUs); use {}", micro_batches, why,
              samples_of_replica(scaling, strategy), scaling.batch, strategy.replica_gpus(),
              micro_batches > samples_of_replica(scaling, strategy) ? "fewer" : "a divisor");
}

bool interleaves(const Strategy& strategy) { return strategy.chunks > 1; }

/// The most that divide the samples, up to four for each stage; with interleaved stages a multiple of these.
int usual_micro_batches(const ScalingCase& scaling, const Strategy& strategy) {
  const std::int64_t samples = samples_of_replica(scaling, strategy);
  const int step = interleaves(strategy) ? strategy.pipeline : 1;
  std::int64_t number = std::min<std::int64_t>(4 * strategy.pipeline, samples) / step * step;
  while (number > step && samples % number != 0) number -= step;
  return static_cast<int>(std::max<std::int64_t>(number, 1));
}

}  // namespace

int micro_batches_of(const ScalingCase& scaling, const Strategy& strategy) {
  const std::int64_t samples = samples_of_replica(scaling, strategy);
  std::int64_t number = 1;
  if (strategy.micro_batch > 0) {
    if (samples % strategy.micro_batch != 0) {
      usage_error(
          "micro-batch={} does not divide the {} samples of a replica (batch {} on {} GPUs); use a divisor",
          strategy.micro_batch, samples, scaling.batch, strategy.replica_gpus());
    }
    number = samples / strategy.micro_batch;
  } else if (strategy.pipeline > 1) {
    number = scaling.micro_batches.value_or(usual_micro_batches(scaling, strategy));
  }
  if (number > samples) refuse_micro_batches(scaling, strategy, number, "need as many samples");
  if (samples % number != 0) refuse_micro_batches(scaling, strategy, number, "do not divide its samples");
  if (number * strategy.virtual_stages() > kMostPasses) {
    usage_error(
        "{} micro-batches through {} stages are more than the {} passes that can be modelled; use larger "
        "micro-batches",
        number, strategy.virtual_stages(), kMostPasses);
  }
  if (interleaves(strategy) && number % strategy.pipeline != 0) {
    usage_error(
        "interleaved stages take micro-batches by {}, and there are {}; change micro-batch, or the batch",
        strategy.pipeline, number);
  }
  return static_cast<int>(number);
}

TrainingState training_of(const ScalingCase& scaling, const Strategy& strategy) {
  const int size = size_of(scaling.kind);
  const Precision precision = scaling.precision.value_or(size >= 4 ? Precision::single : Precision::mixed);
  const int micro_batches = micro_batches_of(scaling, strategy);
  double samples = static_cast<double>(samples_of_replica(scaling, strategy)) / micro_batches;
  if (strategy.is_plain() && scaling.at_once) samples = std::min<double>(samples, *scaling.at_once);
  return training_state(precision, std::min(size, 4), scaling.attention, samples, micro_batches);
}

StrategyStep::StrategyStep(const ScalingCase& scaling, const Strategy& strategy, StrategyTimes& times)
    : StrategyStep(scaling, strategy, times, balanced_stages(scaling.model, strategy.virtual_stages())) {}

StrategyStep::StrategyStep(const ScalingCase& scaling, const Strategy& strategy, StrategyTimes& times,
                           std::vector<StageBlocks> stages)
    : scaling_(scaling), strategy_(strategy), times_(times), stages_(std::move(stages)) {
  check_division(scaling.model, strategy);
  training_ = training_of(scaling, strategy);
  micro_batches_ = training_.micro_batches;
  count();
}

StrategyMemory StrategyStep::memory() const {
  return strategy_memory(scaling_.model, strategy_, stages_, training_);
}

GroupCall StrategyStep::gradients() const {
  return {data_groups(strategy_), SentData::gradients,
          strategy_.zero == 0 ? Collective::allreduce : Collective::reduce_scatter};
}

GroupCall StrategyStep::activations() const {
  return {tensor_groups(strategy_), SentData::activations,
          strategy_.sequence ? Collective::reduce_scatter : Collective::allreduce};
}

GroupCall StrategyStep::tokens() const {
  return {expert_groups(strategy_), SentData::activations, Collective::alltoall};
}

Count StrategyStep::samples(std::int64_t of_each) const {
  return static_cast<Count>(std::ceil(training_.samples * static_cast<double>(of_each)));
}

Count StrategyStep::share(std::int64_t parameters) const {
  return (parameters + strategy_.intra - 1) / strategy_.intra;
}

Count StrategyStep::expert_share(const Block& block) const {
  return share((block.experts.parameters + strategy_.expert - 1) / strategy_.expert);
}

double StrategyStep::sent_bytes(int stage) const {
  const Count elements = samples(stages_[static_cast<std::size_t>(stage)].activations);
  const int parts = strategy_.sequence ? strategy_.intra : 1;
  return static_cast<double>(size_of(scaling_.kind)) * std::ceil(static_cast<double>(elements) / parts);
}

/// Of the rank that has most.
void StrategyStep::count() {
  for (int rank = 0; rank < strategy_.pipeline; ++rank) {
    std::int64_t dense = 0;
    Count experts = 0;
    for (std::size_t stage = static_cast<std::size_t>(rank); stage < stages_.size();
         stage += static_cast<std::size_t>(strategy_.pipeline)) {
      for (std::size_t i = stages_[stage].first; i < stages_[stage].first + stages_[stage].count; ++i) {
        const Block& block = scaling_.model.blocks[i];
        dense += block.parameters - block.experts.parameters;
        experts += expert_share(block);
        counts_.block = std::max(counts_.block, share(block.parameters - block.experts.parameters));
        counts_.expert_block = std::max(counts_.expert_block, expert_share(block));
        for (const std::int64_t elements : block.exchanges)
          counts_.exchange = std::max(counts_.exchange, samples(elements));
        counts_.dispatch = std::max(counts_.dispatch, samples(block.experts.sent));
      }
    }
    if (share(dense) + experts < counts_.gradients) continue;
    counts_.gradients = share(dense) + experts;
    counts_.of_experts = experts;
  }
  if (strategy_.sequence) counts_.dispatch = (counts_.dispatch + strategy_.intra - 1) / strategy_.intra;
}

void StrategyStep::plan() {
  const bool by_block = strategy_.zero >= 2 || (strategy_.pipeline == 1 && strategy_.zero >= 1);
  const auto plan_both = [&](Collective collective, bool block) {
    const Count dense = block ? counts_.block : counts_.gradients - counts_.of_experts;
    const Count experts = block ? counts_.expert_block : counts_.of_experts;
    const RankGroups copies = expert_copies(strategy_);
    const bool same_ranks = copies == data_groups(strategy_);
    times_.plan({data_groups(strategy_), SentData::gradients, collective},
                same_ranks ? std::max(dense, experts) : dense);
    if (!same_ranks && experts > 0) times_.plan({copies, SentData::gradients, collective}, experts);
  };
  plan_both(gradients().collective, by_block);
  if (strategy_.zero >= 1) plan_both(Collective::allgather, strategy_.zero >= 3);
  GroupCall call = activations();
  if (strategy_.intra > 1) times_.plan(call, counts_.exchange);
  call.collective = Collective::allgather;
  if (strategy_.sequence) times_.plan(call, counts_.exchange);
  if (strategy_.expert > 1) times_.plan(tokens(), counts_.dispatch);
}

/// Of one pass of a micro-batch: after each half of a layer.
Seconds StrategyStep::exchanges(const Block& block) {
  GroupCall call = activations();
  Seconds sum;
  if (strategy_.intra == 1) return sum;
  const Seconds launch{costs_.call_s};
  for (const std::int64_t elements : block.exchanges) {
    sum = sum + launch + sent(call, samples(elements));
    if (!strategy_.sequence) continue;
    GroupCall gather = call;
    gather.collective = Collective::allgather;
    sum = sum + launch + sent(gather, samples(elements));
  }
  return sum;
}

/// Of one pass: tokens go to their experts, and come back.
Seconds StrategyStep::alltoalls(const Block& block) {
  if (block.experts.sent == 0 || strategy_.expert == 1) return {};
  const int parts = strategy_.sequence ? strategy_.intra : 1;
  const Count count = (samples(block.experts.sent) + parts - 1) / parts;
  return 2.0 * (Seconds{costs_.call_s} + sent(tokens(), count));
}

Seconds StrategyStep::over_replicas(Collective collective, Count dense, Count experts) {
  return sent({data_groups(strategy_), SentData::gradients, collective}, dense) +
         sent({expert_copies(strategy_), SentData::gradients, collective}, experts);
}

Seconds StrategyStep::sent(const GroupCall& call, Count count) {
  const Seconds simulated = times_.time(call, count);
  if (simulated.value == 0) return simulated;
  // The halves of an allreduce have half of its steps each.
  const double ramp = (call.collective == Collective::allreduce ? 1 : 0.5) * costs_.ramp_s;
  return Seconds{ramp} + times_.stretch(call.groups, costs_) * simulated;
}

double StrategyStep::computing() const {
  if (costs_.variation == 0) return costs_.computing;
  const std::int64_t waiting = strategy_.replica_gpus() * (strategy_.independent ? 1 : strategy_.replicas);
  return costs_.computing * slowest_quantile(costs_.variation, static_cast<int>(waiting), 0.5);
}

StrategyStep::BlockParts StrategyStep::parts_of(const Block& block) {
  const Model& model = scaling_.model;
  const StepCompute& compute = scaling_.compute;
  // Of the computing time of the batch of one GPU.
  const double part = computing() * training_.samples / scaling_.batch / strategy_.intra;
  const Seconds forward = part * block.forward_flops / model.forward_flops_per_sample * compute.forward;
  const Seconds backward = part * block.backward_flops / model.backward_flops_per_sample() * compute.backward;
  BlockParts parts;
  parts.compute = forward + backward;
  parts.recompute =
      part * recomputed_flops(block, strategy_.recompute) / model.forward_flops_per_sample * compute.forward;
  const Seconds exchanged = exchanges(block);
  const Seconds dispatched = alltoalls(block);
  const double passes = strategy_.recompute == Recompute::full ? 3 : 2;
  parts.tensor = passes * exchanged;
  parts.expert = passes * dispatched;
  parts.times.forward = forward + exchanged + dispatched;
  parts.times.backward = backward + parts.recompute + (passes - 1) * (exchanged + dispatched);
  const Count dense = share(block.parameters - block.experts.parameters);
  const Count experts = expert_share(block);
  const bool leave = strategy_.zero >= 1 || scaling_.overlap;
  if (strategy_.zero >= 3) parts.times.gather = over_replicas(Collective::allgather, dense, experts);
  if (leave && !strategy_.independent)
    parts.times.reduce = over_replicas(gradients().collective, dense, experts);
  return parts;
}

/// Most blocks of a model are equal.
void StrategyStep::time_blocks() {
  const std::vector<Block>& blocks = scaling_.model.blocks;
  const auto equal = [](const Block& a, const Block& b) {
    return a.forward_flops == b.forward_flops && a.backward_flops == b.backward_flops &&
           a.parameters == b.parameters && a.exchanges == b.exchanges &&
           a.experts.parameters == b.experts.parameters && a.experts.sent == b.experts.sent &&
           a.attention_flops == b.attention_flops;
  };
  blocks_.clear();
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (i > 0 && equal(blocks[i - 1], blocks[i])) {
      blocks_.push_back(blocks_.back());
    } else {
      blocks_.push_back(parts_of(blocks[i]));
    }
  }
}

std::vector<BlockTimes> StrategyStep::times_of(const StageBlocks& stage, bool with_data) const {
  std::vector<BlockTimes> times;
  for (std::size_t i = stage.first; i < stage.first + stage.count; ++i) {
    times.push_back(blocks_[i].times);
    if (!with_data) times.back().gather = times.back().reduce = {};
  }
  return times;
}

/// Replicas that are whole copy their gradients as DDP does; split ones have them where they are reduced.
Seconds StrategyStep::copies() const {
  const bool whole = strategy_.replica_gpus() == 1 && strategy_.replicas > 1 && !strategy_.independent;
  return whole ? copies_of(scaling_, costs_) : Seconds{};
}

/// Each rank updates the weights that it owns.
Seconds StrategyStep::optimizer() const {
  const int owners = strategy_.zero >= 1 ? strategy_.replicas : 1;
  return copies() +
         computing() / (static_cast<double>(strategy_.replica_gpus()) * owners) * scaling_.compute.optimizer;
}

/// What is exchanged among replicas when all passes are over: gradients that have not left, and with zero=1
/// and 2 the weights that each replica has updated.
Seconds StrategyStep::after_backward() {
  if (strategy_.independent) return {};
  const Count dense = counts_.gradients - counts_.of_experts;
  const bool left = strategy_.pipeline == 1 ? strategy_.zero >= 1 || scaling_.overlap : strategy_.zero >= 2;
  Seconds sum;
  if (strategy_.replicas == 1) return sum;
  const Seconds launch{costs_.launch_s};
  if (!left) sum = sum + launch + over_replicas(gradients().collective, dense, counts_.of_experts);
  if (strategy_.zero == 1 || strategy_.zero == 2)
    sum = sum + launch + over_replicas(Collective::allgather, dense, counts_.of_experts);
  return sum;
}

void StrategyStep::run_alone(StrategyParts& parts) {
  const BlockStep step =
      run_blocks(times_of(stages_.front(), true), micro_batches_, strategy_.zero >= 2, interplay());
  parts.compute = parts.compute + step.slowed;
  parts.data = step.total - step.computed + after_backward();
  parts.total = step.total + after_backward() + optimizer();
}

/// As run_pipeline() has it for equal stages; where they differ, the slowest rank sets the pace. So does a
/// link that is slower than the ranks.
Seconds StrategyStep::rough_pipeline(const std::vector<PipelineStage>& stages) const {
  const int ranks = strategy_.pipeline;
  std::vector<double> of_rank(static_cast<std::size_t>(ranks));
  double all = 0;
  double sends = 0;
  double slowest_send = 0;
  for (std::size_t k = 0; k < stages.size(); ++k) {
    const double work = (stages[k].forward + stages[k].backward).value;
    of_rank[k % of_rank.size()] += work;
    all += work;
    if (k + 1 < of_rank.size()) sends += 2 * stages[k].send_forward.value;
    slowest_send = std::max(slowest_send, stages[k].send_forward.value);
  }
  const double slowest =
      std::max(*std::max_element(of_rank.begin(), of_rank.end()), strategy_.chunks * slowest_send);
  return {(micro_batches_ - 1.0 / strategy_.chunks) * slowest + all / strategy_.chunks + sends};
}

void StrategyStep::run_pipelined(StrategyParts& parts, bool rough) {
  const bool in_passes = strategy_.zero >= 2;
  std::vector<PipelineStage> stages;
  Seconds slowed;
  Seconds waiting;  // of a micro-batch for weights and gradients, on all ranks together
  for (int k = 0; k < strategy_.virtual_stages(); ++k) {
    const std::vector<BlockTimes> blocks = times_of(stages_[static_cast<std::size_t>(k)], in_passes);
    BlockTimeline forward(blocks, interplay());
    forward.forward();
    BlockTimeline backward(blocks, interplay());
    backward.backward(in_passes);
    slowed = slowed + forward.slowed() + backward.slowed();
    stages.push_back({forward.end(), backward.end(), {}, {}});
    waiting = waiting + (forward.end() - forward.computed()) + (backward.end() - backward.computed());
  }
  const double stretch = times_.stretch({strategy_.pipeline, stage_stride(strategy_)}, costs_);
  const auto send = [&](int boundary, bool forward) {
    return Seconds{costs_.call_s} +
           stretch * times_.send_time(strategy_, boundary, forward, sent_bytes(boundary));
  };
  for (int k = 0; k + 1 < strategy_.virtual_stages(); ++k) {
    stages[static_cast<std::size_t>(k)].send_forward = send(k, true);
    stages[static_cast<std::size_t>(k) + 1].send_backward = send(k, false);
  }
  Seconds busy;
  for (const PipelineStage& stage : stages) busy = busy + stage.forward + stage.backward;
  busy = static_cast<double>(micro_batches_) / strategy_.pipeline * busy;
  const Seconds total = rough
                            ? rough_pipeline(stages)
                            : run_pipeline(stages, micro_batches_, strategy_.order, strategy_.pipeline).total;
  parts.bubble = std::max(Seconds{}, total - busy);
  const Seconds after = after_backward();
  const double each = static_cast<double>(micro_batches_) / strategy_.pipeline;
  parts.compute = parts.compute + each * slowed;
  parts.data = after + each * waiting;
  parts.total = total + after + optimizer();
}

StrategyParts StrategyStep::run(const StepCosts& costs, bool rough) {
  costs_ = costs;
  plan();
  time_blocks();
  StrategyParts parts;
  const double each = static_cast<double>(micro_batches_) / strategy_.pipeline;
  for (const BlockParts& block : blocks_) {
    parts.compute = parts.compute + each * block.compute;
    parts.recompute = parts.recompute + each * block.recompute;
    parts.tensor = parts.tensor + each * block.tensor;
    parts.expert = parts.expert + each * block.expert;
  }
  parts.compute = parts.compute + optimizer();
  if (strategy_.pipeline > 1) {
    run_pipelined(parts, rough);
  } else {
    run_alone(parts);
  }
  return parts;
}

}  // namespace polyring

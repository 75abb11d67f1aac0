// One step under a strategy, made of what is computed, sent and waited for.
#pragma once

#include <vector>

#include "bench/predict/strategy_times.hpp"
#include "models/block_timeline.hpp"
#include "models/strategy_memory.hpp"

namespace polyring {

/// Where the time of a step goes, averaged over the ranks of a replica. What is sent while something is
/// computed costs nothing; the parts add up to the total.
struct StrategyParts {
  Seconds total;
  Seconds compute;    // the model's passes, slowed by what is sent beside them, and the optimizer
  Seconds recompute;  // passes forward that are computed again
  Seconds bubble;     // of a pipeline: waiting for other stages and for what they send
  Seconds tensor;     // collectives of activations inside split layers
  Seconds expert;     // alltoalls
  Seconds data;       // gradients and weights among replicas, as far as nothing hides them
};

/// The largest counts of what a strategy sends, in elements.
struct StrategyCounts {
  Count gradients = 0;   // of a rank, all together; zero exchanges them block by block
  Count of_experts = 0;  // of them: of experts
  Count block = 0;       // the largest block's
  Count expert_block = 0;
  Count exchange = 0;  // of activations in a split layer
  Count dispatch = 0;  // of tokens to experts
};

/// A strategy that is made for a number of GPUs.
class StrategyStep {
 public:
  /// Keeps references. The strategy's replicas are counted. Throws a usage Error for what check_division()
  /// refuses, and for micro-batches that do not divide a replica's samples.
  StrategyStep(const ScalingCase& scaling, const Strategy& strategy, StrategyTimes& times);
  /// The same, with its virtual stages cut already.
  StrategyStep(const ScalingCase& scaling, const Strategy& strategy, StrategyTimes& times,
               std::vector<StageBlocks> stages);

  /// With these costs. `rough`: a pipeline by a closed form.
  StrategyParts run(const StepCosts& costs = {}, bool rough = false);

  int micro_batches() const { return micro_batches_; }
  const TrainingState& training() const { return training_; }
  const StrategyCounts& counts() const { return counts_; }
  const std::vector<StageBlocks>& stages() const { return stages_; }
  StrategyMemory memory() const;

  GroupCall gradients() const;  // how they, or the weights, are exchanged
  GroupCall activations() const;
  GroupCall tokens() const;
  /// A collective with the costs of the last run. Its launch is apart, since it may pass beside others.
  Seconds sent(const GroupCall& call, Count count);
  /// How many times as long a GPU computes: the slowest of those that wait for each other.
  double computing() const;
  Seconds copies() const;
  Interplay interplay() const { return {Seconds{costs_.launch_s}, costs_.slowdown}; }

  /// Bytes from a rank of a virtual stage to the next.
  double sent_bytes(int stage) const;

 private:
  /// The parts of a block's passes that are not its BlockTimes.
  struct BlockParts {
    BlockTimes times;
    Seconds compute;
    Seconds recompute;
    Seconds tensor;
    Seconds expert;
  };

  void count();
  void plan();
  Count samples(std::int64_t of_each) const;
  Count share(std::int64_t parameters) const;
  Count expert_share(const Block& block) const;
  BlockParts parts_of(const Block& block);
  void time_blocks();
  Seconds exchanges(const Block& block);
  Seconds alltoalls(const Block& block);
  Seconds over_replicas(Collective collective, Count dense, Count experts);
  std::vector<BlockTimes> times_of(const StageBlocks& stage, bool with_data) const;
  Seconds optimizer() const;
  void run_alone(StrategyParts& parts);
  void run_pipelined(StrategyParts& parts, bool rough);
  Seconds after_backward();
  Seconds rough_pipeline(const std::vector<PipelineStage>& stages) const;

  const ScalingCase& scaling_;
  Strategy strategy_;
  StrategyTimes& times_;
  std::vector<StageBlocks> stages_;
  TrainingState training_;
  int micro_batches_ = 1;
  StrategyCounts counts_;
  StepCosts costs_;
  std::vector<BlockParts> blocks_;
};

/// How many micro-batches a replica's samples make: as the strategy or --micro-batches say; else one, and of
/// a pipeline about four for each stage (GPipe, arXiv 1811.06965, section 2.3: then the bubble is
/// negligible). Throws a usage Error for a number that does not divide the samples.
int micro_batches_of(const ScalingCase& scaling, const Strategy& strategy);

/// What a step keeps on a GPU: of a data-parallel one no more samples than ScalingCase::at_once.
TrainingState training_of(const ScalingCase& scaling, const Strategy& strategy);

}  // namespace polyring

// The scaling table: training steps priced from the topology, from one host to many.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/cli/options.hpp"
#include "bench/predict/conditions.hpp"
#include "models/buckets.hpp"
#include "models/framework.hpp"
#include "models/precision.hpp"
#include "models/step.hpp"
#include "models/strategy.hpp"
#include "reports/result.hpp"

namespace polyring {

/// Said of every table without a calibration.
inline constexpr std::string_view kNotValidated =
    "Not validated: how far these times are from those of a real cluster has not been measured.";

/// Of more GPUs planning takes seconds: then the largest bucket's plan is that of all.
inline constexpr int kMostPlannedForEach = 4096;

/// What efficiency and speedup are over.
struct BaselineChoice {
  bool host = false;      // one whole host; otherwise one GPU that computes alone
  std::string algorithm;  // of that host's allreduces; empty: each row's own
};

struct ScalingCase {
  Cluster machine;   // one host or more; the counts are filled with hosts like its first
  std::string name;  // of the machine, as published results know it
  Model model;
  StepCompute compute;
  std::optional<Precision> precision;  // of `compute`; nothing: by `kind`, mixed where that has 16 bits
  Attention attention = Attention::fused;
  int batch = 32;                   // per GPU: that of `compute`, and under weak scaling of each row
  std::optional<int> global_batch;  // strong scaling: of all GPUs of each row together
  /// The samples that a GPU of a data-parallel step holds at once, as with_share() says; nothing: its batch.
  std::optional<int> at_once;
  BucketPolicy policy;
  bool overlap = false;
  ElementKind kind = ElementKind::float32;
  Partials partials = Partials::apart;
  Conditions conditions;
  std::optional<Strategy> strategy;  // nothing: data parallel
  std::optional<int> micro_batches;  // of a pipeline; nothing: chosen
  /// What the step costs beside computing and its allreduces; null: nothing, the ideal.
  const Framework* framework = nullptr;
  bool framework_stated = false;  // not chosen by the machine's published results
  BaselineChoice baseline;
  bool waits_for_input = false;              // reads real samples, at an unknown cost
  std::optional<CostRange> computing_range;  // of an estimated computing time
  std::optional<double> spread;  // of allreduce times, as a part of them: what a calibration is off
  bool network_fitted =
      false;  // a calibration has all that lies between two hosts, links of no stated speed too
  std::vector<TrainRow> measured;  // rows that need not be modelled
  std::vector<int> gpus;
};

/// The host's NICs that are up.
int rails_of(const Machine& host);

/// The case at one GPU count. Under strong scaling a GPU has its share of the global batch, and computes for
/// it as long for each sample as `compute` does; a share that is larger than the batch of `compute` in parts
/// of that. Throws a usage Error when a share is not a whole number.
ScalingCase with_share(const ScalingCase& scaling, int gpus);

struct ModelledStep {
  StepTime time;
  Plan plan;  // of the gradients' allreduce
  int nodes = 1;
  std::string bottleneck;        // of the largest bucket's allreduce
  std::optional<double> bubble;  // of a pipeline, as a part of the step
};

/// The rows of one algorithm, one for each GPU count: measured ones where they are given. The plan is the
/// cheapest for the largest bucket, with what `options` asks for in its place; `nccl` and `mpi` choose by
/// themselves for each bucket, and of `in-network` lanes and chunks alone can be asked for. Efficiency is the
/// throughput of a GPU over that of the baseline's; speedup is that times the GPUs, in numbers of the
/// baseline. Throws a usage Error for a GPU count that does
/// not fill whole hosts, for links of unknown speed, and as with_share().
std::vector<ScaleRow> model_scaling(const ScalingCase& scaling, const std::string& algorithm,
                                    const PlanOptions& options);

/// The smallest and the largest allreduce of a data-parallel step.
std::pair<Bytes, Bytes> allreduce_sizes(const ScalingCase& scaling);

/// What the rows of `nccl`, `mpi` or `in-network` rest on, for the most GPUs and the largest bucket; nothing
/// for other algorithms.
std::vector<Citation> algorithm_inputs(const ScalingCase& scaling, const std::string& algorithm);

}  // namespace polyring

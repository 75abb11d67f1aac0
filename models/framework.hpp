// What a framework and its machine add to a training step, beside computing alone and the allreduces' own
// times. Each part is a range, from what was measured of that part alone: never from a table of speedups.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"
#include "models/buckets.hpp"
#include "models/gpu_peaks.hpp"

namespace polyring {

/// One value of each cost. As initialised, nothing is added.
struct StepCosts {
  double computing = 1;   // the computing time over the stated one
  double launch_s = 0;    // from a bucket's gradients until its allreduce begins
  double tensor_s = 0;    // of each gradient tensor: what copies it into its bucket and back
  double accesses = 0;    // of a GPU's memory for each element of the gradients: the same copies
  double copy_share = 1;  // of the memory's bandwidth that these copies reach
  double slowdown = 0;    // of computing beside an allreduce: 0.1 takes a tenth longer
  double variation =
      0;  // standard deviation of a GPU's computing time over its mean; a step waits for the slowest
  double input = 0;    // of the step, waiting for samples
  double network = 1;  // of the links' rate that large allreduces reach
  double ramp_s = 0;   // of an allreduce, beside its payload at that rate
  double call_s = 0;   // launch of a collective of activations, and of a message between stages
  double inside = 1;   // as `network`, of collectives inside a host where others go between hosts
};

/// How far a cost is known.
struct CostRange {
  double StepCosts::*cost = nullptr;
  std::string name;  // "launch of an allreduce"
  double least = 0;  // where training is fastest
  double middle = 0;
  double most = 0;
  std::string text;    // the range with its unit: "5 to 30 us, 10 in the middle"
  std::string source;  // its citations, and what is ours
};

struct Framework {
  std::string_view name;     // "ddp"
  std::string_view summary;  // one line, without its buckets and overlap
  BucketPolicy bucket;       // its default
  bool overlap = true;       // communication beside the backward pass
  bool over_host = false;    // its published tables take one host as 1
};

/// ddp, horovod, horovod-0.20, caffe, caffe2 and none.
const std::vector<Framework>& frameworks();

std::vector<std::string> framework_names();

/// Throws a usage Error with the known names.
const Framework& find_framework(std::string_view name);

/// Where a step runs.
struct CostSetting {
  GpuGeneration generation = GpuGeneration::ampere;
  int hosts = 1;
  int nics = 1;  // of a host
};

/// Every range of the framework there, but that of the links' rate.
std::vector<CostRange> cost_ranges(const Framework& framework, const CostSetting& setting);

/// What a strategy that divides the model adds to them.
CostRange call_range();

/// What reading real samples costs a host's GPUs beside one that reads alone.
CostRange input_range();

/// The middle of all ranges.
StepCosts middle_of(const std::vector<CostRange>& ranges);

}  // namespace polyring

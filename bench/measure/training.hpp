// Synthetic training steps, measured: computing is time that passes, or kernels on a GPU; allreduces are
// real.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "bench/contenders/collective_call.hpp"
#include "bench/measure/job.hpp"
#include "collectives/schedule/element.hpp"
#include "models/buckets.hpp"
#include "models/step.hpp"
#include "reports/result.hpp"

namespace polyring {

class GpuCompute;

/// One contestant: an allreduce for each bucket, in their order. None: the step of a rank alone.
struct Trainer {
  std::vector<std::unique_ptr<CollectiveCall>> allreduces;
};

struct TrainingSteps {
  std::vector<double> total_ms;  // of each iteration, the maximum over the ranks
  std::vector<Step> steps;       // this rank's
  // On GPUs, of each iteration, the maximum over the ranks.
  std::vector<double> compute_ms;        // until the backward pass ends, with the optimiser
  std::vector<double> communication_ms;  // of the allreduces without computation
  std::vector<GpuShare> profile;         // of one step more, in the end, on this rank
};

/// What is told while the steps are measured.
struct StepObserver {
  /// Before each turn of all trainers, on this rank; at first before the unmeasured one.
  std::function<void()> turn;
  /// Collective, of the turns so far: whenever they have become a quarter more, and in the end.
  std::function<void(const std::vector<TrainingSteps>&)> so_far;
};

/// What a step does.
struct TrainingWork {
  StepCompute compute;
  std::vector<Bucket> buckets;
  ElementKind kind = ElementKind::float32;
  bool overlap = true;             // a bucket is reduced while the backward pass goes on
  std::byte* gradients = nullptr;  // the buckets, one behind the other
  GpuCompute* gpu = nullptr;       // what computes; null: time passes
  Seconds timeout{};               // on a GPU, for what is not computation
};

/// Lets the trainers take turns for `iterations` steps, after one unmeasured step each. Without a GPU the
/// computation is not done: its time passes while this rank sleeps, as a host sleeps while its GPU works; see
/// gpu_step.hpp for one with. Each bucket's allreduce begins, in place, when the computation has released its
/// gradients and the bucket before is done. Collective.
std::vector<TrainingSteps> measure_steps(std::vector<Trainer>& trainers, const Job& job,
                                         const TrainingWork& work, int iterations,
                                         const StepObserver& observer = {});

}  // namespace polyring

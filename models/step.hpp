// One step of data-parallel training as a timeline: forward, backward that releases gradients bucket by
// bucket, the allreduce of each bucket, optimiser.
//
//   compute        | forward |        backward         |            | optimizer |
//   communication            .      | bucket 0 |  | bucket 1 |
//                                   ^ release     ^ release        ^ the last ends
//
// There is one stream for computing and one for communicating. With f, b and o the times of forward, backward
// and optimiser, and for bucket i the time t(i) of its allreduce:
//
//   release(i) = f + ready(i)·b     with overlap; f + b without
//   begin(i)   = max(release(i) + launch, end(i − 1))
//   end(i)     = begin(i) + t(i)
//   total      = max(f + b, end(last)) + o
//
// Computing beside an allreduce takes 1 + slowdown times as long: what is left of the backward pass is then
// released later, and ends later. Both are 0 unless they are stated.
//
// Times are counted from the beginning of the step. A measured step is the same struct, filled from clocks.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "base/units.hpp"
#include "models/buckets.hpp"

namespace polyring {

/// What one step costs one GPU on its own.
struct StepCompute {
  Seconds forward;
  Seconds backward;
  Seconds optimizer;

  Seconds total() const { return forward + backward + optimizer; }
};

/// Splits the time of forward and backward as the model's FLOPs are split: very nearly 1/3 to 2/3, since each
/// product of the forward pass is followed by two of the same size in the backward pass (gradients of its
/// input and of its weight). A published throughput is of the whole step: give batch / throughput, and no
/// optimiser time.
StepCompute compute_of(const Model& model, Seconds forward_and_backward, Seconds optimizer = {});

struct Span {
  Seconds begin;
  Seconds end;
  Seconds duration() const { return end - begin; }
};

struct BucketTimes {
  std::size_t bucket = 0;
  Seconds ready;  // when its last gradient existed and its allreduce was allowed to begin
  Span communication;
};

struct Step {
  Span forward;
  Span backward;
  Span optimizer;
  std::vector<BucketTimes> buckets;

  /// From the beginning of forward to the end of the optimiser.
  Seconds total() const { return optimizer.end - forward.begin; }
  /// The part of the total in which nothing was computed: total − (forward + backward + optimiser).
  Seconds exposed_communication() const;
};

/// When each bucket may begin to travel, if nothing slows the backward pass down. Without overlap, all at its
/// end.
std::vector<Seconds> release_times(const StepCompute& compute, const std::vector<Bucket>& buckets,
                                   bool overlap);

/// What computing and communicating do to each other.
struct Interplay {
  Seconds launch;       // from a bucket's release until its allreduce may begin
  double slowdown = 0;  // of computing while an allreduce runs, as a part of its time
};

/// The timeline when bucket i's allreduce takes allreduce_time(i), which must not be negative. Asked once for
/// each bucket, in order. With no bucket, or times of 0 and no launch, the step takes compute.total().
Step run_step(const StepCompute& compute, const std::vector<Bucket>& buckets, bool overlap,
              const std::function<Seconds(std::size_t bucket)>& allreduce_time,
              const Interplay& interplay = {});

}  // namespace polyring

#include "models/step.hpp"

#include <algorithm>
#include <cassert>

namespace polyring {

StepCompute compute_of(const Model& model, Seconds forward_and_backward, Seconds optimizer) {
  assert(forward_and_backward.value >= 0 && optimizer.value >= 0);
  const double forward_flops = model.forward_flops_per_sample;
  const double share = forward_flops / (forward_flops + model.backward_flops_per_sample());
  const Seconds forward = share * forward_and_backward;
  return {forward, forward_and_backward - forward, optimizer};
}

Seconds Step::exposed_communication() const {
  // The sum of the gaps between the three, written so that no gap gives exactly 0.
  return (backward.begin - forward.end) + (optimizer.begin - backward.end);
}

std::vector<Seconds> release_times(const StepCompute& compute, const std::vector<Bucket>& buckets,
                                   bool overlap) {
  std::vector<Seconds> times;
  times.reserve(buckets.size());
  for (const Bucket& bucket : buckets) {
    times.push_back(compute.forward + (overlap ? bucket.ready : 1) * compute.backward);
  }
  return times;
}

Step run_step(const StepCompute& compute, const std::vector<Bucket>& buckets, bool overlap,
              const std::function<Seconds(std::size_t bucket)>& allreduce_time) {
  Step step;
  step.forward = {{}, compute.forward};
  step.backward = {compute.forward, compute.forward + compute.backward};

  const std::vector<Seconds> releases = release_times(compute, buckets, overlap);
  Seconds stream_free;
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    const Seconds begin = std::max(releases[i], stream_free);
    const Seconds duration = allreduce_time(i);
    assert(duration.value >= 0);
    stream_free = begin + duration;
    step.buckets.push_back({i, releases[i], {begin, stream_free}});
  }

  const Seconds optimizer_begin = std::max(step.backward.end, stream_free);
  step.optimizer = {optimizer_begin, optimizer_begin + compute.optimizer};
  return step;
}

}  // namespace polyring

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

namespace {

/// The backward pass, which is slowed down while allreduces run.
class Backward {
 public:
  Backward(Seconds begin, double slowdown) : begin_(begin), slowdown_(slowdown), now_(begin) {}

  /// When so much of it is done, counted as if nothing slowed it down; no less than was asked for before. All
  /// allreduces that begin before then are known.
  Seconds reaches(Seconds work) {
    if (slowdown_ == 0) return begin_ + work;
    Seconds left = work - done_;
    for (; next_ < allreduces_.size(); ++next_) {
      const Span& allreduce = allreduces_[next_];
      const Seconds alone = std::clamp(allreduce.begin - now_, Seconds{}, left);
      now_ = now_ + alone;
      left = left - alone;
      const Seconds beside = std::max(allreduce.end - now_, Seconds{});
      const Seconds slowed = std::min(left, (1 / (1 + slowdown_)) * beside);
      if (now_ >= allreduce.begin) {
        now_ = now_ + (1 + slowdown_) * slowed;
        left = left - slowed;
      }
      if (left <= Seconds{}) break;
    }
    done_ = work;
    return now_ = now_ + left;
  }

  /// It begins no earlier than what was reached last, and after those before it.
  void add(Span allreduce) { allreduces_.push_back(allreduce); }

 private:
  Seconds begin_;
  double slowdown_;
  Seconds now_;
  Seconds done_;
  std::vector<Span> allreduces_;
  std::size_t next_ = 0;  // the first that may not be over
};

}  // namespace

Step run_step(const StepCompute& compute, const std::vector<Bucket>& buckets, bool overlap,
              const std::function<Seconds(std::size_t bucket)>& allreduce_time, const Interplay& interplay) {
  assert(interplay.launch.value >= 0 && interplay.slowdown >= 0);
  Step step;
  step.forward = {{}, compute.forward};
  Backward backward(compute.forward, interplay.slowdown);
  Seconds stream_free;
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    const Seconds release = backward.reaches((overlap ? buckets[i].ready : 1) * compute.backward);
    const Seconds begin = std::max(release + interplay.launch, stream_free);
    const Seconds duration = allreduce_time(i);
    assert(duration.value >= 0);
    stream_free = begin + duration;
    backward.add({begin, stream_free});
    step.buckets.push_back({i, release, {begin, stream_free}});
  }
  step.backward = {compute.forward, backward.reaches(compute.backward)};
  const Seconds optimizer_begin = std::max(step.backward.end, stream_free);
  step.optimizer = {optimizer_begin, optimizer_begin + compute.optimizer};
  return step;
}

}  // namespace polyring

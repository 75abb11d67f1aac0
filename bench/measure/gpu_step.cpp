#include "bench/measure/gpu_step.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <utility>

namespace polyring {
namespace {

constexpr std::string_view kToGpu = "copies host to device";
constexpr std::string_view kToHost = "copies device to host";

using Moment = GpuCompute::Moment;
using Stream = GpuCompute::Stream;

/// What takes longer on a GPU than this is a fault of it.
Seconds limit_of(const TrainingWork& work) { return work.timeout + 10 * work.compute.total(); }

/// A step under way.
class GpuStep {
 public:
  GpuStep(Trainer& trainer, const TrainingWork& work, Watchdog& watchdog)
      : trainer_(trainer), work_(work), gpu_(*work.gpu), watchdog_(watchdog) {
    std::size_t offset = 0;
    for (const Bucket& bucket : work.buckets) {
      offsets_.push_back(offset);
      offset += bytes_of(bucket.elements, work.kind).value;
    }
    gpu_.begin();
  }

  /// `ready`: when each bucket's gradients are computed.
  Step run(const std::vector<Seconds>& ready) {
    const StepCompute& compute = work_.compute;
    gpu_.compute_until(compute.forward);
    const Moment forward = gpu_.mark(Stream::computing);
    const bool enqueued = is_enqueued(trainer_);
    for (std::size_t i = 0; i < trainer_.allreduces.size(); ++i) {
      gpu_.compute_until(ready[i]);
      buckets_.push_back({gpu_.mark(Stream::computing), 0, 0});
      if (enqueued) enqueue(i);
    }
    gpu_.compute_until(compute.forward + compute.backward);
    const Moment backward = gpu_.mark(Stream::computing);
    for (std::size_t i = 0; !enqueued && i < trainer_.allreduces.size(); ++i) call(i);
    const Moment communicated = after_all();
    gpu_.compute_until(compute.total());
    const Moment end = gpu_.mark(Stream::computing);
    finish(backward);
    gpu_.wait(end, limit_of(work_));

    Step step;
    step.forward = {{}, gpu_.at(forward)};
    step.backward = {gpu_.at(forward), gpu_.at(backward)};
    step.optimizer = {gpu_.at(communicated), gpu_.at(end)};
    for (std::size_t i = 0; i < buckets_.size(); ++i) {
      const Moments& bucket = buckets_[i];
      step.buckets.push_back({i, gpu_.at(bucket.ready), {gpu_.at(bucket.begin), gpu_.at(bucket.end)}});
    }
    return step;
  }

  static bool is_enqueued(const Trainer& trainer) {
    return std::ranges::all_of(trainer.allreduces, [](const auto& call) { return call->is_enqueued(); });
  }

 private:
  struct Moments {
    Moment ready = 0;
    Moment begin = 0;
    Moment end = 0;
  };

  std::byte* gradients(std::size_t bucket) const { return work_.gradients + offsets_[bucket]; }

  /// The watchdog does not watch while the GPU computes, which may take as long as it likes.
  template <typename Action>
  void watched(std::size_t bucket, Action&& action) {
    if (!trainer_.allreduces[bucket]->keeps_time_limit())
      watchdog_.watch(fmt::format("the allreduce of bucket {}", bucket));
    action();
    watchdog_.rest();
  }

  void enqueue(std::size_t i) {
    CollectiveCall& allreduce = *trainer_.allreduces[i];
    gpu_.order(buckets_[i].ready, Stream::communicating);
    buckets_[i].begin = gpu_.mark(Stream::communicating);
    watched(i, [&] { allreduce.start_on(gpu_.communicating(), gradients(i), gradients(i)); });
    buckets_[i].end = gpu_.mark(Stream::communicating);
  }

  /// The stream for the communication has nothing to do: there the host's moments are the GPU's.
  void call(std::size_t i) {
    gpu_.wait(buckets_[i].ready, limit_of(work_));
    buckets_[i].begin = gpu_.mark(Stream::communicating);
    watched(i, [&] { trainer_.allreduces[i]->run(gradients(i), gradients(i)); });
    buckets_[i].end = gpu_.mark(Stream::communicating);
  }

  /// The computation's stream goes on after them.
  Moment after_all() {
    for (const Moments& bucket : buckets_) gpu_.order(bucket.end, Stream::computing);
    return gpu_.mark(Stream::computing);
  }

  /// The calls' own time limits begin when all is computed.
  void finish(Moment computed) {
    gpu_.wait(computed, limit_of(work_));
    for (std::size_t i = 0; i < trainer_.allreduces.size(); ++i)
      watched(i, [&] { trainer_.allreduces[i]->finish(); });
  }

  Trainer& trainer_;
  const TrainingWork& work_;
  GpuCompute& gpu_;
  Watchdog& watchdog_;
  std::vector<std::size_t> offsets_;  // of the buckets' gradients, in bytes
  std::vector<Moments> buckets_;
};

struct Total {
  std::string_view activity;
  Seconds time;
  std::uint64_t calls = 0;
};

/// How long at least one of these goes on.
Seconds together(std::vector<Span> spans) {
  std::ranges::sort(spans, {}, &Span::begin);
  Seconds busy;
  Seconds until;
  for (const Span& span : spans) {
    const Seconds begin = std::max(until, span.begin);
    if (span.end > begin) busy = busy + (span.end - begin);
    until = std::max(until, span.end);
  }
  return busy;
}

}  // namespace

Step step_on_gpu(Trainer& trainer, const TrainingWork& work, const std::vector<Seconds>& ready,
                 Watchdog& watchdog) {
  return GpuStep(trainer, work, watchdog).run(ready);
}

Seconds communication_on_gpu(Trainer& trainer, const TrainingWork& work, Watchdog& watchdog) {
  TrainingWork idle = work;
  idle.compute = {};
  const std::vector<Seconds> at_once(work.buckets.size());
  return GpuStep(trainer, idle, watchdog).run(at_once).total();
}

std::vector<GpuShare> shares_of(const Step& step, std::uint64_t launches, bool enqueued,
                                const std::vector<GpuActivity>& activities) {
  std::array<Total, 5> totals{Total{"computation", {}, 0}, Total{"kernels of allreduces", {}, 0},
                              Total{kToGpu, {}, 0}, Total{kToHost, {}, 0},
                              Total{"copies device to device", {}, 0}};
  std::vector<Span> spans;
  const auto add = [&](Total& total, Span span) {
    if (!(span.duration().value > 0)) return;
    total.time = total.time + span.duration();
    ++total.calls;
    spans.push_back(span);
  };
  for (const Span& span : {step.forward, step.backward, step.optimizer}) add(totals[0], span);
  totals[0].calls = launches;
  for (const GpuActivity& activity : activities)
    add(totals[1 + static_cast<std::size_t>(activity.kind)], {activity.begin, activity.end});
  for (const BucketTimes& bucket : step.buckets)
    if (enqueued) add(totals[1], bucket.communication);

  Seconds all;
  for (const Total& total : totals)
    if (total.calls > 0) all = all + total.time;
  std::ranges::stable_sort(totals, std::ranges::greater(), &Total::time);
  std::vector<GpuShare> shares;
  for (const Total& total : totals) {
    if (total.calls == 0) continue;
    shares.push_back(
        {std::string(total.activity), total.time.value / all.value, total.time.value * 1e3, total.calls});
  }
  const Seconds idle = step.total() - together(std::move(spans));
  shares.push_back({"idle", std::nullopt, std::max(0.0, idle.value) * 1e3, 0});
  return shares;
}

bool is_host_copy(std::string_view activity) { return activity == kToGpu || activity == kToHost; }

std::vector<GpuShare> profile_of_step(Trainer& trainer, const TrainingWork& work,
                                      const std::vector<Seconds>& ready, Watchdog& watchdog) {
  work.gpu->record(true);
  const Step step = step_on_gpu(trainer, work, ready, watchdog);
  work.gpu->record(false);
  return shares_of(step, work.gpu->launches(), GpuStep::is_enqueued(trainer), work.gpu->activities());
}

}  // namespace polyring

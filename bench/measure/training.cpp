#include "bench/measure/training.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <span>
#include <thread>

#include "bench/measure/gpu_step.hpp"

namespace polyring {
namespace {

using Clock = std::chrono::steady_clock;

class StepClock {
 public:
  Seconds now() const { return {std::chrono::duration<double>(Clock::now() - begin_).count()}; }

  /// Sleeps most of the way; the rest is too short for the scheduler's precision.
  void wait_until(Seconds time) const {
    constexpr std::chrono::microseconds kMargin{200};
    const auto until =
        begin_ + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(time.value));
    if (Clock::now() + kMargin < until) std::this_thread::sleep_until(until - kMargin);
    while (Clock::now() < until) std::this_thread::yield();
  }

 private:
  Clock::time_point begin_ = Clock::now();
};

Step run_one(Trainer& trainer, const TrainingWork& work, const std::vector<Seconds>& ready,
             Watchdog& watchdog) {
  const StepCompute& compute = work.compute;
  const StepClock clock;
  Step step;
  step.forward = {{}, compute.forward};
  step.backward = {compute.forward, compute.forward + compute.backward};
  std::size_t offset = 0;
  for (std::size_t i = 0; i < trainer.allreduces.size(); ++i) {
    clock.wait_until(ready[i]);
    const Seconds begin = clock.now();
    CollectiveCall& allreduce = *trainer.allreduces[i];
    if (!allreduce.keeps_time_limit()) watchdog.watch(fmt::format("the allreduce of bucket {}", i));
    allreduce.run(work.gradients + offset, work.gradients + offset);
    step.buckets.push_back({i, ready[i], {begin, clock.now()}});
    watchdog.rest();  // computing may take as long as it likes
    offset += bytes_of(work.buckets[i].elements, work.kind).value;
  }
  clock.wait_until(step.backward.end);
  step.optimizer.begin = clock.now();
  clock.wait_until(step.optimizer.begin + compute.optimizer);
  step.optimizer.end = clock.now();
  return step;
}

/// Of the turns from `first` on, over the ranks.
void take_maximum(std::vector<double>& times, std::size_t first, const World& world) {
  const std::vector<double> slowest = world.max(std::span(times).subspan(first));
  std::copy(slowest.begin(), slowest.end(), times.begin() + static_cast<std::ptrdiff_t>(first));
}

void take_maximum(std::vector<TrainingSteps>& measured, std::size_t first, const World& world) {
  for (TrainingSteps& steps : measured) {
    for (std::vector<double>* times : {&steps.total_ms, &steps.compute_ms, &steps.communication_ms})
      if (!times->empty()) take_maximum(*times, first, world);
  }
}

/// A step of the trainer; where `into` is not null, it is kept there. Collective.
void measure_one(Trainer& trainer, const Job& job, const TrainingWork& work,
                 const std::vector<Seconds>& ready, TrainingSteps* into) {
  job.world.barrier();
  const Step step = work.gpu == nullptr ? run_one(trainer, work, ready, job.watchdog)
                                        : step_on_gpu(trainer, work, ready, job.watchdog);
  if (into == nullptr) return;
  into->steps.push_back(step);
  into->total_ms.push_back(step.total().value * 1e3);
  if (work.gpu == nullptr) return;
  job.world.barrier();
  const Seconds communication = communication_on_gpu(trainer, work, job.watchdog);
  into->compute_ms.push_back((step.total() - step.exposed_communication()).value * 1e3);
  into->communication_ms.push_back(communication.value * 1e3);
}

}  // namespace

std::vector<TrainingSteps> measure_steps(std::vector<Trainer>& trainers, const Job& job,
                                         const TrainingWork& work, int iterations,
                                         const StepObserver& observer) {
  const std::vector<Seconds> ready = release_times(work.compute, work.buckets, work.overlap);
  std::vector<TrainingSteps> measured(trainers.size());
  int shared = 0;
  for (int iteration = -1; iteration < iterations; ++iteration) {
    if (observer.turn) observer.turn();
    for (std::size_t i = 0; i < trainers.size(); ++i) {
      measure_one(trainers[i], job, work, ready, iteration < 0 ? nullptr : &measured[i]);
      if (work.gpu == nullptr || iteration + 1 < iterations) continue;
      job.world.barrier();
      measured[i].profile = profile_of_step(trainers[i], work, ready, job.watchdog);
    }
    // By the number of turns, on which all ranks agree; clocks differ.
    const int turns = iteration + 1;
    if (turns == 0 || (turns < iterations && 4 * turns < 5 * shared)) continue;
    take_maximum(measured, static_cast<std::size_t>(shared), job.world);
    shared = turns;
    if (observer.so_far) observer.so_far(measured);
  }
  return measured;
}

}  // namespace polyring

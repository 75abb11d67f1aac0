#include "bench/measure.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>

namespace polyring {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kSecondsPerRival = 0.5;
constexpr int kFewestIterations = 10;
constexpr int kMostIterations = 1000;

class Measurement {
 public:
  Measurement(const MpiWorld& world, const Payload& payload, Buffers buffers, Count count, bool in_place,
              Watchdog& watchdog)
      : world_(world),
        payload_(payload),
        input_(in_place ? buffers.output : buffers.input),
        output_(buffers.output),
        count_(count),
        watchdog_(watchdog) {}

  Count wrong(Rival& rival, ElementKind kind) const {
    // What is never written must not look right.
    std::memset(output_, 0xff, static_cast<std::size_t>(count_ * size_of(kind)));
    payload_.fill(world_.rank(), input_, count_);
    watchdog_.watch(rival.algorithm);
    rival.allreduce->run(input_, output_);
    return world_.sum(payload_.wrong(output_, count_));
  }

  /// This rank's time for one iteration, in microseconds.
  double once(Rival& rival) const {
    watchdog_.watch(rival.algorithm);
    payload_.fill(world_.rank(), input_, count_);
    world_.barrier();
    const Clock::time_point begin = Clock::now();
    rival.allreduce->run(input_, output_);
    return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
  }

 private:
  const MpiWorld& world_;
  const Payload& payload_;
  std::byte* input_;
  std::byte* output_;
  Count count_;
  Watchdog& watchdog_;
};

/// From the slowest rival's last warm-up; rank 0 decides for all, since clocks differ.
int choose_iterations(const MpiWorld& world, double slowest_us) {
  const double fitting = kSecondsPerRival * 1e6 / std::max(slowest_us, 1.0);
  const auto chosen =
      static_cast<std::int64_t>(std::clamp<double>(fitting, kFewestIterations, kMostIterations));
  return static_cast<int>(world.broadcast(chosen));
}

}  // namespace

std::vector<Samples> measure(std::span<Rival> rivals, const MpiWorld& world, const Payload& payload,
                             Buffers buffers, Count count, ElementKind kind, bool in_place,
                             const MeasureOptions& options, Watchdog& watchdog) {
  const Measurement measurement(world, payload, buffers, count, in_place, watchdog);
  std::vector<Samples> samples(rivals.size());
  if (options.check) {
    for (std::size_t i = 0; i < rivals.size(); ++i) {
      samples[i].wrong = measurement.wrong(rivals[i], kind);
    }
  }
  const auto right = [&](std::size_t i) { return samples[i].wrong.value_or(0) == 0; };

  double slowest = 0;
  for (int warmup = 0; warmup < std::max(1, options.warmup); ++warmup) {
    slowest = 0;
    for (std::size_t i = 0; i < rivals.size(); ++i) {
      if (right(i)) slowest = std::max(slowest, measurement.once(rivals[i]));
    }
  }
  const int iterations = options.iterations > 0 ? options.iterations : choose_iterations(world, slowest);
  for (int iteration = 0; iteration < iterations; ++iteration) {
    for (std::size_t turn = 0; turn < rivals.size(); ++turn) {
      // Another one begins each round, so that none always follows the same rival.
      const std::size_t i = (turn + static_cast<std::size_t>(iteration)) % rivals.size();
      if (right(i)) samples[i].microseconds.push_back(measurement.once(rivals[i]));
    }
  }
  watchdog.watch("the collection of the samples");
  for (Samples& of_rival : samples) of_rival.microseconds = world.max(of_rival.microseconds);
  watchdog.rest();
  return samples;
}

}  // namespace polyring

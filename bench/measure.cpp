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
  Measurement(const MpiWorld& world, Transport& transport, const Payload& payload, Buffers buffers,
              Count count, ElementKind kind, bool in_place, Watchdog& watchdog)
      : world_(world),
        transport_(transport),
        payload_(payload),
        fresh_(static_cast<std::size_t>(count * size_of(kind))),
        input_(in_place ? buffers.output : buffers.input),
        output_(buffers.output),
        count_(count),
        watchdog_(watchdog) {
    payload.fill(world.rank(), fresh_.data(), count);
  }

  /// Wrong elements on all ranks.
  Count wrong(Rival& rival) const {
    // What is never written must not look right.
    std::vector<std::byte> host(fresh_.size(), std::byte{0xff});
    transport_.upload(output_, host);
    transport_.upload(input_, fresh_);
    watchdog_.watch(rival.algorithm);
    rival.allreduce->run(input_, output_);
    transport_.download(host, output_);
    return world_.sum(payload_.wrong(host.data(), count_));
  }

  /// This rank's time for one iteration, in microseconds.
  double once(Rival& rival) const {
    watchdog_.watch(rival.algorithm);
    transport_.upload(input_, fresh_);
    // A rank that is done must not keep the threads of a library such as Gloo, or ranks that share its core,
    // from ending theirs; the second barrier lets all begin together.
    world_.patient_barrier();
    world_.barrier();
    const Clock::time_point begin = Clock::now();
    rival.allreduce->run(input_, output_);
    return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
  }

 private:
  const MpiWorld& world_;
  Transport& transport_;
  const Payload& payload_;
  std::vector<std::byte> fresh_;  // this rank's input, in host memory
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

std::vector<Samples> measure(std::span<Rival> rivals, const MpiWorld& world, Transport& transport,
                             const Payload& payload, Buffers buffers, Count count, ElementKind kind,
                             bool in_place, const MeasureOptions& options, Watchdog& watchdog) {
  const Measurement measurement(world, transport, payload, buffers, count, kind, in_place, watchdog);
  std::vector<Samples> samples(rivals.size());
  if (options.check) {
    for (std::size_t i = 0; i < rivals.size(); ++i) {
      samples[i].wrong = measurement.wrong(rivals[i]);
    }
  }
  const auto right = [&](std::size_t i) { return samples[i].wrong.value_or(0) == 0; };

  double slowest = 0;
  const int warmups = options.iterations > 0 ? options.warmup : std::max(1, options.warmup);
  for (int warmup = 0; warmup < warmups; ++warmup) {
    slowest = 0;
    for (std::size_t i = 0; i < rivals.size(); ++i) {
      if (right(i)) slowest = std::max(slowest, measurement.once(rivals[i]));
    }
  }
  const int iterations = options.iterations > 0 ? options.iterations : choose_iterations(world, slowest);
  for (int iteration = 0; iteration < iterations; ++iteration) {
    for (std::size_t turn = 0; turn < rivals.size(); ++turn) {
      // Another one begins each round, so that none always follows the same rival; most turns still do.
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

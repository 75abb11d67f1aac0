#include "bench/measure/measure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <numeric>
#include <random>
#include <utility>

#include "base/error.hpp"
#include "base/statistics.hpp"

namespace polyring {
namespace {

using Clock = std::chrono::steady_clock;

/// One contender's turn, where that is more than one call.
struct Block {
  int calls = 1;
  int warmups = 0;
  bool barriers = false;    // after each call
  bool waits = false;       // for each call, before the next one
  int graphs = 0;           // launches of a CUDA graph of the calls; 0: they are none
  int calls_per_watch = 1;  // as few as take next to no time more than one
};

class Measurement {
 public:
  Measurement(const Job& job, const MeasuredCall& call)
      : job_(job),
        payload_(call.payload),
        memory_(job.transport, call.what),
        expected_{call.what.collective, job.world.rank(), call.what.count},
        input_count_(input_count(call.what.collective, job.world.size(), call.what.count)),
        output_count_(output_count(call.what.collective, job.world.size(), call.what.count)),
        own_block_(bytes_of(job.world.rank() * (call.what.count / job.world.size()), call.what.kind).value),
        fresh_(memory_.fresh.get(), bytes_of(input_count_, call.what.kind).value),
        in_place_(call.in_place) {
    payload_.fill(expected_, memory_.fresh.get());
    std::fill_n(memory_.stale.data(), memory_.stale.bytes(), std::byte{0xff});
  }

  /// Wrong elements on all ranks; of a graph of the call, too, where graphs are timed.
  Count wrong(Contender& contender, bool graphs) const {
    const Count called = wrong_after(contender, [&] { run(contender); });
    if (!graphs || called > 0) return called;
    const auto graph = capture(contender, 1);
    return wrong_after(contender, [&] { launch(contender, *graph, 1, 1); });
  }

  /// A vendor's call owes no more than MPI asks for.
  Count wrong_after(const Contender& contender, const std::function<void()>& action) const {
    const Buffers buffers = place(contender);
    memory_.stale.write(buffers.output, output_count_);
    job_.transport.upload(buffers.input, fresh_);
    action();
    return job_.world.sum(memory_.result.wrong(payload_, buffers.output, output_count_,
                                               contender.plan ? Match::bits : Match::value, expected_));
  }

  void rehearse(Contender& contender) const {
    prepare(contender);
    run(contender);
  }

  /// One iteration, on this rank.
  struct Iteration {
    Clock::time_point arrived;  // at the barrier before it
    Clock::time_point done;
    double run_us = 0;
    Delay delay;
  };

  Iteration once(Contender& contender) {
    prepare(contender);
    // A rank that is done must not keep the threads of a library such as Gloo, or ranks that share its core,
    // from ending theirs; the second barrier lets all begin together.
    const Clock::time_point arrived = job_.now();
    job_.world.idle_barrier();
    job_.world.barrier();
    const Clock::time_point began = job_.now();
    const double before_us = microseconds(arrived - std::exchange(began_, began));
    const double run_us = run(contender);
    return {arrived, job_.now(), run_us, {.before = before_us, .waited = microseconds(began - arrived)}};
  }

  /// So many calls on the same buffers. The mean time of one of them on this rank, in microseconds.
  double block(Contender& contender, const Block& block) {
    prepare(contender);
    // What a graph has must have run before.
    const int warmups = block.graphs > 0 ? std::max(1, block.warmups) : block.warmups;
    for (int i = 0; i < warmups; ++i) run(contender);
    const auto graph = block.graphs > 0 ? capture(contender, block.calls) : nullptr;
    if (graph) launch(contender, *graph, 1, block.calls);  // the first launch brings it to the GPU
    job_.world.idle_barrier();
    job_.world.barrier();
    if (graph) return launch(contender, *graph, block.graphs, block.calls) / block.calls;
    return (block.barriers ? apart(contender, block) : back_to_back(contender, block)) / block.calls;
  }

  /// The watchdog knows a little later that this rank did not run: to be asked when all iterations are over.
  std::vector<Delay> delays(std::span<const Iteration> iterations) const {
    std::vector<Delay> delays;
    for (const Iteration& iteration : iterations) {
      delays.push_back(iteration.delay);
      delays.back().paused = job_.watchdog.paused_between(iteration.arrived, iteration.done).value * 1e6;
    }
    return delays;
  }

  Clock::time_point now() const { return job_.now(); }

  static double microseconds(Clock::duration duration) {
    return std::chrono::duration<double, std::micro>(duration).count();
  }

 private:
  double apart(Contender& contender, const Block& block) const {
    double together_us = 0;
    const Buffers buffers = place(contender);
    for (int i = 0; i < block.calls; ++i) {
      if (i % block.calls_per_watch == 0) job_.watchdog.watch(contender.algorithm);
      const Clock::time_point begin = job_.now();
      contender.call->run(buffers.input, buffers.output);
      together_us += contender.call->device_us().value_or(microseconds(job_.now() - begin));
      job_.world.barrier_without_limit();
    }
    job_.watchdog.rest();
    return together_us;
  }

  double back_to_back(Contender& contender, const Block& block) const {
    const Buffers buffers = place(contender);
    const Clock::time_point begin = job_.now();
    for (int i = 0; i < block.calls; ++i) {
      if (i % block.calls_per_watch == 0) job_.watchdog.watch(contender.algorithm);
      contender.call->start(buffers.input, buffers.output);
      if (block.waits) contender.call->finish();
    }
    job_.watchdog.watch(contender.algorithm, block.calls);
    contender.call->finish();
    const Clock::time_point end = job_.now();
    job_.watchdog.rest();
    return microseconds(end - begin);
  }

  std::unique_ptr<GpuGraph> capture(const Contender& contender, int calls) const {
    const Buffers buffers = place(contender);
    job_.watchdog.watch(contender.algorithm, calls);
    auto graph = contender.call->capture(calls, buffers.input, buffers.output);
    job_.watchdog.rest();
    if (graph) return graph;
    throw AgreedError(ExitCode::not_available,
                      fmt::format("calls of {} by {} cannot be launched as a CUDA graph; leave it out",
                                  contender.algorithm, contender.call->implementation()));
  }

  /// The mean of so many launches of a graph of so many calls, in microseconds.
  double launch(const Contender& contender, GpuGraph& graph, int launches, int calls) const {
    job_.watchdog.watch(contender.algorithm, launches * calls);
    const Clock::time_point begin = job_.now();
    for (int launch = 0; launch < launches; ++launch) graph.start();
    graph.wait();
    const Clock::time_point end = job_.now();
    job_.watchdog.rest();
    return microseconds(end - begin) / launches;
  }

  void prepare(const Contender& contender) const {
    const Buffers buffers = place(contender);
    // In place, where the input is a part of the output, the rest has still to be written.
    if (!in_place_ || input_count_ < output_count_) memory_.stale.write(buffers.output, output_count_);
    job_.transport.upload(buffers.input, fresh_);
  }

  /// Where the input and the output begin.
  Buffers place(const Contender& contender) const {
    const Buffers& two = contender.buffers;
    if (!in_place_) return two;
    if (output_count_ < input_count_) return {two.input, two.input + own_block_};
    if (input_count_ < output_count_) return {two.output + own_block_, two.output};
    return {two.output, two.output};
  }

  /// Microseconds.
  double run(Contender& contender) const {
    if (!contender.call->keeps_time_limit()) job_.watchdog.watch(contender.algorithm);
    const Buffers buffers = place(contender);
    const Clock::time_point begin = job_.now();
    contender.call->run(buffers.input, buffers.output);
    const Clock::time_point end = job_.now();
    job_.watchdog.rest();
    return contender.call->device_us().value_or(microseconds(end - begin));
  }

  const Job& job_;
  const Payload& payload_;
  MeasureMemory memory_;
  Expected expected_;
  Count input_count_;
  Count output_count_;
  std::size_t own_block_;  // where it begins in the longer buffer, in bytes
  std::span<const std::byte> fresh_;
  bool in_place_;
  Clock::time_point began_ = job_.now();  // the last iteration
};

}  // namespace

int StoppingRule::iterations_in(Seconds available, int least, double slowest_us) const {
  if (!chooses()) return iterations;
  const double fitting = available.value * 1e6 / std::max(slowest_us, 1.0);
  return static_cast<int>(std::clamp<double>(fitting, least, kMost));
}

namespace {

/// Those that are timed: they take part, and are not wrong.
using Timed = std::vector<std::size_t>;

/// Returns how many microseconds the slowest of the last iterations took, or of their calls.
double warm_up(Measurement& measurement, std::span<Contender> contenders, const Timed& timed,
               const StoppingRule& stop) {
  double slowest = 0;
  for (int round = 0; round < stop.warmups(); ++round) {
    slowest = 0;
    for (const std::size_t i : timed) {
      const Clock::time_point begin = measurement.now();
      const double call_us = measurement.once(contenders[i]).run_us;
      const double whole_us = Measurement::microseconds(measurement.now() - begin);
      slowest = std::max(slowest, stop.of_calls ? call_us : whole_us);
    }
  }
  return slowest;
}

/// `turn` for each of those that are timed, in so many rounds. The order is the same on all ranks, and
/// another one in each round, so that none always follows the same contender.
void in_rounds(Timed timed, std::int64_t rounds, const std::function<void(std::size_t)>& turn) {
  std::mt19937 random;  // NOLINT(cert-msc51-cpp): the same seed on purpose
  for (std::int64_t round = 0; round < rounds; ++round) {
    std::shuffle(timed.begin(), timed.end(), random);
    for (const std::size_t i : timed) turn(i);
  }
}

std::vector<double> mean_over_ranks(const World& world, std::span<const double> values) {
  std::vector<double> means(values.size());
  for (const std::vector<std::byte>& of_rank : world.allgather(std::as_bytes(values))) {
    for (std::size_t i = 0; i < means.size(); ++i) {
      double value = 0;
      std::memcpy(&value, of_rank.data() + i * sizeof value, sizeof value);
      means[i] += value / world.size();
    }
  }
  return means;
}

void time_isolated(Measurement& measurement, std::span<Contender> contenders, const Timed& timed,
                   const World& world, bool rehearsed, std::int64_t iterations,
                   std::vector<Samples>& samples) {
  std::vector<std::vector<Measurement::Iteration>> measured(contenders.size());
  in_rounds(timed, iterations, [&](std::size_t i) {
    if (rehearsed) measurement.rehearse(contenders[i]);
    measured[i].push_back(measurement.once(contenders[i]));
  });
  for (const std::size_t i : timed) {
    for (const auto& iteration : measured[i]) samples[i].microseconds.push_back(iteration.run_us);
    samples[i].microseconds = world.max(samples[i].microseconds);
    const double usual_us = summarize(samples[i].microseconds).median;
    samples[i].stragglers = find_stragglers(world, measurement.delays(measured[i]), usual_us);
  }
}

void time_blocks(Measurement& measurement, std::span<Contender> contenders, const Timed& timed,
                 const World& world, const Block& block, std::vector<Samples>& samples) {
  in_rounds(timed, StoppingRule::kBlocks, [&](std::size_t i) {
    samples[i].microseconds.push_back(measurement.block(contenders[i], block));
  });
  for (const std::size_t i : timed) samples[i].microseconds = mean_over_ranks(world, samples[i].microseconds);
}

}  // namespace

std::vector<Samples> measure(std::span<Contender> contenders, const Job& job, const MeasuredCall& call,
                             const MeasureOptions& options) {
  Measurement measurement(job, call);
  std::vector<Samples> samples(contenders.size());
  Timed timed;
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    if (call.in_place && !contenders[i].in_place) continue;
    if (options.check && contenders[i].verified)
      samples[i].wrong = measurement.wrong(contenders[i], options.graphs > 0);
    if (samples[i].wrong.value_or(0) == 0) timed.push_back(i);
  }
  const StoppingRule& stop = options.stop;
  const double slowest_us = warm_up(measurement, contenders, timed, stop);
  const bool isolated = options.timing == TimingMethod::isolated;
  std::int64_t iterations = isolated ? stop.iterations_of(slowest_us)
                                     : stop.calls_of_block(slowest_us * std::max(1, options.graphs));
  if (stop.chooses()) iterations = job.world.broadcast(iterations);
  if (isolated) {
    const bool rehearsed = call.size() <= options.rehearsed;
    time_isolated(measurement, contenders, timed, job.world, rehearsed, iterations, samples);
  } else {
    constexpr double kNextToNoTime_us = 1000;
    constexpr double kMostPerWatch = 64;
    const Block block{
        .calls = static_cast<int>(iterations),
        .warmups = stop.warmups(),
        .barriers = options.timing == TimingMethod::osu,
        .waits = options.timing == TimingMethod::blocking,
        .graphs = options.graphs,
        // Without a warm-up nothing is known of a call.
        .calls_per_watch = stop.warmups() == 0
                               ? 1
                               : static_cast<int>(std::clamp(kNextToNoTime_us / std::max(slowest_us, 1.0),
                                                             1.0, kMostPerWatch))};
    time_blocks(measurement, contenders, timed, job.world, block, samples);
  }
  return samples;
}

}  // namespace polyring

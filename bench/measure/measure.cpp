#include "bench/measure/measure.hpp"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <random>
#include <utility>

#include "base/statistics.hpp"

namespace polyring {
namespace {

using Clock = std::chrono::steady_clock;

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

  /// Wrong elements on all ranks. A vendor's call owes no more than MPI asks for.
  Count wrong(Contender& contender) const {
    const Buffers buffers = place(contender);
    memory_.stale.write(buffers.output, output_count_);
    job_.transport.upload(buffers.input, fresh_);
    run(contender);
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

  /// The watchdog knows a little later that this rank did not run: to be asked when all iterations are over.
  std::vector<Delay> delays(std::span<const Iteration> iterations) const {
    std::vector<Delay> delays;
    for (const Iteration& iteration : iterations) {
      delays.push_back(iteration.delay);
      delays.back().paused = job_.watchdog.paused_between(iteration.arrived, iteration.done).value * 1e6;
    }
    return delays;
  }

 private:
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
    return microseconds(end - begin);
  }

  static double microseconds(Clock::duration duration) {
    return std::chrono::duration<double, std::micro>(duration).count();
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

int StoppingRule::iterations_of(double slowest_us) const {
  if (!chooses()) return iterations;
  const double fitting = time.value * 1e6 / std::max(slowest_us, 1.0);
  return static_cast<int>(std::clamp<double>(fitting, fewest, kMost));
}

std::vector<Samples> measure(std::span<Contender> contenders, const Job& job, const MeasuredCall& call,
                             const MeasureOptions& options) {
  Measurement measurement(job, call);
  std::vector<Samples> samples(contenders.size());
  const auto takes_part = [&](std::size_t i) { return !call.in_place || contenders[i].in_place; };
  if (options.check) {
    for (std::size_t i = 0; i < contenders.size(); ++i) {
      if (contenders[i].verified && takes_part(i)) samples[i].wrong = measurement.wrong(contenders[i]);
    }
  }
  const auto right = [&](std::size_t i) { return takes_part(i) && samples[i].wrong.value_or(0) == 0; };

  double slowest = 0;
  for (int warmup = 0; warmup < options.stop.warmups(); ++warmup) {
    slowest = 0;
    for (std::size_t i = 0; i < contenders.size(); ++i) {
      if (right(i)) slowest = std::max(slowest, measurement.once(contenders[i]).run_us);
    }
  }
  std::int64_t iterations = options.stop.iterations_of(slowest);
  if (options.stop.chooses()) iterations = job.world.broadcast(iterations);
  // The same on all ranks, and another order each round, so that none always follows the same contender.
  std::mt19937 random;  // NOLINT(cert-msc51-cpp): the same seed on purpose
  std::vector<std::size_t> order(contenders.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const bool rehearsed = call.size() <= options.rehearsed;
  std::vector<std::vector<Measurement::Iteration>> measured(contenders.size());
  for (std::int64_t iteration = 0; iteration < iterations; ++iteration) {
    std::shuffle(order.begin(), order.end(), random);
    for (const std::size_t i : order) {
      if (!right(i)) continue;
      if (rehearsed) measurement.rehearse(contenders[i]);
      measured[i].push_back(measurement.once(contenders[i]));
    }
  }
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (!right(i)) continue;
    for (const auto& iteration : measured[i]) samples[i].microseconds.push_back(iteration.run_us);
    samples[i].microseconds = job.world.max(samples[i].microseconds);
    const double usual_us = summarize(samples[i].microseconds).median;
    samples[i].stragglers = find_stragglers(job.world, measurement.delays(measured[i]), usual_us);
  }
  return samples;
}

}  // namespace polyring

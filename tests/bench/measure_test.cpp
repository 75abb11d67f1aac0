// Run under mpirun with any number of ranks: what the measuring loops do with allreduces that sleep, scribble
// and err on purpose.
#include "bench/measure/measure.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <thread>

#include "bench/contenders/mpi.hpp"
#include "bench/measure/training.hpp"
#include "collectives/runtime/transports/mpi.hpp"
#include "tests/mpi_tests.hpp"

namespace polyring {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr Count kCount = 2500;
constexpr ElementKind kKind = ElementKind::float32;
constexpr std::size_t kBytes = kCount * sizeof(float);

/// What is measured with where only times count: each rank moves its own.
Clock::time_point test_time;

Clock::time_point test_now() { return test_time; }

class Fake final : public CollectiveCall {
 public:
  using Run = std::function<void(const std::byte* input, std::byte* output)>;

  explicit Fake(Run run) : run_(std::move(run)) {}
  std::string algorithm() const override { return "fake"; }
  std::string implementation() const override { return "test"; }
  bool keeps_time_limit() const override { return false; }
  void run(const std::byte* input, std::byte* output) override { run_(input, output); }

 private:
  Run run_;
};

Contender contender(std::string name, Fake::Run run) {
  return {std::move(name), {}, std::make_unique<Fake>(std::move(run)), {}};
}

class MeasureTest : public ::testing::Test {
 protected:
  static constexpr double kUsual_us = 20e3;
  struct Called {
    std::size_t bucket;
    std::ptrdiff_t offset;
    Clock::time_point begin;
    Clock::time_point end;
  };

  static constexpr int kSteps = 5;
  static constexpr StepCompute kCompute{Seconds{0.005}, Seconds{0.010}, Seconds{0.003}};
  static constexpr milliseconds kFirstBucket{6};
  static constexpr milliseconds kLastBucket{20};
  static inline const std::vector<Bucket> kBuckets{{0, 1, 10, 0.3}, {1, 1, 20, 0.6}, {2, 1, 30, 1}};

  std::vector<Samples> measured(std::vector<Contender>& contenders, MeasureOptions options, bool in_place,
                                Bytes rehearsed = {}) {
    options.rehearsed = rehearsed;
    for (Contender& contender : contenders) contender.buffers = {input_.get(), output_.get()};
    return measure(contenders, job_, {payload_, {.count = kCount}, in_place}, options);
  }

  void alone(const TrainingSteps& measured) {
    const double compute_ms = kCompute.total().value * 1e3;
    EXPECT_TRUE(measured.total_ms.size() == kSteps && measured.steps.size() == kSteps) << "a step is missing";
    for (const Step& step : measured.steps) EXPECT_TRUE(step.buckets.empty()) << "a rank alone communicates";
    for (const double total : measured.total_ms) {
      EXPECT_GE(total, compute_ms) << fmt::format("{} ms for a step of {} ms", total, compute_ms);
    }
  }

  /// Other programs may delay most steps, but hardly all of many.
  void is_not_slow_every_time(const TrainingSteps& measured) {
    constexpr int kTries = 60;
    const double compute_ms = kCompute.total().value * 1e3;
    double least = *std::ranges::min_element(measured.total_ms);
    for (int i = 0; i < kTries && least >= 1.5 * compute_ms; ++i) {
      std::vector<Trainer> trainers(1);
      const TrainingWork work{kCompute, kBuckets, kKind, true, output_.get()};
      const auto again = measure_steps(trainers, job_, work, kSteps);
      least = *std::ranges::min_element(again.front().total_ms);
    }
    EXPECT_TRUE(least < 1.5 * compute_ms)
        << fmt::format("at least {} ms for a step of {} ms", least, compute_ms);
  }

  void in_company(const TrainingSteps& measured, const std::vector<Seconds>& ready) {
    EXPECT_TRUE(measured.total_ms.size() == kSteps && measured.steps.size() == kSteps) << "a step is missing";
    // The last bucket is released at the end of backward.
    const double least_ms = kCompute.total().value * 1e3 + static_cast<double>(kLastBucket.count());
    for (std::size_t i = 0; i < measured.steps.size(); ++i) {
      const Step& step = measured.steps[i];
      const double total_ms = measured.total_ms[i];
      EXPECT_GE(total_ms, least_ms) << fmt::format("{} ms are not those of the slowest rank", total_ms);
      EXPECT_TRUE(same_everywhere(total_ms)) << "ranks have different totals";
      EXPECT_GE(total_ms, step.total().value * 1e3) << "this rank took longer than the slowest one";
      EXPECT_GE(step.total(), kCompute.total()) << "a step is shorter than its computation";
      timeline(step, ready);
    }
  }

  void timeline(const Step& step, const std::vector<Seconds>& ready) {
    EXPECT_EQ(step.buckets.size(), ready.size()) << "a bucket is missing";
    Seconds stream_free;
    for (std::size_t i = 0; i < step.buckets.size(); ++i) {
      const BucketTimes& bucket = step.buckets[i];
      EXPECT_TRUE(bucket.bucket == i && bucket.ready == ready[i]) << "buckets are out of order";
      EXPECT_GE(bucket.communication.begin, ready[i]) << "an allreduce begins before its gradients exist";
      EXPECT_GE(bucket.communication.begin, stream_free) << "an allreduce begins before the last one ends";
      EXPECT_GE(bucket.communication.end, bucket.communication.begin) << "an allreduce ends before it begins";
      stream_free = bucket.communication.end;
    }
    EXPECT_GE(step.buckets.front().communication.duration().value * 1e3,
              static_cast<double>(kFirstBucket.count()))
        << "an allreduce is shorter than it was";
    EXPECT_TRUE(step.optimizer.begin >= stream_free && step.optimizer.begin >= step.backward.end)
        << "the optimiser begins too early";
    EXPECT_GE(step.optimizer.duration(), kCompute.optimizer) << "the optimiser is too short";
  }

  /// By the allreduces' own clock: from the last bucket of a step to the first of the next there are the
  /// optimiser, the step of the rank alone and all that is computed before the first release.
  void called_in_time(const std::vector<Called>& calls, Seconds first_release) {
    const std::vector<std::ptrdiff_t> offsets{0, 10 * size_of(kKind), 30 * size_of(kKind)};
    EXPECT_EQ(calls.size(), (kSteps + 1) * offsets.size()) << fmt::format("{} allreduces", calls.size());
    const Seconds pause = kCompute.optimizer + kCompute.total() + first_release;
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const std::size_t bucket = i % offsets.size();
      EXPECT_TRUE(calls[i].bucket == bucket && calls[i].offset == offsets[bucket])
          << "buckets are out of place";
      if (bucket != 0 || i == 0) continue;
      const std::chrono::duration<double> passed = calls[i].begin - calls[i - 1].end;
      EXPECT_GE(passed.count(), pause.value) << fmt::format("a bucket is sent after {} s", passed.count());
    }
  }

  bool same_everywhere(double value) const {
    const double greatest = world_.max(value);
    const double least = -world_.max(-value);
    return greatest == value && least == value;
  }

  static std::string late(const std::vector<Delay>& of_ranks) {
    std::string ranks;
    const std::vector<Seconds> by_rank = lateness(of_ranks, kUsual_us);
    for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
      if (by_rank[rank].value > 0) ranks += fmt::format("{} ", rank);
    }
    return ranks;
  }

  /// The first trainer is alone; the second's buckets are delayed by the first one and by the last rank.
  void training_steps(bool overlap) {
    std::byte* const gradients = output_.get();
    std::vector<Called> calls;
    std::vector<Trainer> trainers(2);
    for (std::size_t bucket = 0; bucket < kBuckets.size(); ++bucket) {
      const bool late = bucket == 2 && world_.rank() == world_.size() - 1;
      const milliseconds sleep = bucket == 0 ? kFirstBucket : late ? kLastBucket : milliseconds(0);
      trainers[1].allreduces.push_back(
          std::make_unique<Fake>([&calls, bucket, sleep, gradients](const std::byte* in, std::byte* out) {
            EXPECT_EQ(in, out) << "gradients are not reduced in place";
            const Clock::time_point begin = Clock::now();
            std::this_thread::sleep_for(sleep);
            calls.push_back({bucket, out - gradients, begin, Clock::now()});
          }));
    }
    const TrainingWork work{kCompute, kBuckets, kKind, overlap, gradients};
    const auto steps = measure_steps(trainers, job_, work, kSteps);
    EXPECT_EQ(steps.size(), 2U) << "not one result for each trainer";
    alone(steps[0]);
    is_not_slow_every_time(steps[0]);
    in_company(steps[1], release_times(kCompute, kBuckets, overlap));
    called_in_time(calls, release_times(kCompute, kBuckets, overlap).front());
  }

  const MpiWorld& world_ = testing::all_ranks();
  std::unique_ptr<Transport> transport_ = make_mpi_transport(world_);
  std::function<void(const std::string&)> abort_ = [this](const std::string& why) {
    fmt::print("rank {}: {}\n", world_.rank(), why);
    world_.abort(1);
  };
  Watchdog watchdog_{Seconds{30}, abort_};
  Job job_{world_, *transport_, watchdog_};
  Payload payload_{kKind, ReduceOp::sum, world_.size()};
  Memory input_ = transport_->allocate(Bytes{kBytes});
  Memory output_ = transport_->allocate(Bytes{kBytes});
  std::unique_ptr<CollectiveCall> honest_ = make_mpi_allreduce(world_, kKind, ReduceOp::sum, kCount);
};

TEST_F(MeasureTest, WhatCannotBeDoneInPlaceIsNotTried) {
  std::vector<Contender> contenders;
  int calls = 0;
  contenders.push_back(contender("out of place only", [&](const std::byte*, std::byte*) { ++calls; }));
  contenders.back().in_place = false;
  for (const bool check : {false, true}) {
    const auto samples = measured(contenders, {{2, 1}, check}, true);
    EXPECT_EQ(calls, 0);
    EXPECT_TRUE(samples.front().microseconds.empty());
    EXPECT_FALSE(samples.front().wrong.has_value());
  }
}

TEST_F(MeasureTest, OfBlocksAResultThatIsNotThereIsNoticed) {
  constexpr Count kBlocks = 2400;  // of one to six ranks
  for (const Collective collective :
       {Collective::reduce_scatter, Collective::allgather, Collective::alltoall}) {
    for (const bool in_place : {false, true}) {
      if (in_place && collective == Collective::alltoall) continue;
      std::vector<Contender> two;
      two.push_back(contender("nothing", [](const std::byte*, std::byte*) {}));
      two.push_back({"mpi", {}, make_mpi_call(collective, world_, kKind, ReduceOp::sum, kBlocks), {}});
      two.back().in_place = collective == Collective::allgather;
      for (Contender& each : two) each.buffers = {input_.get(), output_.get()};
      const MeasuredCall call{payload_, {.collective = collective, .count = kBlocks}, in_place};
      const auto samples = measure(two, job_, call, {{2, 1}});
      const bool alone = world_.size() == 1 && in_place;  // then there is nothing to do
      EXPECT_EQ(samples[0].wrong.value_or(0) > 0, !alone) << to_text(collective) << in_place;
      EXPECT_EQ(samples[1].wrong.value_or(0), 0) << to_text(collective) << in_place;
      EXPECT_EQ(samples[1].microseconds.empty(), in_place && !two[1].in_place);
    }
  }
}

/// In each iteration another rank is the slow one, and every rank must see its time.
TEST_F(MeasureTest, ASampleIsTheMaximumOverTheRanks) {
  job_.now = &test_now;
  int calls = 0;
  std::vector<Contender> contenders;
  contenders.push_back(contender("slow", [&](const std::byte*, std::byte*) {
    test_time += milliseconds(calls++ % world_.size() == world_.rank() ? 20 : 1);
  }));
  const auto samples = measured(contenders, {{6, 1}, false}, false);
  EXPECT_EQ(samples[0].microseconds.size(), 6U) << "not as many samples as iterations";
  EXPECT_TRUE(!samples[0].wrong) << "a result is said to be checked that was not";
  for (const double sample : samples[0].microseconds) {
    EXPECT_EQ(sample, 20e3) << fmt::format("a sample of {} us is not that of the slowest rank", sample);
  }
}

TEST_F(MeasureTest, RivalsTakeTurns) {
  for (const int warmup : {0, 1, 3}) {
    std::string order;
    std::vector<Contender> contenders;
    for (const char name : {'A', 'B', 'C'}) {
      contenders.push_back(
          contender({name}, [&order, name](const std::byte*, std::byte*) { order += name; }));
    }
    constexpr int kRounds = 60;
    measured(contenders, {{kRounds, warmup}, false}, false);
    std::map<std::string, int> followed;  // "AB": B comes right after A in a round
    for (std::size_t at = 0; at + 2 < order.size(); at += 3) {
      std::string round = order.substr(at, 3);
      ++followed[round.substr(0, 2)];
      ++followed[round.substr(1, 2)];
      std::sort(round.begin(), round.end());
      EXPECT_EQ(round, "ABC") << "somebody misses a round, or has two turns in it";
    }
    EXPECT_EQ(static_cast<int>(order.size()), 3 * (warmup + kRounds)) << "too many or too few turns";
    EXPECT_EQ(followed.size(), 6U) << "somebody never follows somebody else";
    // Of 120 pairs each is expected 20 times.
    for (const auto& [pair, times] : followed)
      EXPECT_GE(times, 8) << fmt::format("{}: {} times", pair, times);
  }
}

/// Whatever the contenders leave in the buffers, each finds this rank's payload again.
TEST_F(MeasureTest, TheInputIsWrittenAnew) {
  std::vector<std::byte> fresh(kBytes);
  payload_.fill(world_.rank(), fresh.data(), kCount);
  for (const bool in_place : {false, true}) {
    int calls = 0;
    int stale = 0;
    const Fake::Run scribble = [&](const std::byte* input, std::byte* output) {
      ++calls;
      stale += std::memcmp(input, fresh.data(), kBytes) != 0;
      EXPECT_EQ(input == output, in_place) << "in place and out of place are mistaken for each other";
      std::memset(input_.get(), 0x55, kBytes);
      std::memset(output_.get(), 0x55, kBytes);
    };
    std::vector<Contender> contenders;
    contenders.push_back(contender("A", scribble));
    contenders.push_back(contender("B", scribble));
    for (const Bytes rehearsed : {Bytes{kBytes}, Bytes{kBytes - 1}}) {
      calls = 0;
      measured(contenders, {{5, 2}, false}, in_place, rehearsed);
      const int each = rehearsed.value == kBytes ? 2 + 2 * 5 : 2 + 5;
      EXPECT_TRUE(calls == 2 * each && stale == 0)
          << fmt::format("{} of {} calls found a stale input", stale, calls);
    }
  }
}

TEST_F(MeasureTest, ARehearsalIsNotTimed) {
  job_.now = &test_now;
  int calls = 0;
  std::vector<Contender> contenders;
  contenders.push_back(contender("slow in rehearsals", [&](const std::byte*, std::byte*) {
    test_time += milliseconds(++calls % 2 == 0 ? 40 : 2);
  }));
  const auto samples = measured(contenders, {{5, 1}, false}, false, Bytes{kBytes});
  EXPECT_EQ(samples[0].microseconds, std::vector<double>(5, 2e3)) << "rehearsals are timed";
}

/// Rank r spoils r + 1 elements of the result of one contender; another one writes no result at all.
TEST_F(MeasureTest, WhoIsWrongIsNotTimed) {
  for (const bool in_place : {false, true}) {
    std::vector<int> calls(4);
    const auto counted = [&](std::size_t which, Count spoiled) {
      return [&, which, spoiled](const std::byte* input, std::byte* output) {
        ++calls[which];
        honest_->run(input, output);
        std::memset(output, 0xff, bytes_of(spoiled, kKind).value);
      };
    };
    std::vector<Contender> contenders;
    contenders.push_back(contender("right", counted(0, 0)));
    contenders.push_back(contender("wrong", counted(1, world_.rank() + 1)));
    contenders.push_back(contender("right too", counted(2, 0)));
    if (!in_place) contenders.push_back(contender("idle", [&](const std::byte*, std::byte*) { ++calls[3]; }));
    const auto samples = measured(contenders, {{3, 2}, true}, in_place);

    const Count ranks = world_.size();
    for (const std::size_t right : {0U, 2U}) {
      EXPECT_EQ(samples[right].wrong, 0) << "a right result is taken for a wrong one";
      EXPECT_EQ(samples[right].microseconds.size(), 3U) << "a right contender is not timed";
      EXPECT_EQ(calls[right], 1 + 2 + 3) << fmt::format("a right contender ran {} times", calls[right]);
    }
    EXPECT_EQ(samples[1].wrong, ranks * (ranks + 1) / 2) << "wrong elements are not those of all ranks";
    EXPECT_TRUE(samples[1].microseconds.empty() && calls[1] == 1) << "a wrong contender is timed";
    if (in_place) continue;
    EXPECT_EQ(samples[3].wrong, ranks * kCount) << "what was never written passes for a result";
    EXPECT_TRUE(samples[3].microseconds.empty() && calls[3] == 1) << "an idle contender is timed";
  }
}

/// Another NaN than the one that all plans make is wrong of a plan, and right of a vendor's call.
TEST_F(MeasureTest, APlanOwesBitsAndAVendorValues) {
  const Payload special(kKind, ReduceOp::sum, world_.size(), PayloadValues::special);
  Count nans = 0;
  const auto other_nans = [&](const std::byte* input, std::byte* output) {
    honest_->run(input, output);
    nans = 0;
    for (std::size_t at = 0; at < kBytes; at += sizeof(float)) {
      float value = 0;
      std::memcpy(&value, output + at, sizeof value);
      if (value == value) continue;
      const std::uint32_t other = 0xffc00001;
      std::memcpy(output + at, &other, sizeof other);
      ++nans;
    }
  };
  std::vector<Contender> contenders;
  contenders.push_back(contender("vendor", other_nans));
  contenders.push_back(contender("plan", other_nans));
  contenders[1].plan = Plan{};
  for (Contender& contender : contenders) contender.buffers = {input_.get(), output_.get()};
  const auto samples = measure(contenders, job_, {special, {.count = kCount}}, {{1, 0}});
  EXPECT_EQ(samples[0].wrong, 0) << fmt::format("{} values of a vendor are taken for wrong",
                                                *samples[0].wrong);
  EXPECT_TRUE(nans > 0 && samples[1].wrong == world_.sum(nans)) << "other bits of a plan's NaNs pass";
}

/// Rank 0 is slower than the others, so that ranks which chose for themselves would not agree.
TEST_F(MeasureTest, TheNumberOfIterationsIsChosen) {
  job_.now = &test_now;
  const auto chosen = [&](std::chrono::microseconds on_first_rank) {
    std::vector<Contender> contenders;
    contenders.push_back(contender("sleepy", [&, on_first_rank](const std::byte*, std::byte*) {
      if (world_.rank() == 0) test_time += on_first_rank;
    }));
    const auto samples = measured(contenders, {{0, 1}, false}, false);
    const auto iterations = samples[0].microseconds.size();
    EXPECT_TRUE(same_everywhere(static_cast<double>(iterations))) << "ranks choose different numbers";
    return iterations;
  };
  for (const auto& [time, expected] :
       std::map<std::chrono::microseconds, std::size_t>{{std::chrono::microseconds(0), 1000},
                                                        {std::chrono::microseconds(400), 1000},
                                                        {milliseconds(1), 500},
                                                        {milliseconds(5), 100},
                                                        {milliseconds(60), 10}}) {
    const auto iterations = chosen(time);
    EXPECT_EQ(iterations, expected) << fmt::format("{} iterations of {} us", iterations, time.count());
  }
}

/// One rank is long about one iteration, and so comes late to the next.
TEST_F(MeasureTest, WhoComesLateIsNamed) {
  constexpr milliseconds kLate{300};
  const Rank last = world_.size() - 1;
  int calls = 0;
  std::vector<Contender> contenders;
  contenders.push_back(contender("late", [&](const std::byte*, std::byte*) {
    if (++calls == 5 && world_.rank() == last) std::this_thread::sleep_for(kLate);
  }));
  contenders.push_back(contender("in time", [](const std::byte*, std::byte*) {}));
  const auto samples = measured(contenders, {{10, 1}, false}, false);
  Stragglers stragglers;
  for (const Samples& of_contender : samples) stragglers.add(of_contender.stragglers);
  const std::vector<std::string> sentences = stragglers.sentences(world_);
  if (world_.size() == 1) {
    EXPECT_TRUE(sentences.empty()) << "a rank alone is late";
    return;
  }
  // What runs beside the test may delay another rank, too.
  const std::string beginning = fmt::format("rank {} ({}) came ", last, world_.host(last));
  const auto named = std::ranges::find_if(
      sentences, [&](const std::string& sentence) { return sentence.starts_with(beginning); });
  EXPECT_NE(named, sentences.end()) << "who comes late is not named";
}

TEST_F(MeasureTest, WhoIsLate) {
  // In what follows a rank either took long before the barrier or waited there.
  const auto late_when = [&](const std::vector<double>& waited_us) {
    std::vector<Delay> of_ranks;
    const double longest = *std::ranges::max_element(waited_us);
    for (const double waited : waited_us) of_ranks.push_back({.before = longest - waited, .waited = waited});
    return late(of_ranks);
  };
  EXPECT_TRUE(late_when({0}).empty() && late_when({5, 5, 5}).empty()) << "nobody is late";
  EXPECT_TRUE(late_when({0, 199e3}).empty()) << "less than ten iterations are late";
  EXPECT_TRUE(late_when({0, 201e3}) == "0 " && late_when({201e3, 0}) == "1 ") << "one of two is late";
  EXPECT_EQ(late_when({2e6, 2e6, 0, 2e6}), "2 ") << "one of four is late";
  EXPECT_EQ(late_when({2e6, 0, 0, 2e6}), "1 2 ") << "a host of two is late";
  EXPECT_TRUE(late_when({2e6, 0, 0, 0}).empty()) << "one comes early";
  EXPECT_EQ((lateness(std::vector<Delay>{{.before = 3e6}, {.waited = 3e6}}, kUsual_us)[0]), Seconds{3})
      << "how late";
}

/// Where it makes the others wait depends on whom it has let out of the barrier before.
TEST_F(MeasureTest, WhoDidNotRunIsLate) {
  constexpr Delay kInTime{.before = 3};
  constexpr Delay kWaited{.before = 3, .waited = 2e6};
  constexpr Delay kWaitedBefore{.before = 2e6};
  constexpr Delay kPaused{.paused = 2e6};
  constexpr Delay kPausedAtTheBarrier{.waited = 2e6, .paused = 2e6};
  EXPECT_EQ(late({kInTime, kPaused, kInTime}), "1 ") << "the others wait in the midst of an iteration";
  EXPECT_EQ(late({kWaited, kPausedAtTheBarrier, kWaited, kWaited}), "1 ") << "all wait at the barrier";
  EXPECT_EQ(late({kWaited, kPausedAtTheBarrier, kInTime}), "1 ") << "one of three waits at the barrier";
  EXPECT_EQ(late({kWaited, kPausedAtTheBarrier, kWaited, kInTime}), "1 ") << "one of four does not wait";
  EXPECT_EQ(late({kInTime, kPausedAtTheBarrier}), "1 ") << "the only other one does not wait";
  EXPECT_TRUE(late({kInTime, kInTime, kWaited}).empty() && late({kInTime, kWaited}).empty())
      << "it waits at the next";
  EXPECT_TRUE(late({kInTime, kInTime, kWaitedBefore}).empty())
      << "it has waited in the midst of the iteration";
  EXPECT_TRUE(late({kPaused, kPaused}).empty()) << "none ran";
}

/// A watchdog waits for allreduces, and not for a model that computes for longer than its time limit.
TEST_F(MeasureTest, ComputingTakesItsTime) {
  Watchdog impatient(Seconds{0.01}, abort_);
  std::vector<Trainer> trainers(1);
  trainers[0].allreduces.push_back(std::make_unique<Fake>([](const std::byte*, std::byte*) {}));
  const StepCompute compute{Seconds{1.5}, Seconds{0}, Seconds{1.5}};
  measure_steps(trainers, {world_, *transport_, impatient},
                {compute, {{0, 1, 10, 1}}, kKind, true, output_.get()}, 0);
}

TEST_F(MeasureTest, TrainingSteps) { training_steps(false); }

TEST_F(MeasureTest, TrainingStepsWithOverlap) { training_steps(true); }

}  // namespace
}  // namespace polyring

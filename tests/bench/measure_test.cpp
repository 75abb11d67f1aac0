// Run under mpirun with any number of ranks: what the measuring loop does with contenders that sleep,
// scribble and err on purpose.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <tuple>
#include <utility>

#include "bench/measure/stragglers.hpp"
#include "tests/bench/measure_fixture.hpp"

namespace polyring {
namespace {

using std::chrono::milliseconds;

constexpr double kUsual_us = 20e3;

std::string late(const std::vector<Delay>& of_ranks) {
  std::string ranks;
  const std::vector<Seconds> by_rank = lateness(of_ranks, kUsual_us);
  for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
    if (by_rank[rank].value > 0) ranks += fmt::format("{} ", rank);
  }
  return ranks;
}

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

/// A device's, that goes on by itself: a run takes 10 ms of the host's, and a millisecond for each rank up to
/// this one by its own clock.
class OnDevice final : public CollectiveCall {
 public:
  explicit OnDevice(Rank rank) : own_us_(1e3 * (rank + 1)) {}
  std::string algorithm() const override { return "device"; }
  std::string implementation() const override { return "test"; }
  bool keeps_time_limit() const override { return false; }
  void run(const std::byte* input, std::byte* output) override {
    start(input, output);
    finish();
  }
  void start(const std::byte*, std::byte*) override { ++started_; }
  void finish() override {
    most_ = std::max(most_, started_);
    test_time += milliseconds(10) * std::exchange(started_, 0);
  }
  std::optional<double> device_us() const override { return own_us_; }
  std::unique_ptr<GpuGraph> capture(int calls, const std::byte*, std::byte*) override {
    return std::make_unique<Graph>(calls);
  }

  int most_at_once() const { return most_; }

 private:
  /// A call in it takes 2 ms.
  class Graph final : public GpuGraph {
   public:
    explicit Graph(int calls) : calls_(calls) {}
    void start() override { ++started_; }
    void wait() override { test_time += milliseconds(2) * calls_ * std::exchange(started_, 0); }

   private:
    int calls_;
    int started_ = 0;
  };

  double own_us_;
  int started_ = 0;
  int most_ = 0;
};

TEST_F(MeasureTest, ADevicesClockIsBelievedAndItsCallsFollowEachOther) {
  job_.now = &test_now;
  const double slowest_us = 1e3 * world_.size();
  const double mean_us = 0.5e3 * (world_.size() + 1);
  for (const auto& [timing, expected_us, at_once] :
       {std::tuple{TimingMethod::isolated, slowest_us, 1}, std::tuple{TimingMethod::osu, mean_us, 1},
        std::tuple{TimingMethod::back_to_back, 10e3, 4}}) {
    auto device = std::make_unique<OnDevice>(world_.rank());
    const OnDevice& seen = *device;
    std::vector<Contender> contenders;
    contenders.push_back({"device", {}, std::move(device), {}});
    const auto samples = measured(contenders, {.stop = {4, 1}, .check = false, .timing = timing}, false);
    ASSERT_FALSE(samples[0].microseconds.empty());
    for (const double sample : samples[0].microseconds)
      EXPECT_NEAR(sample, expected_us, 1e-6) << to_text(timing);
    EXPECT_EQ(seen.most_at_once(), at_once) << to_text(timing);
  }
}

TEST_F(MeasureTest, CallsOfAGraphShareItsTime) {
  job_.now = &test_now;
  MeasureOptions options{.stop = {4, 1}, .check = false, .timing = TimingMethod::graph};
  options.graphs = 3;
  std::vector<Contender> contenders;
  contenders.push_back({"device", {}, std::make_unique<OnDevice>(world_.rank()), {}});
  const auto samples = measured(contenders, options, false);
  ASSERT_FALSE(samples[0].microseconds.empty());
  for (const double sample : samples[0].microseconds) EXPECT_NEAR(sample, 2e3, 1e-6);
  contenders.push_back(contender("none", [](const std::byte*, std::byte*) {}));
  EXPECT_THROW(measured(contenders, options, false), AgreedError);
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

/// With a clock that moves whenever it is read, a call takes one step of it, and a whole iteration several.
TEST_F(MeasureTest, TheTimeIsThatOfCallsOrOfWholeIterations) {
  job_.now = [] { return test_time += milliseconds(1); };
  const auto chosen = [&](bool of_calls) {
    std::vector<Contender> contenders;
    contenders.push_back(contender("quick", [](const std::byte*, std::byte*) {}));
    MeasureOptions options{{0, 1}, false};
    options.stop.of_calls = of_calls;
    return measured(contenders, options, false)[0].microseconds.size();
  };
  EXPECT_EQ(chosen(true), 500U);
  EXPECT_LT(chosen(false), 200U) << "filling buffers and barriers count for nothing";
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

}  // namespace
}  // namespace polyring

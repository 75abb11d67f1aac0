// The measuring loop where a contender's turn is a block of calls; see measure_test.cpp.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <thread>

#include "tests/bench/measure_fixture.hpp"

namespace polyring {
namespace {

using std::chrono::milliseconds;

/// Rank r takes r + 1 ms for a call. The clock stands still in barriers.
TEST_F(MeasureTest, ASampleOfABlockIsTheMeanOverCallsAndRanks) {
  job_.now = &test_now;
  for (const TimingMethod timing : {TimingMethod::osu, TimingMethod::back_to_back, TimingMethod::blocking}) {
    int calls = 0;
    std::vector<Contender> contenders;
    contenders.push_back(contender("slow", [&](const std::byte*, std::byte*) {
      test_time += milliseconds(world_.rank() + 1) * (calls++ % 2 == 0 ? 1 : 3);
    }));
    const auto samples = measured(contenders, {{4, 2}, false, timing}, false);
    const double mean_us = (world_.size() + 1) * 500.0 * 2;  // of ranks, and of calls of 1 and 3
    EXPECT_EQ(samples[0].microseconds.size(), StoppingRule::kBlocks);
    for (const double sample : samples[0].microseconds) {
      EXPECT_NEAR(sample, mean_us, 1e-6) << to_text(timing);
      EXPECT_TRUE(same_everywhere(sample));
    }
    EXPECT_TRUE(samples[0].stragglers.empty());
    EXPECT_EQ(calls, 2 + StoppingRule::kBlocks * (2 + 4)) << "warm-up, then blocks with their own";
  }
}

TEST_F(MeasureTest, BlocksTakeTurnsOnTheSameBuffers) {
  std::vector<std::byte> fresh(kBytes);
  payload_.fill(world_.rank(), fresh.data(), kCount);
  for (const TimingMethod timing : {TimingMethod::osu, TimingMethod::back_to_back}) {
    std::string order;
    std::vector<bool> found_fresh;
    std::vector<Contender> contenders;
    for (const char name : {'A', 'B'}) {
      contenders.push_back(contender({name}, [&, name](const std::byte* input, std::byte*) {
        order += name;
        found_fresh.push_back(std::memcmp(input, fresh.data(), kBytes) == 0);
        std::memset(input_.get(), 0x55, kBytes);
      }));
    }
    measured(contenders, {{5, 1}, false, timing}, false);
    constexpr std::size_t kBlock = 1 + 5;
    EXPECT_EQ(order.substr(0, 2), "AB") << "the first warm-up";
    ASSERT_EQ(order.size(), 2 + 2 * StoppingRule::kBlocks * kBlock);
    std::map<std::string, int> firsts;
    for (std::size_t at = 2; at < order.size(); at += 2 * kBlock) {
      const std::string round = order.substr(at, 2 * kBlock);
      const bool a_first = round.front() == 'A';
      const std::string expected =
          std::string(kBlock, a_first ? 'A' : 'B') + std::string(kBlock, a_first ? 'B' : 'A');
      EXPECT_EQ(round, expected);
      ++firsts[round.substr(0, 1)];
    }
    EXPECT_EQ(firsts.size(), 2U) << "the same always comes first";
    for (std::size_t at = 2; at < found_fresh.size(); ++at)
      EXPECT_EQ(found_fresh[at], (at - 2) % kBlock == 0) << "input is written anew before each block alone";
  }
}

/// Only the last rank takes long: the others begin no call before it has ended the one before.
TEST_F(MeasureTest, OsusCallsAreEachAfterABarrier) {
  std::vector<Clock::time_point> begins;
  std::vector<Clock::time_point> ends;
  std::vector<Contender> contenders;
  contenders.push_back(contender("uneven", [&](const std::byte*, std::byte*) {
    begins.push_back(Clock::now());
    if (world_.rank() == world_.size() - 1) std::this_thread::sleep_for(milliseconds(2));
    ends.push_back(Clock::now());
  }));
  measured(contenders, {{4, 0}, false, TimingMethod::osu}, false);
  for (std::size_t call = 0; call + 1 < begins.size(); ++call) {
    const auto ns = [](Clock::time_point time) {
      return static_cast<double>(time.time_since_epoch().count());
    };
    const double last_end = world_.max(ns(ends[call]));
    const double first_begin = -world_.max(-ns(begins[call + 1]));
    EXPECT_LE(last_end, first_begin) << "call " << call + 1;
  }
}

/// Tells when its calls were begun and waited for.
class Enqueued final : public CollectiveCall {
 public:
  explicit Enqueued(std::string& told) : told_(told) {}
  std::string algorithm() const override { return "enqueued"; }
  std::string implementation() const override { return "test"; }
  bool keeps_time_limit() const override { return false; }
  void run(const std::byte*, std::byte*) override { told_ += "r"; }
  void start(const std::byte*, std::byte*) override { told_ += "s"; }
  void finish() override { told_ += "f"; }

 private:
  std::string& told_;
};

TEST_F(MeasureTest, OnlyBlockingCallsAreWaitedForOneByOne) {
  for (const auto& [timing, block] :
       {std::pair{TimingMethod::back_to_back, "rsssf"}, std::pair{TimingMethod::blocking, "rsfsfsff"}}) {
    std::string told;
    std::vector<Contender> contenders;
    contenders.push_back({"enqueued", {}, std::make_unique<Enqueued>(told), {}});
    measured(contenders, {{3, 1}, false, timing}, false);
    std::string expected = "r";
    for (int i = 0; i < StoppingRule::kBlocks; ++i) expected += block;
    EXPECT_EQ(told, expected) << to_text(timing);
  }
}

TEST_F(MeasureTest, TheNumberOfCallsOfABlockIsChosen) {
  job_.now = &test_now;
  for (const auto& [call_time, expected] : std::map<std::chrono::microseconds, int>{
           {std::chrono::microseconds(0), 1000}, {milliseconds(1), 50}, {milliseconds(60), 5}}) {
    int calls = 0;
    std::vector<Contender> contenders;
    contenders.push_back(contender("sleepy", [&, on_first_rank = call_time](const std::byte*, std::byte*) {
      ++calls;
      if (world_.rank() == 0) test_time += on_first_rank;
    }));
    measured(contenders, {{0, 1}, false, TimingMethod::back_to_back}, false);
    EXPECT_EQ(calls, 1 + StoppingRule::kBlocks * (1 + expected)) << call_time.count();
  }
}

}  // namespace
}  // namespace polyring

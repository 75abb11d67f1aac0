#include "collectives/runtime/backoff.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>

namespace polyring {
namespace {

using namespace std::chrono_literals;

/// A clock that only this test moves: by each poll, and by each sleep.
struct TestTime {
  using Duration = std::chrono::nanoseconds;
  static constexpr Duration kPoll = 100ns;

  static Duration now() { return time; }
  static void yield() {
    ++yields;
    time += of_yield;
  }
  static void sleep(Duration duration) {
    time += duration;
    slept += duration;
    longest = std::max(longest, duration);
    shortest = std::min(shortest, duration);
  }
  static void restart() {
    time = slept = longest = 0ns;
    shortest = Duration::max();
    yields = 0;
    of_yield = 0ns;
  }

  static inline Duration time, slept, longest, shortest;
  static inline std::uint64_t yields;
  static inline Duration of_yield;  // how long another program keeps the core
};

using TestBackoff = BackoffIn<TestTime>;

/// A wait in vain; how often it looked.
std::uint64_t wait_in_vain(Seconds timeout, bool yields) {
  TestTime::restart();
  std::uint64_t polls = 0;
  for (TestBackoff backoff(timeout, yields); backoff.again(); ++polls) TestTime::time += TestTime::kPoll;
  return polls;
}

TEST(Backoff, EndsWhenItsTimeIsOver) {
  // Between two looks at the clock there are kSpins polls, and as many of the longest sleeps.
  const auto late = TestBackoff::kSpins * (TestTime::kPoll + TestBackoff::kLongestSleep);
  for (const bool yields : {false, true}) {
    wait_in_vain(Seconds{0.3}, yields);
    EXPECT_GT(TestTime::time, 300ms) << yields;
    EXPECT_LT(TestTime::time, 300ms + 2 * late) << yields;
  }
}

TEST(Backoff, BeginsAnewWithEveryProgress) {
  for (const bool yields : {false, true}) {
    TestTime::restart();
    TestBackoff backoff(Seconds{1}, yields);
    for (int poll = 0; poll < 5000; ++poll) {
      TestTime::time += 1ms;
      ASSERT_TRUE(backoff.again()) << yields;
      backoff.renew();
    }
    const auto begin = TestTime::time;
    while (backoff.again()) TestTime::time += 1ms;
    EXPECT_GE(TestTime::time - begin, 1s) << yields;
    EXPECT_LT(TestTime::time - begin, 2s) << yields;
  }
}

TEST(Backoff, SpinsWhereRanksHaveTheirCores) {
  const std::uint64_t polls = wait_in_vain(Seconds{0.5}, false);
  EXPECT_EQ(TestTime::slept, 0ns);
  EXPECT_EQ(TestTime::yields, 0U);
  EXPECT_GE(polls, 500ms / TestTime::kPoll);
}

TEST(Backoff, LeavesTheCoreToOthersWhereRanksShareIt) {
  const std::uint64_t polls = wait_in_vain(Seconds{0.5}, true);
  EXPECT_EQ(TestTime::yields, TestBackoff::kYields);
  EXPECT_GT(TestTime::slept, TestTime::time * 9 / 10);
  EXPECT_EQ(TestTime::shortest, TestBackoff::kShortestSleep);
  EXPECT_EQ(TestTime::longest, TestBackoff::kLongestSleep);
  EXPECT_LT(polls, 3000U);
}

TEST(Backoff, ReactsAtOnceInAShortWait) {
  TestTime::restart();
  TestBackoff backoff(Seconds{1}, true);
  for (std::uint64_t poll = 1; poll < TestBackoff::kSpins; ++poll) EXPECT_TRUE(backoff.again());
  EXPECT_EQ(TestTime::yields, 0U);
  EXPECT_EQ(TestTime::slept, 0ns);
}

TEST(Backoff, TellsTheTimeByTheSteadyClock) {
  const auto begin = std::chrono::steady_clock::now();
  for (Backoff backoff(Seconds{0.05}, true); backoff.again();) {
  }
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 50ms);
}

TEST(Backoff, SleepsSoonWhereYieldingTakesLong) {
  TestTime::restart();
  TestTime::of_yield = 4ms;  // a tick of 250 Hz
  TestBackoff backoff(Seconds{1}, true);
  while (TestTime::slept == 0ns) {
    ASSERT_TRUE(backoff.again());
    TestTime::time += TestTime::kPoll;
  }
  EXPECT_EQ(TestTime::yields, 1U);
  backoff.renew();
  ASSERT_TRUE(backoff.again());
  EXPECT_EQ(TestTime::yields, 1U) << "yields again in the same wait";
}

TEST(Backoff, EndsAtTheNextPollWhereYieldingTakesLong) {
  TestTime::restart();
  TestTime::of_yield = 4ms;
  for (TestBackoff backoff(Seconds{0.002}, true); backoff.again();) TestTime::time += TestTime::kPoll;
  EXPECT_LT(TestTime::time, 5ms);
}

}  // namespace
}  // namespace polyring

#include "collectives/patience.hpp"

#include <gtest/gtest.h>
#include <time.h>

#include <chrono>
#include <cstdint>

namespace polyring {
namespace {

/// A wait in vain: how long it took, how much of a core, and how often it looked.
struct Wait {
  double seconds = 0;
  double busy_seconds = 0;
  std::uint64_t polls = 0;
};

double busy_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

Wait wait_in_vain(Seconds timeout, bool yields) {
  const auto begin = std::chrono::steady_clock::now();
  const double busy = busy_seconds();
  Wait wait;
  for (Patience patience(timeout, yields); patience.again();) ++wait.polls;
  wait.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  wait.busy_seconds = busy_seconds() - busy;
  return wait;
}

TEST(Patience, EndsWhenItsTimeIsOver) {
  for (const bool yields : {false, true}) {
    const Wait wait = wait_in_vain(Seconds{0.3}, yields);
    EXPECT_GE(wait.seconds, 0.3) << yields;
    EXPECT_LT(wait.seconds, 5) << yields;  // of a busy machine too
  }
}

TEST(Patience, BeginsAnewWithEveryProgress) {
  constexpr int kLooks = 400;  // of which one or more are at the clock
  for (const bool yields : {false, true}) {
    Patience patience(Seconds{1}, yields);
    for (int i = 0; i < kLooks; ++i) ASSERT_TRUE(patience.again()) << yields;
    const auto begin = std::chrono::steady_clock::now();
    while (std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(1200)) patience.renew();
    for (int i = 0; i < kLooks; ++i) ASSERT_TRUE(patience.again()) << yields;
    while (patience.again()) {
    }
    EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(1500)) << yields;
  }
}

TEST(Patience, LeavesTheCoreToOthersOnlyWhereRanksShareIt) {
  const Wait alone = wait_in_vain(Seconds{0.5}, false);
  const Wait sharing = wait_in_vain(Seconds{0.5}, true);
  EXPECT_LT(sharing.busy_seconds, 0.2 * sharing.seconds);
  EXPECT_GT(alone.busy_seconds, 2 * sharing.busy_seconds);
  EXPECT_GT(alone.polls, 100 * sharing.polls);
}

}  // namespace
}  // namespace polyring

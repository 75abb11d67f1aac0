// The engine on workloads of a few flows, where it is plain what must happen.
#include "simulation/engine.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "tests/simulation/small_workload.hpp"

namespace polyring {
namespace {

using testing::add_round;
using testing::small_workload;

double seconds(const Workload& workload) { return run(workload, {})->seconds; }

TEST(Engine, GivesWhatFollowsOnAConnectionTheRateOfItsOwnWay) {
  Workload both = small_workload(2, {1, 10});
  add_round(both, 0, 1, 0, 10, 0);
  add_round(both, 0, 1, 0, 10, 1);
  EXPECT_DOUBLE_EQ(seconds(both), 10 + 1);
}

TEST(Engine, RefusesAWindowOfNothing) {
  Workload one = small_workload(2, {1});
  add_round(one, 0, 1, 0, 10, 0);
  EXPECT_THROW(run(one, {.window = 0}), Error) << "would take no time at all";
}

TEST(Engine, LetsTheOlderStreamGoFirstWhereTwoComeTogether) {
  // Of the first stream another message follows, over another resource. Its first has both ends last.
  Workload two = small_workload(3, {1, 1});
  add_round(two, 1, 2, 0, 10, 0);
  add_round(two, 1, 2, 1, 30, 1);
  two.courses.push_back({1, 2, 2});
  add_round(two, 0, 1, 0, 10, 0);
  EXPECT_DOUBLE_EQ(seconds(two), 10 + 30);
}

TEST(Engine, SkipsNoPeriodsOfThatWhichDriftsSlowly) {
  // Both repeat, but each time the second falls behind a little more.
  Workload drifting = small_workload(4, {1, 1});
  add_round(drifting, 0, 1, 0, 1, 0);
  add_round(drifting, 2, 3, 1, 1.005, 1);
  drifting.rounds = {{0, 2, 1000}};
  drifting.courses = {{1, 0, 1}};
  EXPECT_NEAR(seconds(drifting), 1005, 1e-6);
}

}  // namespace
}  // namespace polyring

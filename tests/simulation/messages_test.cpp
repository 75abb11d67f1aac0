// Messages between pairs: what shares a link, and what does not.
#include "simulation/messages.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "tests/simulation/clusters.hpp"

namespace polyring {
namespace {

using namespace testing;

constexpr double kBytes = 1e8;

double time_of(const std::vector<Message>& messages, const Cluster& cluster, const Costs& costs = {}) {
  const Router router(cluster);
  return simulate(messages, cluster, router, costs).time.value;
}

void expect_same(double simulated, double closed_form) { EXPECT_NEAR(simulated / closed_form, 1, 1e-9); }

TEST(Messages, TakeTheirLatencyAndTheirBytes) {
  const Cluster cluster = uniform(2, 2);
  expect_same(time_of({{0, 1, kBytes}}, cluster), kLocalLatency + kBytes / kLink);
  expect_same(time_of({{0, 2, kBytes}}, cluster), kLatency + kBytes / kNic);
  expect_same(time_of({{0, 2, kBytes}}, cluster, {{}, {3e-6}, {}}), kLatency + 3e-6 + kBytes / kNic);
  EXPECT_EQ(time_of({}, cluster), 0);
}

TEST(Messages, ShareTheNicInOneDirectionOnly) {
  const Cluster cluster = uniform(3, 2);
  expect_same(time_of({{0, 2, kBytes}, {1, 3, kBytes}}, cluster), kLatency + 2 * kBytes / kNic);
  // As in a pipeline over hosts: what comes in does not slow down what goes out.
  expect_same(time_of({{0, 2, kBytes}, {2, 4, kBytes}}, cluster), kLatency + kBytes / kNic);
}

TEST(Messages, OfUnequalSizesLeaveTheRestOfTheNicToOthers) {
  const Cluster cluster = uniform(3, 2);
  expect_same(time_of({{0, 2, kBytes}, {1, 4, 3 * kBytes}}, cluster), kLatency + 4 * kBytes / kNic);
  // Half the rate until the short one is through, then all of it.
  expect_same(time_of({{0, 2, kBytes}, {1, 4, kBytes}, {3, 5, kBytes}}, cluster),
              kLatency + 2 * kBytes / kNic);
}

}  // namespace
}  // namespace polyring

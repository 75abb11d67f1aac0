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

TEST(Messages, ShareTheLinkOfADevicesFunctions) {
  Cluster cluster = uniform(2, 2);
  Machine& machine = cluster.groups.front().machine;
  constexpr double kSlot = 1.5 * kNic;
  machine.links.back().bandwidth = {kSlot};
  machine.nics.push_back(machine.nics.front());
  machine.nics[1].name = "nic1";
  machine.links.push_back(machine.links.back());
  machine.links.back().from.index = 1;
  const std::vector<Message> both{{0, 2, kBytes}, {1, 3, kBytes}};
  machine.nics[0].pci = "0000:4d:00.0";
  machine.nics[1].pci = "0000:4e:00.0";
  expect_same(time_of(both, cluster), kLatency + kBytes / kNic);
  machine.nics[1].pci = "0000:4d:00.1";
  expect_same(time_of(both, cluster), kLatency + 2 * kBytes / kSlot);
  // The other direction is free.
  expect_same(time_of({{0, 2, kBytes}, {3, 1, kBytes}}, cluster), kLatency + kBytes / kNic);
}

}  // namespace
}  // namespace polyring

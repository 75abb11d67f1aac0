#include "simulation/group_allreduce.hpp"

#include <gtest/gtest.h>

#include "collectives/schedule/catalogue.hpp"
#include "simulation/price_planner.hpp"
#include "tests/simulation/clusters.hpp"

namespace polyring {
namespace {

using namespace testing;

constexpr Count kCount = 1 << 20;
constexpr double kBytes = static_cast<double>(kCount) * kSize;

/// Two hosts of four ranks: `members` ranks in each group, `stride` apart.
GroupAllreduce groups(const Cluster& cluster, const Router& router, int members, int stride,
                      const PlanConstraints& constraints = {}) {
  return {cluster, router, "ring", constraints, kSize, members, stride, kCount};
}

TEST(GroupAllreduce, OfNeighboursHasALinkForEach) {
  const Cluster cluster = uniform(2, 4);
  const Router router(cluster);
  PlanConstraints whole;
  whole.chunk = Bytes{1 << 30};
  const double time = 2 * (kLocalLatency + kBytes / 2 / kLink);
  EXPECT_NEAR(groups(cluster, router, 2, 1, whole).time(kCount).value / time, 1, 1e-9);
}

TEST(GroupAllreduce, BetweenHostsSharesTheirNics) {
  const Cluster cluster = uniform(2, 4);
  const Router router(cluster);
  PlanConstraints whole;
  whole.chunk = Bytes{1 << 30};
  GroupAllreduce of_four = groups(cluster, router, 2, 4, whole);
  const double time = 2 * (kLatency + 4 * kBytes / 2 / kNic);
  EXPECT_NEAR(of_four.time(kCount).value / time, 1, 1e-9);
  EXPECT_NEAR(of_four.time(kCount / 2).value / (time / 2 + kLatency), 1, 1e-9);
  EXPECT_EQ(of_four.time(0), Seconds{});
}

TEST(GroupAllreduce, OfOneRankHasNothingToDo) {
  const Cluster cluster = uniform(2, 4);
  const Router router(cluster);
  EXPECT_EQ(groups(cluster, router, 1, 8).time(kCount), Seconds{});
}

TEST(GroupAllreduce, OfAllRanksIsTheAllreduceOfThese) {
  const Cluster cluster = uniform(2, 4);
  const Router router(cluster);
  GroupAllreduce all = groups(cluster, router, 8, 1);
  const Schedule schedule = make_schedule(all.plan(), 8, kCount, kSize);
  EXPECT_EQ(all.time(kCount), simulate(schedule, cluster, router, kSize).time);
}

}  // namespace
}  // namespace polyring

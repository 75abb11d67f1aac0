#include "simulation/group_collectives.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collectives/schedule/catalogue.hpp"
#include "simulation/price_planner.hpp"
#include "tests/models/refusal.hpp"
#include "tests/simulation/clusters.hpp"

namespace polyring {
namespace {

using namespace testing;
using ::testing::HasSubstr;

constexpr Count kCount = 1 << 20;
constexpr double kBytes = static_cast<double>(kCount) * kSize;

/// Two hosts of four ranks: `members` ranks in each group, `stride` apart.
GroupCollectives groups(const Cluster& cluster, const Router& router, int members, int stride,
                        const PlanConstraints& constraints = {}) {
  return {cluster, router, "ring", constraints, kSize, members, stride};
}

TEST(GroupCollectives, OfNeighboursHasALinkForEach) {
  const Cluster cluster = uniform(2, 4);
  const Router router(cluster);
  PlanConstraints whole;
  whole.chunk = Bytes{1 << 30};
  const double time = 2 * (kLocalLatency + kBytes / 2 / kLink);
  EXPECT_NEAR(groups(cluster, router, 2, 1, whole).time(Collective::allreduce, kCount).value / time, 1, 1e-9);
}

TEST(GroupCollectives, BetweenHostsSharesTheirNics) {
  const Cluster cluster = uniform(2, 4);
  const Router router(cluster);
  PlanConstraints whole;
  whole.chunk = Bytes{1 << 30};
  GroupCollectives of_four = groups(cluster, router, 2, 4, whole);
  const double time = 2 * (kLatency + 4 * kBytes / 2 / kNic);
  EXPECT_NEAR(of_four.time(Collective::allreduce, kCount).value / time, 1, 1e-9);
  EXPECT_NEAR(of_four.time(Collective::allreduce, kCount / 2).value / (time / 2 + kLatency), 1, 1e-9);
  EXPECT_EQ(of_four.time(Collective::allreduce, 0), Seconds{});
}

TEST(GroupCollectives, OfOneRankHasNothingToDo) {
  const Cluster cluster = uniform(2, 4);
  const Router router(cluster);
  EXPECT_EQ(groups(cluster, router, 1, 8).time(Collective::allreduce, kCount), Seconds{});
}

TEST(GroupCollectives, OfAllRanksIsTheAllreduceOfThese) {
  const Cluster cluster = uniform(2, 4);
  const Router router(cluster);
  GroupCollectives all = groups(cluster, router, 8, 1);
  const Schedule schedule = make_schedule(all.plan(Collective::allreduce, kCount), 8, kCount, kSize);
  EXPECT_EQ(all.time(Collective::allreduce, kCount), simulate(schedule, cluster, router, kSize).time);
}

TEST(GroupCollectives, OfHalvesTakeHalfAnAllreduce) {
  const Cluster cluster = uniform(2, 4);
  const Router router(cluster);
  PlanConstraints whole;
  whole.chunk = Bytes{1 << 30};
  whole.lanes = 1;
  for (const auto& [members, stride] : {std::pair(4, 1), std::pair(2, 4), std::pair(8, 1), std::pair(2, 2)}) {
    GroupCollectives of = groups(cluster, router, members, stride, whole);
    const double allreduce = of.time(Collective::allreduce, kCount).value;
    const double scatter = of.time(Collective::reduce_scatter, kCount).value;
    const double gather = of.time(Collective::allgather, kCount).value;
    EXPECT_NEAR(scatter / allreduce, 0.5, 1e-9) << members << " " << stride;
    EXPECT_NEAR(gather / allreduce, 0.5, 1e-9) << members << " " << stride;
    // So zero=3, with weights gathered for either pass, sends 1.5 times an allreduce (arXiv 1910.02054, 7.2).
    EXPECT_NEAR((2 * gather + scatter) / allreduce, 1.5, 1e-9);
  }
}

TEST(GroupCollectives, OfNeighboursScatterOverALinkForEach) {
  const Cluster cluster = uniform(2, 4);
  const Router router(cluster);
  PlanConstraints whole;
  whole.chunk = Bytes{1 << 30};
  GroupCollectives of_two = groups(cluster, router, 2, 1, whole);
  EXPECT_NEAR(of_two.time(Collective::reduce_scatter, kCount).value, kLocalLatency + kBytes / 2 / kLink,
              1e-12);
}

TEST(GroupCollectives, OfTokensGoToAllOthers) {
  const Cluster cluster = uniform(2, 4);
  const Router router(cluster);
  // Four groups of two, whose members are on both hosts: each sends half of its payload.
  GroupCollectives far = groups(cluster, router, 2, 4);
  EXPECT_NEAR(far.time(Collective::alltoall, kCount).value, kLatency + 4 * kBytes / 2 / kNic, 1e-12);
  GroupCollectives near = groups(cluster, router, 4, 1);
  EXPECT_NEAR(near.time(Collective::alltoall, kCount).value, kLocalLatency + kBytes / 4 / kLink, 1e-12);
}

/// Each rank an actor of its own, and each step by itself.
TEST(GroupCollectives, TakeWhatTheyTakeEventByEvent) {
  const Cluster cluster = uniform(3, 4);
  const Router router(cluster);
  const SimulationOptions each{.classes = false, .skip = false};
  for (const auto& [members, stride] :
       {std::pair(3, 4), std::pair(2, 2), std::pair(6, 2), std::pair(12, 1)}) {
    for (const Collective collective :
         {Collective::reduce_scatter, Collective::allgather, Collective::alltoall}) {
      for (const Count count : {Count{12}, Count{1 << 16}}) {
        GroupCollectives fast(cluster, router, "multi-ring", {}, kSize, members, stride);
        GroupCollectives slow(cluster, router, "multi-ring", {}, kSize, members, stride, each);
        EXPECT_NEAR(fast.time(collective, count).value / slow.time(collective, count).value, 1, 1e-9)
            << to_text(collective) << " " << members << " " << stride << " " << count;
      }
    }
  }
}

TEST(GroupCollectives, ThatAnAlgorithmCannotMakeAreRefused) {
  const Cluster cluster = uniform(2, 4);
  const Router router(cluster);
  GroupCollectives trees(cluster, router, "tree", {}, kSize, 2, 4);
  EXPECT_GT(trees.time(Collective::allreduce, kCount), Seconds{});
  EXPECT_THAT(refusal([&] { trees.time(Collective::allgather, kCount); }),
              HasSubstr("tree cannot make allgather"));
}

}  // namespace
}  // namespace polyring

// Plans for ranks that run, by links whose speeds are known or typical.
#include "simulation/topology_planner.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/simulation/clusters.hpp"
#include "topology/ranks_on_hosts.hpp"

namespace polyring {
namespace {

using ::testing::HasSubstr;
using testing::kSize;
using testing::uniform;

constexpr Count kCount = 1 << 22;

/// Two hosts of 4 processes.
Cluster processes(Bandwidth nic = Bandwidth{testing::kNic}) {
  Cluster cluster = uniform(2, 4);
  cluster.groups.front().machine.nics.front().ports.front().bandwidth = nic;
  return with_ranks_of(cluster, std::vector<HostRanks>{{4}, {4}}, "the test");
}

Problem problem_of(const Cluster& cluster, Collective collective = Collective::allreduce) {
  Problem problem = modelled_problem("multi-ring", cluster, kCount, kSize);
  problem.collective = collective;
  return problem;
}

std::uint64_t longest_chunk_of(const PlanChoice& choice) { return choice.plan.chunk.value; }

TEST(WithTypicalSpeeds, FillsInWhatIsNotKnown) {
  std::string why;
  const auto typical = with_typical_speeds(processes(), false, why);
  ASSERT_TRUE(typical) << why;
  EXPECT_EQ(Router(processes()).unknown_speed().empty(), false) << "the memory's";
  EXPECT_EQ(Router(*typical).unknown_speed(), "");
}

TEST(WithTypicalSpeeds, SaysWhatNobodyKnows) {
  std::string why;
  EXPECT_FALSE(with_typical_speeds(processes(Bandwidth{}), false, why));
  EXPECT_THAT(why, HasSubstr("the speed of nic0 is unknown"));
}

TEST(TopologyPlanner, PricesAllreducesInMessagesThatStayInACache) {
  std::string why;
  const Cluster cluster = *with_typical_speeds(processes(), false, why);
  const TopologyPlanner planner(cluster, false);
  const PlanChoice choice = planner.choose(problem_of(cluster), {});
  EXPECT_EQ(choice.source, PlanSource::price);
  Problem limited = problem_of(cluster);
  limited.longest_message = {1 << 20};
  EXPECT_EQ(choice.plan, PricePlanner(cluster, PricePlanner::Trust::machine).choose(limited, {}).plan);
  // What the transport asks for is kept where it is less.
  Problem shorter = problem_of(cluster);
  shorter.longest_message = {32 << 10};
  EXPECT_LT(longest_chunk_of(planner.choose(shorter, {})), longest_chunk_of(choice));
}

TEST(TopologyPlanner, PlansTheRestByRules) {
  std::string why;
  const Cluster cluster = *with_typical_speeds(processes(), false, why);
  const TopologyPlanner planner(cluster, false);
  for (const Collective collective : {Collective::reduce_scatter, Collective::allgather}) {
    const PlanChoice choice = planner.choose(problem_of(cluster, collective), {});
    EXPECT_EQ(choice.source, PlanSource::rules);
    EXPECT_EQ(choice.plan, RulePlanner().choose(problem_of(cluster, collective), {}).plan);
  }
}

TEST(TopologyPlanner, KeepsConstraints) {
  std::string why;
  const Cluster cluster = *with_typical_speeds(processes(), false, why);
  PlanConstraints constraints;
  constraints.dims = {2, 4};
  EXPECT_EQ(TopologyPlanner(cluster, false).choose(problem_of(cluster), constraints).plan.dims,
            constraints.dims);
}

TEST(ShorterOf, TakesZeroForNone) {
  EXPECT_EQ(shorter_of({}, {}), Bytes{});
  EXPECT_EQ(shorter_of({3}, {}), Bytes{3});
  EXPECT_EQ(shorter_of({}, {3}), Bytes{3});
  EXPECT_EQ(shorter_of({4}, {3}), Bytes{3});
}

}  // namespace
}  // namespace polyring

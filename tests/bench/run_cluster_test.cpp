// The hosts of a run, with the processes that it placed on each.
#include "bench/record/run_cluster.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/topology/support.hpp"

namespace polyring {
namespace {

using testing::small_machine;

std::vector<RankHost> on(const std::vector<std::string>& hosts) {
  std::vector<RankHost> placement;
  for (const std::string& host : hosts) placement.push_back({static_cast<int>(placement.size()), host});
  return placement;
}

TEST(RunCluster, KeepsHostsAsTheyAre) {
  Machine other = small_machine();
  other.nics[0].ports[0].bandwidth = gigabytes_per_second(1);
  Cluster cluster = cluster_of(small_machine(), 3);
  cluster.groups.push_back({other, 1});
  const Cluster run = with_ranks_of(cluster, on({"a", "a", "b", "b", "c", "d"}), "this job");
  ASSERT_EQ(run.groups.size(), 3u);
  EXPECT_EQ(run.groups[0].count, 2);
  EXPECT_EQ(run.groups[0].machine.ranks(), 2);
  EXPECT_EQ(run.groups[1].count, 1);
  EXPECT_EQ(run.groups[1].machine.ranks(), 1);
  EXPECT_EQ(run.groups[1].machine.nics[0].bandwidth(), small_machine().nics[0].bandwidth());
  EXPECT_EQ(run.groups[2].machine.nics[0].bandwidth(), gigabytes_per_second(1));
  EXPECT_EQ(run.groups[2].machine.ranks(), 1);
}

TEST(RunCluster, NeedsTheHostsOfTheRun) {
  EXPECT_THAT(testing::usage_sentence([] {
                with_ranks_of(cluster_of(small_machine(), 2), on({"a", "b", "c"}), "x");
              }),
              ::testing::HasSubstr("ran on 3 hosts, and its machine has 2"));
}

}  // namespace
}  // namespace polyring

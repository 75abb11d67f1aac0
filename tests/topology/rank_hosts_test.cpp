// Which ranks share a host, and how hosts of one name are told apart.
#include "topology/rank_hosts.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "topology/host_names.hpp"

namespace polyring {
namespace {

using ::testing::ElementsAre;

TEST(RankHosts, AreNumberedInTheOrderOfTheirFirstRanks) {
  const std::vector<HostKey> ranks{{"b1", "node7"}, {"b0", "node2"}, {"b1", "node7"}, {"b2", "node1"}};
  const RankHosts hosts = rank_hosts(ranks);
  EXPECT_EQ(hosts.count(), 3);
  EXPECT_THAT(hosts.of_rank, ElementsAre(0, 1, 0, 2));
  EXPECT_THAT(hosts.names, ElementsAre("node7", "node2", "node1"));
}

TEST(RankHosts, OfOneNameAreSeveralWhereKernelsDiffer) {
  const std::vector<HostKey> ranks{
      {"b0", "localhost"}, {"b0", "localhost"}, {"b1", "localhost"}, {"b2", "node1"}};
  const RankHosts hosts = rank_hosts(ranks);
  EXPECT_THAT(hosts.of_rank, ElementsAre(0, 0, 1, 2));
  EXPECT_THAT(hosts.names, ElementsAre("localhost#1", "localhost#2", "node1"));
}

TEST(RankHosts, OnOneKernelAreSeveralWhereNamesDiffer) {
  const std::vector<HostKey> ranks{{"b0", "node0"}, {"b0", "node1"}, {"b0", "node1"}};
  const RankHosts hosts = rank_hosts(ranks);
  EXPECT_THAT(hosts.of_rank, ElementsAre(0, 1, 1));
  EXPECT_THAT(hosts.names, ElementsAre("node0", "node1"));
}

TEST(RankHosts, OfTheFirstRanksAreTheSame) {
  const std::vector<HostKey> ranks{{"b0", "a"}, {"b1", "a"}, {"b0", "a"}, {"b2", "c"}};
  const RankHosts part = rank_hosts(ranks).first(3);
  EXPECT_THAT(part.of_rank, ElementsAre(0, 1, 0));
  EXPECT_THAT(part.names, ElementsAre("a#1", "a#2"));
  EXPECT_EQ(rank_hosts(ranks).first(1).count(), 1);
}

TEST(RankHosts, NeverGetANameThatAnotherHostHas) {
  std::vector<std::string> names{"a", "a#1", "a", "b", "a"};
  tell_apart(names);
  EXPECT_THAT(names, ElementsAre("a#2", "a#1", "a#3", "b", "a#4"));
}

}  // namespace
}  // namespace polyring

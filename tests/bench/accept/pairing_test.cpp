// All pairs of hosts meet once, in few rounds.
#include "bench/accept/pairing.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace polyring {
namespace {

void expect_disjoint(const std::vector<PairRound>& rounds, int hosts) {
  for (const PairRound& round : rounds) {
    std::set<int> seen;
    for (const HostPair& pair : round) {
      EXPECT_LT(pair.first, pair.second);
      EXPECT_GE(pair.first, 0);
      EXPECT_LT(pair.second, hosts);
      EXPECT_TRUE(seen.insert(pair.first).second);
      EXPECT_TRUE(seen.insert(pair.second).second);
    }
  }
}

TEST(AllPairRounds, HaveEachPairOnce) {
  for (int hosts = 1; hosts <= 33; ++hosts) {
    for (const int per_leaf : {0, 1, 2, 3, 4, 8}) {
      const auto rounds = all_pair_rounds(hosts, per_leaf);
      expect_disjoint(rounds, hosts);
      std::map<HostPair, int> met;
      for (const PairRound& round : rounds)
        for (const HostPair& pair : round) ++met[pair];
      EXPECT_EQ(met.size(), static_cast<std::size_t>(hosts * (hosts - 1) / 2)) << hosts << " by " << per_leaf;
      for (const auto& [pair, times] : met) EXPECT_EQ(times, 1);
      const bool full = per_leaf > 1 && per_leaf % 2 == 0 && hosts % per_leaf == 0;
      const int leaves = full ? hosts / per_leaf : 1;
      const int odd = full ? leaves % 2 * per_leaf * (leaves > 1 ? 1 : 0) : hosts % 2;
      EXPECT_EQ(static_cast<int>(rounds.size()), hosts == 1 ? 0 : hosts - 1 + odd)
          << hosts << " by " << per_leaf;
    }
  }
}

TEST(AllPairRounds, BeginInsideLeaves) {
  const auto rounds = all_pair_rounds(16, 4);
  for (std::size_t at = 0; at < rounds.size(); ++at) {
    for (const HostPair& pair : rounds[at]) EXPECT_EQ(pair.first / 4 == pair.second / 4, at < 3);
    EXPECT_EQ(rounds[at].size(), 8);
  }
}

TEST(SomePairRounds, AreAsManyAsAskedForAndMeetEveryHost) {
  for (const int hosts : {65, 128, 500}) {
    const auto rounds = some_pair_rounds(hosts, 0, 8);
    EXPECT_EQ(rounds.size(), 8);
    expect_disjoint(rounds, hosts);
    std::map<int, std::set<int>> partners;
    for (const PairRound& round : rounds) {
      for (const auto& [a, b] : round) {
        partners[a].insert(b);
        partners[b].insert(a);
      }
    }
    for (int host = 0; host < hosts; ++host) EXPECT_GE(partners[host].size(), 7);
  }
  EXPECT_EQ(some_pair_rounds(4, 0, 8), all_pair_rounds(4, 0));
}

TEST(SomePairRounds, MeetInsideAndOutsideOfLeaves) {
  int inside = 0;
  const auto rounds = some_pair_rounds(128, 16, 8);
  for (const PairRound& round : rounds)
    inside += round.front().first / 16 == round.front().second / 16 ? 1 : 0;
  EXPECT_GE(inside, 1);
  EXPECT_LT(inside, 8);
}

}  // namespace
}  // namespace polyring

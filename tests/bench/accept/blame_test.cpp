// Hosts, leaves and links that slow pairs speak against.
#include "bench/accept/blame.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace polyring {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<PairOutcome> outcomes(int hosts, const std::function<bool(HostPair)>& bad, int most = 1000) {
  std::vector<PairOutcome> all;
  for (const PairRound& round : some_pair_rounds(hosts, 0, most))
    for (const HostPair& pair : round) all.push_back({pair, bad(pair)});
  return all;
}

auto with_host(int host) {
  return [host](HostPair pair) { return pair.first == host || pair.second == host; };
}

TEST(Suspects, AreNobodyWhereAllIsGood) {
  for (int hosts = 1; hosts < 10; ++hosts) {
    const Suspects suspects = find_suspects(outcomes(hosts, [](HostPair) { return false; }));
    EXPECT_FALSE(suspects.everybody);
    EXPECT_THAT(suspects.hosts, IsEmpty());
    EXPECT_THAT(suspects.links, IsEmpty());
  }
}

TEST(Suspects, AreEachBadHostByItself) {
  for (int hosts = 3; hosts <= 64; hosts += 5) {
    for (int host = 0; host < hosts; ++host) {
      const Suspects suspects = find_suspects(outcomes(hosts, with_host(host), 8));
      EXPECT_FALSE(suspects.everybody);
      EXPECT_THAT(suspects.hosts, ElementsAre(host));
      EXPECT_THAT(suspects.links, IsEmpty());
    }
  }
}

TEST(Suspects, AreEachBadLinkByItself) {
  for (const int hosts : {3, 4, 5, 16}) {
    for (const PairOutcome& one : outcomes(hosts, [](HostPair) { return true; })) {
      const HostPair link = one.pair;
      const Suspects suspects = find_suspects(outcomes(hosts, [&](HostPair pair) { return pair == link; }));
      EXPECT_THAT(suspects.hosts, IsEmpty());
      EXPECT_THAT(suspects.links, ElementsAre(link));
    }
  }
}

TEST(Suspects, AreTwoHostsAndALinkAtOnce) {
  const auto bad = [](HostPair pair) {
    return with_host(2)(pair) || with_host(9)(pair) || pair == HostPair{0, 5};
  };
  const Suspects suspects = find_suspects(outcomes(16, bad));
  EXPECT_THAT(suspects.hosts, ElementsAre(2, 9));
  EXPECT_THAT(suspects.links, ElementsAre(HostPair{0, 5}));
}

/// A rail between two leaves is bad for all their pairs, and for no host alone.
TEST(Suspects, AreLinksWhereAHostIsGoodWithMost) {
  const auto bad = [](HostPair pair) { return pair.first < 2 && pair.second >= 6; };
  const Suspects suspects = find_suspects(outcomes(8, bad));
  EXPECT_THAT(suspects.hosts, IsEmpty());
  EXPECT_THAT(suspects.links, SizeIs(4));
}

TEST(Suspects, AreALinkOfTwoHostsAndEverybodyWhereMostIsBad) {
  EXPECT_THAT(find_suspects(outcomes(2, [](HostPair) { return true; })).links, ElementsAre(HostPair{0, 1}));
  for (const int hosts : {3, 4, 8}) {
    const Suspects suspects = find_suspects(outcomes(hosts, [](HostPair) { return true; }));
    EXPECT_TRUE(suspects.everybody);
    EXPECT_THAT(suspects.hosts, IsEmpty());
  }
}

/// Host h is under leaf h % so many.
std::vector<int> in_turn(int hosts, int leaves) {
  std::vector<int> of_hosts;
  for (int host = 0; host < hosts; ++host) of_hosts.push_back(host % leaves);
  return of_hosts;
}

auto leaving(int leaf, const std::vector<int>& leaves) {
  return [leaf, leaves](HostPair pair) {
    const auto is_there = [&](int host) { return leaves[static_cast<std::size_t>(host)] == leaf; };
    return is_there(pair.first) != is_there(pair.second);
  };
}

TEST(Suspects, AreALeafInsteadOfItsHosts) {
  for (const auto& [hosts, of] : {std::pair{12, 3}, {12, 4}, {6, 3}, {16, 8}, {64, 4}}) {
    const std::vector<int> leaves = in_turn(hosts, of);
    for (int leaf = 0; leaf < of; ++leaf) {
      const Suspects suspects = find_suspects(outcomes(hosts, leaving(leaf, leaves)), leaves);
      EXPECT_THAT(suspects.leaves, ElementsAre(leaf)) << hosts << " under " << of;
      EXPECT_THAT(suspects.hosts, IsEmpty());
      EXPECT_THAT(suspects.links, IsEmpty());
    }
  }
}

TEST(Suspects, AreALeafThatIsLargerThanTheOthers) {
  const std::vector<int> leaves{0, 0, 0, 0, 0, 0, 1, 1, 1, 2, 2};
  const Suspects suspects = find_suspects(outcomes(11, leaving(0, leaves)), leaves);
  EXPECT_THAT(suspects.leaves, ElementsAre(0));
  EXPECT_THAT(suspects.hosts, IsEmpty());
  EXPECT_THAT(suspects.links, IsEmpty());
}

TEST(Suspects, AreAHostWhateverItsLeaf) {
  for (const auto& [hosts, of] : {std::pair{12, 3}, {12, 4}, {6, 3}, {4, 2}, {5, 5}, {64, 4}}) {
    const std::vector<int> leaves = in_turn(hosts, of);
    for (int host = 0; host < hosts; ++host) {
      const Suspects suspects = find_suspects(outcomes(hosts, with_host(host)), leaves);
      EXPECT_THAT(suspects.hosts, ElementsAre(host)) << hosts << " under " << of;
      EXPECT_THAT(suspects.leaves, IsEmpty());
      EXPECT_THAT(suspects.links, IsEmpty());
    }
  }
}

/// For the leaf of the others all pairs that leave it are bad.
TEST(Suspects, AreAHostThatIsAloneUnderALeaf) {
  const std::vector<int> leaves{0, 0, 0, 0, 1};
  const Suspects suspects = find_suspects(outcomes(5, with_host(4)), leaves);
  EXPECT_THAT(suspects.hosts, ElementsAre(4));
  EXPECT_THAT(suspects.leaves, IsEmpty());
}

TEST(Suspects, AreALeafAHostAndALinkAtOnce) {
  const std::vector<int> leaves = in_turn(16, 4);
  const auto leaf = leaving(1, leaves);
  for (const int host : {5, 6}) {  // under this leaf, and under another one
    const auto bad = [&](HostPair pair) {
      return leaf(pair) || with_host(host)(pair) || pair == HostPair{3, 8};
    };
    const Suspects suspects = find_suspects(outcomes(16, bad), leaves);
    EXPECT_THAT(suspects.leaves, ElementsAre(1));
    EXPECT_THAT(suspects.hosts, ElementsAre(host));
    EXPECT_THAT(suspects.links, ElementsAre(HostPair{3, 8}));
  }
}

TEST(Suspects, AreBothOfTwoLeaves) {
  for (const int hosts : {4, 8, 12}) {
    const std::vector<int> leaves = in_turn(hosts, 2);
    const Suspects suspects = find_suspects(outcomes(hosts, leaving(0, leaves)), leaves);
    EXPECT_THAT(suspects.leaves, ElementsAre(0, 1));
    EXPECT_THAT(suspects.hosts, IsEmpty());
    EXPECT_THAT(suspects.links, IsEmpty());
  }
}

/// Where hosts are bad inside their leaf, too, they are named.
TEST(Suspects, AreHostsOfALeafThatAreAllBad) {
  const std::vector<int> leaves = in_turn(12, 4);
  const auto bad = [&](HostPair pair) { return pair.first % 4 == 2 || pair.second % 4 == 2; };
  const Suspects suspects = find_suspects(outcomes(12, bad), leaves);
  EXPECT_THAT(suspects.hosts, ElementsAre(2, 6, 10));
  EXPECT_THAT(suspects.leaves, IsEmpty());
}

TEST(Partners, AreGoodOnes) {
  const auto all = outcomes(6, [](HostPair pair) { return with_host(1)(pair) || pair == HostPair{0, 3}; });
  const std::vector<int> banned{1};
  EXPECT_THAT(partners_for(1, all, banned), ElementsAre(2, 4));
  EXPECT_THAT(partners_for(0, all, banned), ElementsAre(2, 3));
  EXPECT_THAT(partners_for(0, outcomes(2, [](HostPair) { return true; }), {}), ElementsAre(1));
}

}  // namespace
}  // namespace polyring

// Hosts and links that slow pairs speak against.
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

TEST(Partners, AreGoodOnes) {
  const auto all = outcomes(6, [](HostPair pair) { return with_host(1)(pair) || pair == HostPair{0, 3}; });
  const std::vector<int> banned{1};
  EXPECT_THAT(partners_for(1, all, banned), ElementsAre(2, 4));
  EXPECT_THAT(partners_for(0, all, banned), ElementsAre(2, 3));
  EXPECT_THAT(partners_for(0, outcomes(2, [](HostPair) { return true; }), {}), ElementsAre(1));
}

}  // namespace
}  // namespace polyring

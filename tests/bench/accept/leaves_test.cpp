// Leaf switches: which hosts hang on which, and slow uplinks of one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "base/index.hpp"
#include "bench/accept/checks/checks.hpp"
#include "bench/accept/expected_least.hpp"
#include "bench/accept/groups.hpp"
#include "bench/accept/site.hpp"
#include "reports/verdicts.hpp"
#include "tests/bench/accept/fake_measurer.hpp"
#include "tests/topology/fabric_builder.hpp"
#include "tests/topology/support.hpp"

namespace polyring {
namespace {

using ::testing::ElementsAre;
using testing::FakeMeasurer;
using testing::fat_tree;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kNdr;
using testing::make_site;
using testing::NothingGiven;
using testing::parsed;
using testing::small_machine;
using testing::two_pods;
using testing::usage_sentence;

constexpr unsigned kRuns = 100;

std::vector<CheckRow> run(const Check& check, const Site& site, Measurer& measurer) {
  const NothingGiven given;
  const ExpectedLeast expected = expected_least;
  const CheckOptions options;
  return check.run({measurer, site, given, expected, options, [](const std::string&) {}});
}

/// Hosts of one rank each under these leaves.
Site under(const std::vector<int>& leaves) {
  Site site = make_site(std::vector<int>(leaves.size(), 1));
  site.leaf = leaves;
  return site;
}

/// Host h is under leaf h % so many.
Site in_turn(int hosts, int leaves) {
  std::vector<int> of_hosts;
  for (int host = 0; host < hosts; ++host) of_hosts.push_back(host % leaves);
  Site site = under(of_hosts);
  site.cluster.fabric.hosts_per_leaf = hosts / leaves;
  return site;
}

void slow_uplinks(FakeMeasurer& measurer, const Site& site, int leaf, double GBps) {
  for (const int a : site.all_hosts())
    for (const int b : site.all_hosts())
      if (a < b && (site.leaf[index(a)] == leaf) != (site.leaf[index(b)] == leaf))
        measurer.pair_link[{a, b}] = GBps;
}

TEST(PairsAllreduce, NamesTheLeafWithSlowUplinks) {
  struct Case {
    int leaves;
    std::vector<std::string> hosts;  // of each leaf
  };
  for (const auto& [leaves, hosts] : {Case{3,
                                           {"node0, node3, node6 and node9", "node1, node4, node7 and node10",
                                            "node2, node5, node8 and node11"}},
                                      Case{4,
                                           {"node0, node4 and node8", "node1, node5 and node9",
                                            "node2, node6 and node10", "node3, node7 and node11"}}}) {
    Site site = in_turn(12, leaves);
    for (unsigned seed = 0; seed < kRuns; ++seed) {
      FakeMeasurer measurer(site, seed);
      const int leaf = static_cast<int>(seed) % leaves;
      slow_uplinks(measurer, site, leaf, 5);
      // Also where nothing is known of the hosts, so that pairs are compared with each other alone.
      if (seed == kRuns / 2) site.cluster = {};
      const std::vector<CheckRow> rows = run(kPairsAllreduce, site, measurer);
      ASSERT_EQ(summary(rows), "FAIL: 1 of 67 judgements failed: pairs.allreduce of uplinks of the leaf of " +
                                   hosts[index(leaf)] + ".")
          << seed;
      const CheckRow& row = rows.back();
      const int inside = 12 / leaves;
      const int leaving = inside * (12 - inside);
      EXPECT_EQ(row.why,
                fmt::format("{0} of the {0} pairs that leave this leaf are too slow or wrong, and those "
                            "of good hosts inside it are not.",
                            leaving));
      EXPECT_THAT(row.remedy, HasSubstr("spine"));
      EXPECT_TRUE(row.quantity.empty());
      EXPECT_EQ(row.hosts.size(), index(inside));
      EXPECT_EQ(slurm_drain_list(rows), "");
    }
  }
}

TEST(PairsAllreduce, NamesTheHostUnderALeaf) {
  for (const int leaves : {3, 4}) {
    const Site site = in_turn(12, leaves);
    for (unsigned seed = 0; seed < kRuns; ++seed) {
      FakeMeasurer measurer(site, seed);
      const int host = static_cast<int>(seed) % 12;
      measurer.host_link[host] = 5;
      EXPECT_EQ(summary(run(kPairsAllreduce, site, measurer)),
                "FAIL: 1 of 67 judgements failed: pairs.allreduce of " + site.hosts[index(host)] + ".")
          << seed;
    }
  }
}

TEST(PairsAllreduce, NamesTheHostBesideALeafWithSlowUplinks) {
  const Site site = in_turn(12, 3);
  for (const int host : {3, 4}) {  // under that leaf, and under another one
    FakeMeasurer measurer(site, 1);
    slow_uplinks(measurer, site, 0, 5);
    measurer.host_link[host] = 4;
    const std::string text = summary(run(kPairsAllreduce, site, measurer));
    EXPECT_THAT(text, HasSubstr("2 of 68 judgements failed: pairs.allreduce of node" + std::to_string(host)));
    EXPECT_THAT(text, HasSubstr("uplinks of the leaf of node0, node3, node6 and node9."));
  }
}

TEST(PairsAllreduce, SaysBetweenWhichTwoLeavesItIs) {
  const Site site = in_turn(8, 2);
  FakeMeasurer measurer(site, 1);
  slow_uplinks(measurer, site, 0, 1);
  const std::vector<CheckRow> rows = run(kPairsAllreduce, site, measurer);
  EXPECT_EQ(summary(rows),
            "FAIL: 1 of 29 judgements failed: pairs.allreduce of uplinks between the leaves of node0, node2, "
            "node4 and node6 and of node1, node3, node5 and node7.");
  EXPECT_THAT(rows.back().why, HasSubstr("16 of the 16 pairs between these leaves"));
}

TEST(PairsAllreduce, OfHealthyLeavesPass) {
  for (const std::vector<int>& leaves : {std::vector{0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2},
                                         {0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3},
                                         {0, 1, 0, 1, 0, 1},
                                         {0, 1, 1, 2, 0, 0, 0, 0}}) {
    const Site site = under(leaves);
    int passed = 0;
    for (unsigned seed = 0; seed < kRuns; ++seed) {
      FakeMeasurer measurer(site, seed);
      passed += overall(run(kPairsAllreduce, site, measurer)) == Verdict::pass ? 1 : 0;
    }
    EXPECT_GE(passed, 99) << leaves.size();
  }
}

/// What goes between leaves at once shares their uplinks.
class Oversubscribed final : public FakeMeasurer {
 public:
  Oversubscribed(const Site& site, unsigned seed, double uplink_GBps)
      : FakeMeasurer(site, seed), of_(site), uplink_GBps_(uplink_GBps) {}
  std::vector<GroupResult> allreduce(const std::vector<RankGroup>& groups, const GroupWork& work) override {
    std::map<int, int> leaving;
    for (const RankGroup& group : groups) {  // of two hosts of one rank
      const int a = of_.leaf[index(group.front())], b = of_.leaf[index(group.back())];
      if (a != b) ++leaving[a], ++leaving[b];
    }
    pair_link.clear();
    for (const RankGroup& group : groups) {
      const int a = of_.leaf[index(group.front())], b = of_.leaf[index(group.back())];
      if (a != b) pair_link[{group.front(), group.back()}] = uplink_GBps_ / std::max(leaving[a], leaving[b]);
    }
    return FakeMeasurer::allreduce(groups, work);
  }

 private:
  const Site& of_;
  double uplink_GBps_;
};

/// In rounds of uneven leaves some pairs share their uplinks with more others than some do.
TEST(PairsAllreduce, OfUnevenLeavesWithFewUplinksPass) {
  Site site = under({0, 0, 0, 0, 0, 1, 1, 2, 2, 2});
  site.cluster.fabric.hosts_per_leaf = 4;
  site.cluster.fabric.leaf_uplink = gigabytes_per_second(12);
  for (const bool known : {true, false}) {
    if (!known) site.cluster = {};
    int passed = 0;
    for (unsigned seed = 0; seed < kRuns; ++seed) {
      Oversubscribed measurer(site, seed, 12);
      passed += overall(run(kPairsAllreduce, site, measurer)) == Verdict::pass ? 1 : 0;
    }
    EXPECT_GE(passed, 99) << known;
  }
}

TEST(PairsAllreduce, MeasuresPairsInsideLeavesFirst) {
  const Site site = in_turn(8, 2);
  FakeMeasurer measurer(site, 1);
  run(kPairsAllreduce, site, measurer);
  ASSERT_GE(measurer.rounds.size(), 7u);
  for (std::size_t at = 0; at < 7; ++at) {
    EXPECT_EQ(measurer.rounds[at].size(), 4u);
    for (const RankGroup& group : measurer.rounds[at])
      EXPECT_EQ(group.front() % 2 == group.back() % 2, at < 3) << at;
  }
}

/// Uplinks that carry a part of what their hosts can send are no fault.
TEST(AllAllreduce, KnowsTheUplinks) {
  const auto least = [](double uplink_GBps) {
    Site site = in_turn(8, 2);
    site.cluster.fabric.leaf_uplink = gigabytes_per_second(uplink_GBps);
    FakeMeasurer measurer(site, 1);
    return run(kAllAllreduce, site, measurer).front().least.value();
  };
  EXPECT_LT(least(2), 0.6 * least(0));
  EXPECT_DOUBLE_EQ(least(1000), least(0));
}

std::vector<std::string> names(const Cluster& cluster) {
  std::vector<std::string> names;
  for (int host = 0; host < cluster.host_count(); ++host) names.push_back(cluster.host(host).name);
  return names;
}

Site site_named(const std::vector<std::string>& hosts) {
  Site site = make_site(std::vector<int>(hosts.size(), 1));
  site.hosts = hosts;
  std::vector<Inventory> parts;
  for (const std::string& name : hosts) {
    Machine machine = small_machine();
    machine.name = name;
    parts.push_back(inventory_of(std::move(machine)));
  }
  site.inventory = merged(std::move(parts));
  return site;
}

TEST(Leaves, AreThoseOfTheFabricWhateverTheNumbersOfHosts) {
  Site site = site_named({"n4", "n0", "ghost", "n1", "n5.example.org", "n8"});
  put_on_leaves(site, parsed(fat_tree(3, 4, 2)));
  EXPECT_THAT(site.leaf, ElementsAre(0, 1, 3, 1, 0, 2));
  EXPECT_THAT(site.notes,
              ElementsAre("Not in 'net.out': ghost. Each is judged as if alone under a leaf switch."));
  EXPECT_EQ(site.cluster.fabric.hosts_per_leaf, 2);
  EXPECT_DOUBLE_EQ(site.cluster.fabric.leaf_uplink.value, 4 * kNdr.value);
  EXPECT_EQ(names(site.cluster).at(1), "node1");  // as before

  const auto part = [&](const std::vector<int>& hosts) { return site.part(hosts); };
  EXPECT_EQ(part({1, 3}).fabric.hosts_per_leaf, 0);
  EXPECT_EQ(part({0, 1}).fabric.hosts_per_leaf, 1);
  EXPECT_EQ(part({1, 2}).fabric.hosts_per_leaf, 1);
  EXPECT_THAT(names(part({0, 1, 4})), ElementsAre("node0", "node4", "node1"));
  EXPECT_EQ(part(site.all_hosts()).fabric.hosts_per_leaf, 2);
  EXPECT_THAT(names(part(site.all_hosts())),
              ElementsAre("node0", "node4", "node1", "node3", "node5", "node2"));
}

/// The result says by which leaves and uplinks hosts were judged, so that others can judge them again.
TEST(Leaves, AreInTheResult) {
  Site site = site_named({"n4", "n0", "ghost", "n1", "n5"});
  EXPECT_FALSE(recorded_leaves(site));
  put_on_leaves(site, parsed(fat_tree(3, 4, 2)));
  ResultFile result;
  for (int rank = 0; rank < 10; ++rank) result.placement.push_back({rank, site.hosts[index(rank / 2)]});
  result.leaves = recorded_leaves(site);
  EXPECT_EQ(result.leaves,
            (std::vector<LeafHosts>{{"leaf1", {"n4", "n5"}}, {"leaf0", {"n0", "n1"}}, {"", {"ghost"}}}));
  EXPECT_EQ(hosts_of_run(result), site.hosts);
  EXPECT_THAT(leaves_of_run(result, 3), ElementsAre(0, 1, 2, 1, 0));
  result.leaves->pop_back();
  EXPECT_THAT(leaves_of_run(result, 3), ElementsAre(0, 1, 2, 1, 0)) << "one that no leaf has";
  result.leaves.reset();
  EXPECT_THAT(leaves_of_run(result, 3), ElementsAre(0, 0, 0, 1, 1));

  const Inventory hosts = recorded_hosts(site);
  EXPECT_EQ(hosts.cluster.fabric.hosts_per_leaf, 2);
  EXPECT_DOUBLE_EQ(hosts.cluster.fabric.leaf_uplink.value, 4 * kNdr.value);
  EXPECT_THAT(hosts.places, ElementsAre("leaf1: n4 and n5", "leaf0: n0 and n1"));
}

TEST(Leaves, OfPodsAreSideBySide) {
  Site site = site_named({"n0", "n4", "n2", "n6", "n1", "n5", "n3", "n7"});
  put_on_leaves(site, parsed(two_pods(1)));
  EXPECT_THAT(names(site.part(site.all_hosts())),
              ElementsAre("node0", "node4", "node2", "node6", "node1", "node5", "node3", "node7"));
  EXPECT_EQ(site.part(site.all_hosts()).fabric.pods.size(), 1u);
  EXPECT_THAT(site.part(std::vector{0, 1}).fabric.pods, IsEmpty());
}

TEST(Leaves, OfAnotherClusterAreRefused) {
  Site site = site_named({"a", "b"});
  EXPECT_THAT(usage_sentence([&] { put_on_leaves(site, parsed(fat_tree(2, 2))); }),
              HasSubstr("none of the hosts (a and b) is in 'net.out'"));
}

TEST(Leaves, OfRacksAreInTurn) {
  EXPECT_THAT(leaves_in_turn(5, 2), ElementsAre(0, 0, 1, 1, 2));
  EXPECT_THAT(leaves_in_turn(3, 0), ElementsAre(0, 0, 0));
}

}  // namespace
}  // namespace polyring

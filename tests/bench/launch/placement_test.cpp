#include "bench/launch/placement.hpp"

#include <numeric>

#include "tests/topology/support.hpp"
#include "topology/presets.hpp"

namespace polyring {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::small_machine;
using testing::usage_sentence;

using Hosts = std::vector<ListedHost>;

Machine bare(int packages, int cores) {
  Machine machine;
  machine.name = "bare";
  for (int i = 0; i < packages; ++i)
    machine.packages.push_back({fmt::format("package{}", i), "", cores, {}, {}, {i}});
  return machine;
}

Machine machine_of(const char* name) { return preset(name, 1).host(0); }

/// The machine of each host.
Inventory inventory(const Hosts& hosts, const std::vector<Machine>& machines) {
  std::vector<Inventory> parts;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    Machine machine = machines[i];
    machine.name = hosts[i].name;
    parts.push_back(inventory_of(std::move(machine)));
  }
  return merged(std::move(parts));
}

/// "a 4": the host and how many ranks it has.
std::vector<std::string> shares(const Placement& placement) {
  std::vector<std::string> texts;
  for (const PlacedHost& host : placement.hosts) texts.push_back(fmt::format("{} {}", host.name, host.ranks));
  return texts;
}

std::vector<std::string> shares(const Hosts& hosts, const std::vector<Machine>& machines,
                                const PlacementConstraints& constraints) {
  return shares(place_ranks(hosts, inventory(hosts, machines), constraints));
}

std::string fault(const Hosts& hosts, const std::vector<Machine>& machines,
                  const PlacementConstraints& constraints) {
  return usage_sentence([&] { place_ranks(hosts, inventory(hosts, machines), constraints); });
}

const std::vector<Machine> kTwoMinskys{machine_of("minsky"), machine_of("minsky")};

TEST(Placement, GivesEachGpuARank) {
  EXPECT_THAT(shares({{"a", 0}, {"b", 0}}, kTwoMinskys, {}), ElementsAre("a 4", "b 4"));
}

TEST(Placement, RefusesMoreRanksThanALauncherStarts) {
  const Hosts hosts{{"a", 0}, {"b", 0}};
  EXPECT_THAT(fault(hosts, {bare(1, 2'000'000'000), bare(1, 2'000'000'000)}, {}),
              HasSubstr("more than 1000000 ranks"));
}

TEST(Placement, GivesEachCoreARankWithoutGpus) {
  EXPECT_THAT(shares({{"a", 0}}, {bare(2, 3)}, {}), ElementsAre("a 6"));
  EXPECT_THAT(shares({{"a", 0}}, {bare(2, 3)}, {.ranks_per_host = 2}), ElementsAre("a 2"));
}

TEST(Placement, SpreadsFewerRanksEvenly) {
  EXPECT_THAT(shares({{"a", 0}, {"b", 0}}, kTwoMinskys, {.ranks = 4}), ElementsAre("a 2", "b 2"));
  EXPECT_THAT(shares({{"a", 0}, {"b", 0}}, kTwoMinskys, {.ranks = 5}), ElementsAre("a 3", "b 2"));
  EXPECT_THAT(shares({{"a", 0}, {"b", 0}}, kTwoMinskys, {.ranks = 1}), ElementsAre("a 1"));
  // The second host has two GPUs only.
  EXPECT_THAT(shares({{"a", 0}, {"b", 0}}, {machine_of("minsky"), small_machine()}, {.ranks = 6}),
              ElementsAre("a 4", "b 2"));
}

TEST(Placement, FillsHostsWhoseRanksWereListed) {
  EXPECT_THAT(shares({{"a", 4}, {"b", 2}}, kTwoMinskys, {}), ElementsAre("a 4", "b 2"));
  EXPECT_THAT(shares({{"a", 4}, {"b", 2}}, kTwoMinskys, {.ranks = 5}), ElementsAre("a 4", "b 1"));
}

TEST(Placement, FollowsTheOrderOfTheInventory) {
  const Inventory scattered = inventory({{"c", 0}, {"b", 0}, {"a", 0}},
                                        {machine_of("minsky"), small_machine(), machine_of("minsky")});
  const Placement placement = place_ranks(Hosts{{"a", 0}, {"b", 1}, {"c", 3}}, scattered, {});
  EXPECT_THAT(shares(placement), ElementsAre("c 3", "b 1", "a 4"));
  EXPECT_EQ(placement.hosts[1].gpus, 2);
  EXPECT_EQ(placement.hosts[2].gpus, 4);
  EXPECT_EQ(placement.hosts[2].cores.size(), 4U);
  // Those that are listed with ranks are filled in that order, too.
  EXPECT_THAT(shares(place_ranks(Hosts{{"a", 4}, {"b", 2}, {"c", 4}}, scattered, {.ranks = 7})),
              ElementsAre("c 4", "b 2", "a 1"));
}

TEST(Placement, RefusesMoreRanksThanGpus) {
  EXPECT_THAT(fault({{"a", 0}, {"b", 5}}, kTwoMinskys, {}),
              HasSubstr("5 ranks are asked for on b, which has 4 GPUs"));
  EXPECT_THAT(fault({{"a", 0}}, {bare(1, 2)}, {.ranks_per_host = 3}), HasSubstr("which has 2 cores"));
  EXPECT_THAT(fault({{"a", 0}, {"b", 0}}, kTwoMinskys, {.ranks = 9}),
              HasSubstr("-n 9 are more ranks than the 8 GPUs of 2 hosts; give -n 8 or less"));
  EXPECT_THAT(fault({{"a", 0}}, {bare(0, 0)}, {}), HasSubstr("--ranks-per-host"));
}

TEST(Placement, SharesGpusWhereThatIsAsked) {
  EXPECT_THAT(shares({{"a", 0}, {"b", 0}}, kTwoMinskys, {.ranks = 10, .oversubscribe = true}),
              ElementsAre("a 5", "b 5"));
  EXPECT_THAT(shares({{"a", 7}}, kTwoMinskys, {.oversubscribe = true}), ElementsAre("a 7"));
}

TEST(Placement, CountsOnlyAllowedCores) {
  Inventory hosts = inventory({{"a", 0}, {"b", 0}, {"c", 0}}, {bare(2, 4), bare(2, 4), bare(2, 4)});
  ASSERT_EQ(hosts.members.size(), 1U) << "what is allowed makes no host another one";
  hosts.members[0][0].allowed = AllowedCores{{4, 5, 6, 7}, {5, 7}};
  hosts.members[0][1].allowed = AllowedCores{{0, 1, 2, 3, 4, 5, 6, 7}, {0, 1, 2, 3, 4, 5, 6, 7}, 2.9};
  const Hosts listed{{"a", 0}, {"b", 0}, {"c", 0}};
  const Placement placement = place_ranks(listed, hosts, {});
  EXPECT_THAT(shares(placement), ElementsAre("a 2", "b 2", "c 8"));
  EXPECT_THAT(placement.hosts[0].cores, ElementsAre(ElementsAre(1), ElementsAre(3)));
  EXPECT_EQ(placement.hosts[0].allowed, "2 of 8 cores are allowed (cpuset and affinity)");
  EXPECT_EQ(placement.hosts[1].allowed, "8 of 8 cores are allowed, for the time of 2.9 (quota)");
  EXPECT_EQ(placement.hosts[2].allowed, "");
  EXPECT_THAT(placement.hosts[0].cpuset, ElementsAre(4, 5, 6, 7));
  EXPECT_EQ(placement.hosts[2].cpuset, placement.hosts[1].cpuset);
  const auto refused = [&](const Hosts& asked, const PlacementConstraints& constraints) {
    return usage_sentence([&] { place_ranks(asked, hosts, constraints); });
  };
  EXPECT_THAT(refused({{"a", 3}, {"b", 0}, {"c", 0}}, {}),
              HasSubstr("3 ranks are asked for on a, which has 2 allowed cores"));
  EXPECT_THAT(refused(listed, {.ranks = 13}), HasSubstr("more ranks than the 12 allowed cores of 3 hosts"));
  const Placement shared = place_ranks(Hosts{{"a", 3}, {"b", 0}, {"c", 0}}, hosts, {.oversubscribe = true});
  EXPECT_FALSE(shared.bound());
}

TEST(CoresRemark, SaysWhatIsUsedOnlyWhereRanksAreBoundToIt) {
  PlacedHost host{"a", 2, {{1, 2}, {3}}, 2, {}, "3 of 8 cores are allowed (affinity)", {"gpu0", "gpu1"}};
  EXPECT_EQ(cores_remark(host, true),
            "3 of 8 cores are allowed (affinity), 3 are used; too few are near gpu0 and gpu1, and the next "
            "nearest are taken");
  EXPECT_EQ(cores_remark(host, false), "3 of 8 cores are allowed (affinity)");
  host.allowed.clear();
  EXPECT_THAT(cores_remark(host, true), ::testing::StartsWith("too few are near gpu0"));
  EXPECT_EQ(cores_remark(host, false), "");
  EXPECT_EQ(cores_remark({"a", 1, {{2}}, 0, {2}, "1 of 8 cores is allowed (cpuset)"}, true),
            "1 of 8 cores is allowed (cpuset), 1 is used");
}

TEST(Placement, SaysWhichGpusHaveNoCoresNear) {
  Inventory hosts = inventory({{"a", 0}}, {machine_of("minsky")});
  std::vector<int> all(20);
  std::iota(all.begin(), all.end(), 0);
  hosts.members[0][0].allowed = AllowedCores{all, {10, 11, 12, 13}};
  EXPECT_THAT(place_ranks(Hosts{{"a", 0}}, hosts, {}).hosts[0].far_gpus, ElementsAre("gpu0", "gpu1"));
}

TEST(Placement, BelievesTheListWhereCoresAreUnknown) {
  const Placement placement = place_ranks(Hosts{{"a", 5}}, inventory({{"a", 0}}, {bare(1, 0)}), {});
  EXPECT_THAT(shares(placement), ElementsAre("a 5"));
  EXPECT_FALSE(placement.bound());
}

}  // namespace
}  // namespace polyring

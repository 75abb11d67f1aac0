// Placing hosts on the leaf switches of one network, or of one for each rail.
#include "topology/inventory/placement.hpp"

#include <fmt/ranges.h>

#include "base/index.hpp"
#include "tests/topology/fabric_builder.hpp"
#include "tests/topology/support.hpp"
#include "topology/inventory/formats/fabric_text.hpp"
#include "topology/presets.hpp"
#include "topology/rank_nics.hpp"

namespace polyring {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using testing::FabricBuilder;
using testing::fat_tree;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kNdr;
using ::testing::Not;
using testing::parsed;
using testing::rails;
using testing::small_machine;
using testing::two_pods;
using testing::usage_sentence;

Inventory hosts(const std::vector<std::string>& names) {
  std::vector<Inventory> parts;
  for (const std::string& name : names) {
    Machine machine = small_machine();
    machine.name = name;
    parts.push_back(inventory_of(std::move(machine)));
  }
  return merged(std::move(parts));
}

std::vector<std::string> order(const Inventory& inventory) {
  std::vector<std::string> names;
  for (const auto& members : inventory.members) {
    for (const HostIdentity& host : members) names.push_back(host.name);
  }
  return names;
}

TEST(Placement, PutsHostsOfALeafTogether) {
  const Inventory all = placed(hosts({"n0", "n4", "n1", "n5.example.org"}), parsed(fat_tree(3, 4, 2)));
  EXPECT_THAT(order(all), ElementsAre("n0", "n1", "n4", "n5.example.org"));
  EXPECT_EQ(all.cluster.fabric.hosts_per_leaf, 2);
  EXPECT_DOUBLE_EQ(all.cluster.fabric.leaf_uplink.value, 4 * kNdr.value);
  EXPECT_THAT(all.places, ElementsAre("leaf0: n0 and n1", "leaf1: n4 and n5.example.org"));
  EXPECT_THAT(all.notes, ElementsAre("hosts are in the order of their leaf switches"));
  EXPECT_THAT(all.cluster.fabric.citations[0].source, HasSubstr("net.out"));
  EXPECT_EQ(all.cluster.groups.size(), 1u);
}

TEST(Placement, KnowsPodsAndKeepsTheirHostsTogether) {
  const Inventory all = placed(hosts({"n0", "n4", "n1", "n6", "n2", "n5", "n3", "n7"}), parsed(two_pods(1)));
  EXPECT_THAT(order(all), ElementsAre("n0", "n1", "n2", "n3", "n4", "n5", "n6", "n7"));
  const Fabric& fabric = all.cluster.fabric;
  EXPECT_EQ(fabric.hosts_per_leaf, 2);
  ASSERT_EQ(fabric.pods.size(), 1u);
  EXPECT_EQ(fabric.pods[0].hosts, 4);
  EXPECT_DOUBLE_EQ(fabric.pods[0].uplink.value, 2 * kNdr.value);
  // Within one pod nothing leads out of it.
  EXPECT_THAT(placed(hosts({"n0", "n1", "n2"}), parsed(two_pods(1))).cluster.fabric.pods, IsEmpty());
}

TEST(Placement, OfUnevenPodsTakesTheirMean) {
  const Inventory even = placed(hosts({"n0", "n4", "n5", "n6", "n7"}), parsed(two_pods(1)));
  EXPECT_THAT(order(even), ElementsAre("n4", "n5", "n6", "n7", "n0"));
  EXPECT_EQ(even.cluster.fabric.pods.at(0).hosts, 4);
  EXPECT_THAT(even.notes, Not(Contains(HasSubstr("pods hold"))));
}

TEST(Placement, FindsHostsByGuidFirst) {
  const FabricBuilder fabric = fat_tree(2, 2);
  std::vector<Inventory> parts;
  for (const char* name : {"n0", "n1"}) {
    Machine machine = small_machine();
    machine.name = name;
    // The cables are others than the names say.
    machine.nics[0].ports[0].guid =
        "0x" + fabric.guid(name == std::string("n0") ? "n3 mlx5_0" : "n1 mlx5_0", 1);
    parts.push_back(inventory_of(std::move(machine)));
  }
  const Inventory all = placed(merged(std::move(parts)), parsed(fabric));
  EXPECT_THAT(all.places, ElementsAre("leaf1: n0", "leaf0: n1"));
}

TEST(Placement, OfAFullLeafComesBeforeOneThatIsNot) {
  const Inventory all = placed(hosts({"n0", "n2", "n3", "n4", "n5"}), parsed(fat_tree(3, 2)));
  EXPECT_THAT(order(all), ElementsAre("n2", "n3", "n4", "n5", "n0"));
  EXPECT_EQ(all.cluster.fabric.hosts_per_leaf, 2);
  for (const std::string& note : all.notes) EXPECT_THAT(note, Not(HasSubstr("leaves hold")));
}

TEST(Placement, SaysWhatItCannotExpress) {
  const Inventory all = placed(hosts({"n0", "n1", "n2", "n4", "n5", "n8", "ghost"}), parsed(fat_tree(3, 4)));
  EXPECT_EQ(all.cluster.fabric.hosts_per_leaf, 2);
  EXPECT_THAT(all.notes, ElementsAre(HasSubstr("leaves hold 1 to 3 of these hosts; plans take 2 for each"),
                                     HasSubstr("not in 'net.out': ghost")));
  EXPECT_EQ(order(all).back(), "ghost");
}

TEST(Placement, TellsTheLeafOfEachHost) {
  const Inventory some = hosts({"n0", "n4", "ghost", "n5.example.org", "n9"});
  const auto text = [](const std::vector<PlacedLeaf>& leaves) {
    std::vector<std::string> lines;
    for (const PlacedLeaf& leaf : leaves)
      lines.push_back(fmt::format("{}: {}", leaf.name, fmt::join(leaf.hosts, ", ")));
    return lines;
  };
  // In the order of placed(): the fullest first.
  EXPECT_THAT(text(leaves_of_hosts(some, parsed(fat_tree(3, 4)))),
              ElementsAre("leaf1: n4, n5.example.org", "leaf0: n0", "leaf2: n9"));
  EXPECT_THAT(text(leaves_of_hosts(hosts({"n0", "n1"}), parsed(rails()))),
              ElementsAre("a0 and a1: n0", "b0 and b1: n1"));
  EXPECT_THAT(usage_sentence([&] { leaves_of_hosts(hosts({"ghost"}), parsed(fat_tree(2, 2))); }),
              HasSubstr("none of the hosts (ghost) is in 'net.out'"));
}

TEST(Placement, HostsOfOneLeafGrowAsItsOthers) {
  const Inventory all = placed(hosts({"n1"}), parsed(fat_tree(2, 4)));
  EXPECT_EQ(all.cluster.fabric.hosts_per_leaf, 4);
}

TEST(Placement, OnOneSwitchNothingIsFar) {
  FabricBuilder fabric;
  fabric.add_switch("s").add_adapter("n0 mlx5_0").join("s", 1, "n0 mlx5_0", 1);
  EXPECT_EQ(placed(hosts({"n0"}), parsed(fabric)).cluster.fabric.hosts_per_leaf, 0);
}

TEST(Placement, GivesUnknownRatesThoseOfTheLinks) {
  Machine machine = small_machine();
  machine.name = "n0";
  machine.nics[0].ports[0].bandwidth = {};
  const Inventory all = placed(inventory_of(machine), parsed(fat_tree(2, 2)));
  EXPECT_EQ(all.cluster.host(0).nics[0].bandwidth(), kNdr);
  EXPECT_THAT(all.cluster.host(0).citations.back().fact, HasSubstr("rates of InfiniBand"));
  const Inventory known = placed(hosts({"n0"}), parsed(fat_tree(2, 2)));
  EXPECT_EQ(known.cluster.host(0).nics[0].bandwidth(), gigabytes_per_second(12));
}

/// n0 with an NDR port at mlx5_0 and an HDR port at mlx5_1.
FabricBuilder two_rates() {
  FabricBuilder fabric = fat_tree(2, 2);
  fabric.add_adapter("n0 mlx5_1").join("leaf0", 20, "n0 mlx5_1", 1, "4xHDR");
  return fabric;
}
constexpr double kHdr = 24.2424242424;

Machine with_two_adapters() {
  Machine machine = small_machine();
  machine.name = "n0";
  machine.nics.push_back(machine.nics[0]);
  machine.nics[1].name = "mlx5_1";
  Link link = machine.links[2];
  link.from.index = 1;
  machine.links.push_back(link);
  for (Nic& nic : machine.nics) nic.ports[0].bandwidth = {};
  return machine;
}

TEST(Placement, GivesEachPortTheRateOfItsCable) {
  const Inventory all = placed(inventory_of(with_two_adapters()), parsed(two_rates()));
  const Machine& machine = all.cluster.host(0);
  EXPECT_EQ(machine.nics[0].bandwidth(), kNdr);
  EXPECT_NEAR(machine.nics[1].bandwidth().gigabytes_per_second(), kHdr, 1e-9);
  EXPECT_EQ(machine.citations.back().fact, "rates of InfiniBand ports of mlx5_0 and mlx5_1");
  EXPECT_EQ(machine.citations.back().source, "ibnetdiscover 'net.out'");
  // What the host's own file tells wins.
  Machine some = with_two_adapters();
  some.nics[0].ports[0].bandwidth = gigabytes_per_second(12);
  const Inventory known = placed(inventory_of(some), parsed(two_rates()));
  EXPECT_EQ(known.cluster.host(0).nics[0].bandwidth(), gigabytes_per_second(12));
  EXPECT_EQ(known.cluster.host(0).citations.back().fact, "rates of InfiniBand ports of mlx5_1");
}

TEST(Placement, FindsThePortByItsGuidFirst) {
  const FabricBuilder fabric = two_rates();
  Machine machine = with_two_adapters();
  machine.nics[0].ports[0].guid = fabric.guid("n0 mlx5_1", 1);
  machine.nics[1].ports[0].guid = fabric.guid("n0 mlx5_0", 1);
  const Inventory all = placed(inventory_of(machine), parsed(fabric));
  EXPECT_NEAR(all.cluster.host(0).nics[0].bandwidth().gigabytes_per_second(), kHdr, 1e-9);
  EXPECT_EQ(all.cluster.host(0).nics[1].bandwidth(), kNdr);
}

TEST(Placement, GivesAdaptersWithoutPortsThoseWithACable) {
  Machine machine = with_two_adapters();
  for (Nic& nic : machine.nics) {
    nic.ports.clear();
    nic.kind = NicKind::unknown;
  }
  machine.nics[0].name = "mlx5_7";  // of no cable
  const Inventory all = placed(inventory_of(machine), parsed(two_rates()));
  const std::vector<Nic>& nics = all.cluster.host(0).nics;
  EXPECT_EQ(usable_nics(all.cluster.host(0)), (std::vector{0, 1})) << "it may be of another network";
  EXPECT_FALSE(nics[0].bandwidth().known());
  EXPECT_THAT(all.notes,
              Contains(HasSubstr("no cable of mlx5_7 of n0 is in 'net.out'; taken to be up, at a rate")));
  EXPECT_NEAR(nics[1].bandwidth().gigabytes_per_second(), kHdr, 1e-9);
  EXPECT_EQ(nics[1].kind, NicKind::infiniband);
  // Ethernet has the names of its InfiniBand twins, and other cables.
  machine.nics[1].kind = NicKind::ethernet;
  EXPECT_FALSE(placed(inventory_of(machine), parsed(two_rates())).cluster.host(0).nics[1].up());
}

/// Hosts like n0 of a matrix of nvidia-smi, n0 to n3, all on one switch. The adapters whose names end so have
/// no cable.
Inventory four_without_cable(const std::string& missing) {
  FabricBuilder fabric;
  fabric.add_switch("s");
  int port = 1;
  std::vector<Inventory> parts;
  for (const char* name : {"n0", "n1", "n2", "n3"}) {
    Machine machine = with_two_adapters();
    machine.name = name;
    for (Nic& nic : machine.nics) {
      nic.ports.clear();
      nic.kind = NicKind::unknown;
      const std::string adapter = fmt::format("{} {}", name, nic.name);
      fabric.add_adapter(adapter);
      if (!adapter.ends_with(missing)) fabric.join("s", port++, adapter, 1);
    }
    parts.push_back(inventory_of(std::move(machine)));
  }
  return placed(merged(std::move(parts)), parsed(fabric));
}

TEST(Placement, TakesTheCablesOfAllEqualHosts) {
  for (const char* host : {"n0", "n3"}) {
    const Inventory all = four_without_cable(fmt::format("{} mlx5_1", host));
    for (const Nic& nic : all.cluster.host(0).nics) EXPECT_EQ(nic.bandwidth(), kNdr) << nic.name;
    EXPECT_THAT(all.notes, ElementsAre(fmt::format(
                               "no cable of mlx5_1's port 1 of {} is in 'net.out'; plans take it as at "
                               "equal hosts",
                               host)));
  }
  const Inventory none = four_without_cable("mlx5_1");
  EXPECT_EQ(usable_nics(none.cluster.host(0)), (std::vector{0, 1}));
  EXPECT_FALSE(none.cluster.host(0).nics[1].bandwidth().known());
  EXPECT_THAT(none.notes, ElementsAre(HasSubstr("no cable of mlx5_1 of n0, n1, n2 and n3 is in 'net.out'")));
  EXPECT_THAT(four_without_cable("nothing").notes, IsEmpty());
}

TEST(Placement, MistakesNoPortForOneWhoseGuidIsUnknown) {
  FabricBuilder fabric;
  fabric.add_switch("s");
  int port = 1;
  Inventory pair = inventory_of(with_two_adapters());
  pair.cluster.groups[0].count = 2;
  pair.members[0].clear();
  for (const char* host : {"n0", "n1"}) {
    pair.members[0].push_back({host});
    for (const char* nic : {"mlx5_0", "mlx5_1"}) {
      const std::string adapter = fmt::format("{} {}", host, nic);
      fabric.add_adapter(adapter).join("s", port++, adapter, 1,
                                       nic == std::string("mlx5_0") ? "4xNDR" : "4xHDR");
      pair.members[0].back().port_guids.push_back(fabric.guid(adapter, 1));
    }
  }
  std::vector<Nic>& nics = pair.cluster.groups[0].machine.nics;
  for (int i = 0; i < 2; ++i) nics[index(i)].ports[0].guid = pair.members[0][0].port_guids[index(i)];
  pair.members[0][1].port_guids.erase(pair.members[0][1].port_guids.begin());
  const Inventory all = placed(pair, parsed(fabric));
  EXPECT_EQ(all.cluster.host(0).nics[0].bandwidth(), kNdr);
  EXPECT_NEAR(all.cluster.host(0).nics[1].bandwidth().gigabytes_per_second(), kHdr, 1e-9);
  EXPECT_THAT(all.notes, IsEmpty());
}

TEST(Placement, OfEqualHostsTakesTheLeastRate) {
  FabricBuilder fabric;
  fabric.add_switch("s").add_adapter("n0 mlx5_0").add_adapter("n1 mlx5_0");
  fabric.join("s", 1, "n0 mlx5_0", 1).join("s", 2, "n1 mlx5_0", 1, "4xHDR");
  Inventory pair = hosts({"n0", "n1"});
  pair.cluster.groups[0].machine.nics[0].ports[0].bandwidth = {};
  const Inventory all = placed(pair, parsed(fabric));
  EXPECT_NEAR(all.cluster.host(0).nics[0].bandwidth().gigabytes_per_second(), kHdr, 1e-9);
  EXPECT_THAT(all.notes, Contains(HasSubstr("mlx5_0's port 1 have 24.2 GB/s to 48.5 GB/s")));
  // Each host's own GUID tells its cable.
  pair.cluster.groups[0].machine.nics[0].ports[0].guid = fabric.guid("n0 mlx5_0", 1);
  pair.members[0] = {{"x0", {fabric.guid("n0 mlx5_0", 1)}}, {"x1", {fabric.guid("n1 mlx5_0", 1)}}};
  EXPECT_NEAR(placed(pair, parsed(fabric)).cluster.host(0).nics[0].bandwidth().gigabytes_per_second(), kHdr,
              1e-9);
}

TEST(Placement, RefusesHostsThatItCannotFind) {
  EXPECT_THAT(usage_sentence([] {
                placed(hosts({"x1", "x2"}), parsed(fat_tree(1, 1)));
              }),
              HasSubstr("none of the hosts (x1 and x2) is in 'net.out'"));
  EXPECT_THAT(usage_sentence([] { placed(inventory_of(preset("minsky", 3)), parsed(fat_tree(1, 1))); }),
              HasSubstr("'minsky' stands for 3 hosts without names"));
}

TEST(Placement, OfRailsCountsTheirLeavesAsOne) {
  const Inventory all = placed(hosts({"n0", "n1", "n2", "n3", "n4", "n5", "n6", "n7"}), parsed(rails()));
  EXPECT_THAT(all.places, ElementsAre("a0 and a1: n0, n2, n4 and n6", "b0 and b1: n1, n3, n5 and n7"));
  EXPECT_EQ(all.cluster.fabric.hosts_per_leaf, 4);
  EXPECT_DOUBLE_EQ(all.cluster.fabric.leaf_uplink.value, 6 * kNdr.value);
  EXPECT_THAT(all.notes, Contains(HasSubstr("(rails)")));
}

/// The network of another rail: other GUIDs, other names of switches, and the hosts' other adapters.
FabricMap other_rail(const FabricBuilder& fabric, const std::string& origin = "rail1.out") {
  std::string text = fabric.text();
  for (const auto& [from, to] : {std::pair<std::string, std::string>{"2c90000", "2c91000"},
                                 {"mlx5_0", "mlx5_1"},
                                 {"\"leaf", "\"other"},
                                 {"\"p0leaf", "\"other0leaf"},
                                 {"\"p1leaf", "\"other1leaf"}}) {
    for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
      text.replace(at, from.size(), to);
  }
  return parse_ibnetdiscover(text, origin);
}

FabricMap two_rails(const FabricBuilder& one, const FabricBuilder& other) {
  return merged(std::vector{parsed(one), other_rail(other)});
}

TEST(Planes, OfRailsCountTheirLeavesAsOne) {
  const Inventory all = placed(hosts({"n0", "n2", "n1", "n3"}), two_rails(fat_tree(2, 2), fat_tree(2, 2, 2)));
  EXPECT_THAT(all.places, ElementsAre("leaf0 and other0: n0 and n1", "leaf1 and other1: n2 and n3"));
  EXPECT_EQ(all.cluster.fabric.hosts_per_leaf, 2);
  EXPECT_DOUBLE_EQ(all.cluster.fabric.leaf_uplink.value, (2 + 4) * kNdr.value);
  EXPECT_THAT(all.notes, Contains(HasSubstr("up to 2 leaf switches each (rails)")));
  EXPECT_THAT(all.notes, Not(Contains(HasSubstr("not in"))));
  EXPECT_THAT(all.cluster.fabric.citations[0].source, HasSubstr("'net.out, rail1.out'"));
}

TEST(Planes, JoinPodsOfTheSameHosts) {
  const FabricMap map = two_rails(two_pods(1), two_pods(3));
  const auto pods = pods_of(map, leaves_of(map));
  ASSERT_EQ(pods.size(), 1u);
  ASSERT_EQ(pods[0].size(), 2u);
  EXPECT_THAT(pods[0][0].leaves, ElementsAre(0, 1, 4, 5));
  EXPECT_EQ(pods[0][0].uplinks, 2 + 6);
  EXPECT_DOUBLE_EQ(pods[0][1].up.value, 8 * kNdr.value);
}

TEST(Planes, NameHostsThatLackARail) {
  FabricBuilder partial = fat_tree(2, 2);
  FabricBuilder other;
  other.add_switch("spine0").add_switch("leaf0").add_switch("leaf1");
  for (const char* leaf : {"leaf0", "leaf1"}) other.join(leaf, 40, "spine0", leaf[4] - '0' + 1);
  int port = 1;
  for (const char* host : {"n0", "n2", "n3"}) {
    const std::string adapter = fmt::format("{} mlx5_0", host);
    other.add_adapter(adapter).join(host[1] < '2' ? "leaf0" : "leaf1", port++, adapter, 1);
  }
  const FabricMap map = two_rails(partial, other);
  const Inventory all = placed(hosts({"n0", "n1", "n2", "n3", "ghost"}), map);
  EXPECT_THAT(all.notes, Contains("not in 'rail1.out', though in another network: n1"));
  EXPECT_THAT(all.notes, Contains("not in 'net.out, rail1.out': ghost; counted after the others"));
  // Of a port whose GUID is known the other rail is found by name.
  Machine machine = small_machine();
  machine.name = "n0";
  machine.nics[0].ports[0].guid = "0x" + partial.guid("n0 mlx5_0", 1);
  const Inventory named = placed(inventory_of(machine), map);
  EXPECT_THAT(named.notes, Not(Contains(HasSubstr("not in"))));
}

TEST(Planes, OfOneSwitchEachBlockNothing) {
  FabricBuilder fabric;
  fabric.add_switch("leaf0").add_adapter("n0 mlx5_0").add_adapter("n1 mlx5_0");
  fabric.join("leaf0", 1, "n0 mlx5_0", 1).join("leaf0", 2, "n1 mlx5_0", 1);
  const Inventory all = placed(hosts({"n0", "n1"}), two_rails(fabric, fabric));
  EXPECT_EQ(all.cluster.fabric.hosts_per_leaf, 0);
  EXPECT_EQ(all.cluster.fabric.citations[0].fact, "one switch a rail");
}

TEST(Planes, KeepTheirLinksAndRemarks) {
  FabricBuilder fabric = fat_tree(2, 2);
  fabric.add_switch("nowhere");
  const FabricMap map = two_rails(fat_tree(2, 2), fabric);
  EXPECT_EQ(map.switches.size(), 4u + 5u);
  EXPECT_EQ(map.adapters.size(), 8u);
  EXPECT_THAT(map.remarks, ElementsAre("rail1.out: 1 switch has no way to a host"));
  for (const FabricLink& link : map.links) {
    for (const FabricEnd end : {link.a, link.b}) {
      const bool other = end.index >= 4;  // of 4 switches and 4 adapters
      EXPECT_EQ(other, &link >= &map.links[map.links.size() / 2]);
    }
  }
  EXPECT_THAT(fabric_text(map), HasSubstr("4 leaves: leaf0, leaf1, other0 and other1"));
}

TEST(Planes, AreGivenOnce) {
  EXPECT_THAT(usage_sentence([] {
                merged(std::vector{parsed(rails()), parsed(rails())});
              }),
              HasSubstr("'net.out' and 'net.out' both have the switch"));
}

}  // namespace
}  // namespace polyring

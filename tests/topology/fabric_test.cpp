// Networks as ibnetdiscover lists them: reading, damage, levels, leaves and rails.
#include <nlohmann/json.hpp>

#include "base/files.hpp"
#include "tests/topology/fabric_builder.hpp"
#include "tests/topology/support.hpp"
#include "topology/inventory/formats/fabric_json.hpp"
#include "topology/inventory/formats/fabric_text.hpp"
#include "topology/inventory/formats/ibnetdiscover.hpp"
#include "topology/inventory/probe/sysfs.hpp"

namespace polyring {
namespace {

using ::testing::ElementsAre;
using testing::FabricBuilder;
using testing::fat_tree;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kNdr;
using ::testing::Not;
using testing::parsed;
using testing::rails;
using testing::two_pods;
using testing::usage_sentence;

std::vector<int> levels(const FabricMap& map) {
  std::vector<int> levels;
  for (const FabricSwitch& at : map.switches) levels.push_back(at.level);
  return levels;
}

TEST(Guids, HaveOneForm) {
  EXPECT_EQ(normal_guid("0xE09d730300156ff6"), "e09d730300156ff6");
  EXPECT_EQ(normal_guid("ec0d:9a03:0049:a212"), "ec0d9a030049a212");
  EXPECT_EQ(normal_guid("2c9000"), "00000000002c9000");
  for (const char* none : {"", "0x", "0", "0000:0000:0000:0000", "xyz", "12345678901234567"})
    EXPECT_EQ(normal_guid(none), "") << none;
}

TEST(Ibnetdiscover, ReadsNodesPortsAndRates) {
  const FabricMap map = parsed(fat_tree(2, 3));
  EXPECT_EQ(map.switches.size(), 4u);
  EXPECT_EQ(map.adapters.size(), 6u);
  EXPECT_EQ(map.links.size(), 10u);
  EXPECT_THAT(map.remarks, IsEmpty());
  EXPECT_THAT(levels(map), ElementsAre(2, 2, 1, 1));
  EXPECT_EQ(map.adapters[4].host, "n4");
  EXPECT_EQ(map.adapters[4].device, "mlx5_0");
  EXPECT_THAT(map.adapters[4].port_guids, ElementsAre(normal_guid(fat_tree(2, 3).guid("n4 mlx5_0", 1))));
  for (const FabricLink& link : map.links) EXPECT_EQ(link.bandwidth, kNdr) << link.rate;
}

TEST(Ibnetdiscover, CountsRatesAsTheProbeOfAHostDoes) {
  const std::map<std::string, std::string> rates{
      {"1xSDR", "2.5 Gb/sec (1X SDR)"}, {"4xSDR", "10 Gb/sec (4X SDR)"},     {"4xDDR", "20 Gb/sec (4X DDR)"},
      {"4xQDR", "40 Gb/sec (4X QDR)"},  {"4xFDR10", "40 Gb/sec (4X FDR10)"}, {"4xFDR", "56 Gb/sec (4X FDR)"},
      {"4xEDR", "100 Gb/sec (4X EDR)"}, {"12xEDR", "300 Gb/sec (12X EDR)"},  {"4xHDR", "200 Gb/sec (4X HDR)"},
      {"2xNDR", "200 Gb/sec (2X NDR)"}, {"4xXDR", "800 Gb/sec (4X XDR)"},    {"4x???", ""}};
  for (const auto& [rate, in_sysfs] : rates) {
    FabricBuilder fabric;
    fabric.add_switch("s").add_adapter("n mlx5_0").join("s", 1, "n mlx5_0", 1, rate);
    const FabricMap map = parsed(fabric);
    ASSERT_EQ(map.links.size(), 1u);
    EXPECT_EQ(map.links[0].bandwidth, probe::openfabrics_rate(in_sysfs, NicKind::infiniband)) << rate;
    EXPECT_EQ(map.remarks.size(), in_sysfs.empty() ? 1u : 0u);
  }
}

TEST(Ibnetdiscover, ReadsWhatItsOtherOptionsPrint) {
  const FabricMap map = parsed(
      "Chassis 1 (guid 0x2c90000)\n\n# Spine Nodes\nvendid=0x8f1\nsysimgguid=0x5442\t\t# Chassis 1\r\n"
      "switchguid=0x5442ba00003080(5442ba00003080)\t# ISR9024 line 1\n"
      "Switch\t24 \"S-005442ba00003080\"\t\t# \"ISR9024 \"A\" Voltaire\" base port 0 lid 6 lmc 0\n"
      "[22][ext 7]\t\"H-0008f10403961354\"[1](8f10403961355) \t\t# \"node3 HCA-1\" lid 4 4xSDR s=1 w=2 "
      "v=4\n\n"
      "Non-Chassis Nodes\n\ncaguid=0x8f10403961354\n"
      "Ca\t2 \"H-0008f10403961354\"\t\t# \"node3 HCA-1\"\n"
      "[1](8f10403961355) \t\"S-005442ba00003080\"[22][ext 7]\t\t# lid 4 lmc 0 \"ISR9024 \"A\" Voltaire\" "
      "lid 6 4xSDR\n"
      "rtguid=0x9\nRt\t2 \"R-0000000000000009\"\t\t# \"gateway\"\n");
  EXPECT_THAT(map.remarks, IsEmpty());
  ASSERT_EQ(map.links.size(), 1u);
  EXPECT_EQ(map.links[0].rate, "4xSDR");
  EXPECT_EQ(map.switches[0].name, "ISR9024 \"A\" Voltaire");
  EXPECT_EQ(map.adapters[0].host, "node3");
  EXPECT_EQ(map.adapters[1].kind, AdapterKind::router);
}

TEST(Ibnetdiscover, TellsHostsFromProducts) {
  FabricBuilder fabric;
  for (const char* name : {"n1 mlx5_0", "n2 HCA-12", "MT4129 ConnectX7   Mellanox Technologies",
                           "MT4129 ConnectX7", "Mellanox Technologies Aggregation Node", "alone"})
    fabric.add_adapter(name);
  const FabricMap map = parsed(fabric);
  std::vector<std::string> hosts;
  for (const FabricAdapter& adapter : map.adapters) hosts.push_back(adapter.host);
  EXPECT_THAT(hosts, ElementsAre("n1", "n2", "", "", "", ""));
  EXPECT_EQ(map.adapters[4].kind, AdapterKind::aggregation);
  fabric.add_switch("MF0;leaf-07:MQM9701/U1").add_switch("MF0;core:CS7520/L02/U2").add_switch("SX6036;x");
  const FabricMap switches = parsed(fabric);
  EXPECT_EQ(switches.switches[0].name, "leaf-07");
  EXPECT_EQ(switches.switches[1].name, "core/L02/U2");
  EXPECT_EQ(switches.switches[2].name, "SX6036;x");
}

TEST(Ibnetdiscover, PassesOverANameThatManyHostsHave) {
  for (const int adapters : {64, 65}) {
    FabricBuilder fabric;
    fabric.add_adapter("n1 mlx5_0");
    for (int i = 0; i < adapters; ++i) fabric.add_adapter(fmt::format("localhost mlx5_{}", i));
    const FabricMap map = parsed(fabric);
    EXPECT_EQ(map.adapters.front().host, "n1");
    EXPECT_EQ(map.adapters.back().host, adapters > 64 ? "" : "localhost");
    if (adapters > 64) {
      EXPECT_THAT(map.remarks, ElementsAre("65 adapters say that their host is localhost, more than a host "
                                           "has: the name is passed over"));
    } else {
      EXPECT_THAT(map.remarks, IsEmpty());
    }
  }
}

TEST(Ibnetdiscover, RefusesWhatIsNotItsOutput) {
  const std::string good = fat_tree(1, 1).text();
  const std::map<std::string, std::string> broken{
      {"", "names no switch"},
      {"# only a comment\n", "names no switch"},
      {"<html>\n", "line 1: this is none of ibnetdiscover's lines"},
      {"[1]\t\"S-1\"[2]\n", "line 1: there is a port before the first node"},
      {"Switch\t65\n", "line 1: a node has a number of ports"},
      {"Switch\tx \"S-1\"\n", "line 1: a node has a number of ports"},
      {"Switch\t65 \"S-xyz\"\n", "not followed by a GUID"},
      {"Switch\t65 \"S-1\"\n[1]\t\"H-2\"\n", "line 2: a port has its number"},
      {"Switch\t65 \"S-1\"\n[999999999999]\t\"H-2\"[1]\n", "line 2: a port has its number"},
      {"Switch\t65 \"S-1\"\n[1\t\"H-2[1]\n", "line 2: a port has its number"},
      {"Switch\t65 \"S-1\"\n[1]\t\"H-2\"[1]\n[1]\t\"H-3\"[1]\n",
       "port 1 of this node is described for the second"},
      {good + good, "is described for the second time"},
  };
  for (const auto& [text, naming] : broken)
    EXPECT_THAT(usage_sentence([&, &text = text] { parsed(text); }), HasSubstr(naming)) << text;
  std::string many;
  for (int i = 1; i <= 49'153; ++i) many += fmt::format("Ca\t1 \"H-{:x}\"\n", i);
  EXPECT_THAT(usage_sentence([&] { parsed(many); }), HasSubstr("line 49153: there are more nodes"));
}

TEST(Ibnetdiscover, TellsSwitchesOfOneNameApart) {
  const FabricMap map = parse_ibnetdiscover(
      "Switch 36 \"S-00000000000a1111\" # \"SwitchIB\"\nSwitch 36 \"S-00000000000b1111\" # \"SwitchIB\"\n"
      "Switch 36 \"S-00000000000c2222\" # \"leaf\"\n",
      "net.out");
  EXPECT_EQ(map.switches[0].name, "SwitchIB a1111");
  EXPECT_EQ(map.switches[1].name, "SwitchIB b1111");
  EXPECT_EQ(map.switches[2].name, "leaf");
}

TEST(Ibnetdiscover, TakesTheLesserOfTwoRates) {
  for (const bool first : {true, false}) {
    FabricBuilder fabric;
    fabric.add_switch("leaf0").add_adapter("n0 mlx5_0");
    fabric.port("leaf0", 1, "n0 mlx5_0", 1, first ? "4xNDR" : "1xNDR");
    fabric.port("n0 mlx5_0", 1, "leaf0", 1, first ? "1xNDR" : "4xNDR");
    const FabricMap map = parsed(fabric);
    ASSERT_EQ(map.links.size(), 1u);
    EXPECT_EQ(map.links[0].rate, "1xNDR");
    EXPECT_THAT(map.remarks,
                ElementsAre(HasSubstr("1 port leads to a port that has another rate; the lesser counts")));
  }
}

TEST(Ibnetdiscover, PassesOverWhatATerminalHasAround) {
  const std::string good = fat_tree(1, 1).text();
  const FabricMap map = parsed(
      "\xef\xbb\xbfme@node7:~$ ibnetdiscover\nibwarn: [1] sim_connect: attached\n"
      "src/query_smp.c:197; umad (DR path) timed out\n" +
      good + "me@node7:~$ \n");
  EXPECT_EQ(map.links.size(), parsed(good).links.size());
  EXPECT_THAT(
      map.remarks,
      ElementsAre("4 lines are not ibnetdiscover's, such as 'me@node7:~$ ibnetdiscover', passed over"));
  EXPECT_THAT(usage_sentence([] { parsed("CA  0  2 0x1 4x SDR\x1b - SW\n"); }),
              HasSubstr("ibnetdiscover's lines: 'CA  0  2 0x1 4x SDR␛ - SW'"));
}

TEST(Fabric, SwitchesWithoutALevelAreNoHosts) {
  FabricBuilder fabric;
  fabric.add_switch("a").add_switch("b").join("a", 1, "b", 1);
  EXPECT_THAT(fabric_text(parsed(fabric)), HasSubstr("between switches without a level: 1 4xNDR"));
  EXPECT_THAT(fabric_text(parsed(fabric)), HasSubstr("adapters: none"));
  EXPECT_THAT(fabric_text(parsed(fat_tree(1, 1))), Not(HasSubstr("without a level")));
  EXPECT_THAT(fabric_text(parsed(fat_tree(1, 1))), HasSubstr("adapters: 1 on 1 named host\n"));
}

TEST(Ibnetdiscover, LivesWithEndsThatDisagree) {
  FabricBuilder fabric = fat_tree(2, 2);
  fabric.add_adapter("n9 mlx5_0").port("leaf0", 20, "n9 mlx5_0", 1);
  EXPECT_THAT(
      parsed(fabric).remarks,
      ElementsAre("1 port leads to a port that the file does not have; the link is counted, such as port "
                  "20 of leaf0"));
  EXPECT_EQ(parsed(fabric).links.size(), 9u);

  fabric = fat_tree(2, 2);
  fabric.port("leaf1", 20, "n0 mlx5_0", 1);  // which says that it hangs on leaf0
  EXPECT_EQ(parsed(fabric).links.size(), 8u);
  EXPECT_THAT(parsed(fabric).remarks, ElementsAre(HasSubstr("port 20 of leaf1")));

  // Cut off in the middle, and at any place: read, or refused with a sentence.
  const std::string whole = fat_tree(2, 2).text();
  const FabricMap half = parsed(whole.substr(0, whole.find("Ca\t65")));
  EXPECT_THAT(half.remarks, ::testing::Contains(HasSubstr("is it complete?")));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    try {
      fabric_text(parsed(whole.substr(0, size)));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
    }
  }
}

TEST(Fabric, ThreeLevelsAreFound) {
  FabricBuilder fabric = fat_tree(2, 2);
  fabric.add_switch("core").join("spine0", 60, "core", 1).join("spine1", 60, "core", 2);
  const FabricMap map = parsed(fabric);
  EXPECT_THAT(levels(map), ElementsAre(2, 2, 1, 1, 3));
  EXPECT_THAT(map.remarks, IsEmpty());
}

TEST(Fabric, PodsAreJoinedBelowTheTop) {
  const FabricMap map = parsed(two_pods(1));
  const auto pods = pods_of(map, leaves_of(map));
  ASSERT_EQ(pods.size(), 1u);
  ASSERT_EQ(pods[0].size(), 2u);
  EXPECT_THAT(pods[0][0].leaves, ElementsAre(0, 1));
  EXPECT_THAT(pods[0][1].leaves, ElementsAre(2, 3));
  for (const Pod& pod : pods[0]) {
    EXPECT_EQ(pod.uplinks, 2);
    EXPECT_DOUBLE_EQ(pod.down.value, 4 * kNdr.value);
    EXPECT_DOUBLE_EQ(pod.up.value, 2 * kNdr.value);
  }
  EXPECT_THAT(fabric_text(map), HasSubstr("    2     4    2       2.00  2 pods of level 2\n"));
  const nlohmann::json json = nlohmann::json::parse(fabric_json(map));
  ASSERT_EQ(json.at("pods").size(), 2u);
  const nlohmann::json& second = json.at("pods").at(1);
  EXPECT_EQ(second.at("level"), 2);
  EXPECT_EQ(second.at("uplinks"), 2);
  EXPECT_EQ(second.at("oversubscription"), 2);
  std::vector<std::string> leaves;
  for (const nlohmann::json& at : json.at("switches")) {
    const auto& guids = second.at("leaves");
    if (std::ranges::find(guids, at.at("guid")) != guids.end()) leaves.push_back(at.at("name"));
  }
  EXPECT_THAT(leaves, ElementsAre("p1leaf0", "p1leaf1"));
  EXPECT_THAT(nlohmann::json::parse(fabric_json(parsed(fat_tree(2, 2)))).at("pods"), IsEmpty());
  // One pod is none, and below two levels there is nothing to join.
  EXPECT_THAT(pods_of(parsed(fat_tree(2, 2)), leaves_of(parsed(fat_tree(2, 2)))), IsEmpty());
}

TEST(Fabric, PodsWithALinkOfUnknownRateHaveNoRatio) {
  FabricBuilder fabric = two_pods(1);
  fabric.add_adapter("n9 mlx5_0").join("p1leaf1", 9, "n9 mlx5_0", 1, "4xABC");
  const FabricMap map = parsed(fabric);
  const auto pods = pods_of(map, leaves_of(map));
  EXPECT_TRUE(pods[0][0].down.known());
  EXPECT_FALSE(pods[0][1].down.known());
  EXPECT_THAT(fabric_text(map), HasSubstr("?  1 pod of level 2\n"));
}

TEST(Fabric, AnAdapterOnASpineMakesItNoLeaf) {
  FabricBuilder fabric = fat_tree(6, 2);
  fabric.add_adapter("manager mlx5_0").join("spine1", 60, "manager mlx5_0", 1);
  const FabricMap map = parsed(fabric);
  EXPECT_THAT(levels(map), ElementsAre(2, 2, 1, 1, 1, 1, 1, 1));
  EXPECT_THAT(map.remarks, ElementsAre("spine1 is of level 2, and yet 1 adapter hangs on it"));
  EXPECT_EQ(leaves_of(map)[0].uplinks, 2);
}

TEST(Fabric, SaysWhenItIsNoFatTree) {
  FabricBuilder ring;
  for (int i = 0; i < 4; ++i) {
    ring.add_switch(fmt::format("s{}", i));
    for (int host = 0; host < 2; ++host) {
      const std::string adapter = fmt::format("n{} mlx5_0", 2 * i + host);
      ring.add_adapter(adapter).join(fmt::format("s{}", i), 1 + host, adapter, 1);
    }
  }
  for (int i = 0; i < 4; ++i) ring.join(fmt::format("s{}", i), 10, fmt::format("s{}", (i + 1) % 4), 11);
  ring.add_switch("nowhere");
  const FabricMap map = parsed(ring);
  EXPECT_THAT(levels(map), ElementsAre(1, 1, 1, 1, 0));
  EXPECT_THAT(map.remarks, ElementsAre(HasSubstr("not a fat tree: 4 links join two switches of one level"),
                                       "1 switch has no way to a host"));
}

TEST(Fabric, LeavesThatShareTheirHostsAreOneNeighbourhood) {
  const FabricMap map = parsed(rails());
  const std::vector<Leaf> leaves = leaves_of(map);
  const std::vector<Neighbourhood> near = neighbourhoods_of(map, leaves);
  ASSERT_EQ(near.size(), 2u);
  EXPECT_THAT(near[0].leaves, ElementsAre(0, 1));
  EXPECT_THAT(near[0].hosts, ElementsAre("n0", "n2", "n4", "n6"));
  EXPECT_THAT(near[1].hosts, ElementsAre("n1", "n3", "n5", "n7"));
  EXPECT_DOUBLE_EQ(near[0].up.value, 6 * kNdr.value);
  const std::string text = fabric_text(map);
  EXPECT_THAT(text, HasSubstr("n7's mlx5_1 hangs on b0, where others have mlx5_0"));
  EXPECT_THAT(text, HasSubstr("4   3       1.33  4 leaves: a0, a1, b0 and b1"));
  EXPECT_THAT(text, HasSubstr("4 named hosts on a0 and a1, 291 GB/s up"));
}

TEST(Fabric, ALeafThatUnitsShareJoinsThemNot) {
  FabricBuilder fabric = rails();
  fabric.add_switch("storage").join("storage", 40, "spine", 50);
  for (int host = 0; host < 8; ++host) {
    const std::string adapter = fmt::format("n{} mlx5_2", host);
    fabric.add_adapter(adapter).join("storage", 1 + host, adapter, 1);
  }
  const FabricMap map = parsed(fabric);
  const auto near = neighbourhoods_of(map, leaves_of(map));
  ASSERT_EQ(near.size(), 3u);
  EXPECT_EQ(near[0].hosts.size(), 4u);
  EXPECT_THAT(near[2].hosts, IsEmpty());
}

TEST(Fabric, SlowLinksAreNamed) {
  FabricBuilder fabric = fat_tree(3, 4);
  fabric.add_adapter("slow mlx5_0").join("leaf2", 20, "slow mlx5_0", 1, "1xNDR");
  EXPECT_THAT(fabric_text(parsed(fabric)),
              HasSubstr("the link from slow mlx5_0 port 1 to leaf2 port 20 runs at 1xNDR "
                        "(12.1 GB/s), its like at 48.5 GB/s"));
  EXPECT_THAT(fabric_text(parsed(fat_tree(3, 4))), Not(HasSubstr("look at")));
}

// --- a real one; numbers by grep and awk

FabricMap real_fabric() {
  const auto file = testing::topologies() / "fabric/topograph-ibnetdiscover-example.out";
  return parse_ibnetdiscover(read_text_file(file), file.string());
}

TEST(RealFabric, HasItsSwitchesAdaptersAndLevels) {
  POLYRING_NEEDS_TOPOLOGIES();
  const FabricMap map = real_fabric();
  EXPECT_EQ(map.switches.size(), 40u);
  EXPECT_EQ(map.adapters.size(), 582u);
  EXPECT_EQ(std::ranges::count(map.adapters, AdapterKind::aggregation, &FabricAdapter::kind), 40);
  int leaves = 0;
  for (const FabricSwitch& at : map.switches) {
    const bool is_spine = at.name.find("IBSPINE") != std::string::npos;
    EXPECT_EQ(at.level, is_spine ? 2 : 1) << at.name;
    leaves += is_spine ? 0 : 1;
  }
  EXPECT_EQ(leaves, 31);
  // 582 adapters with one port each, and 532 cables between leaves and spines.
  EXPECT_EQ(map.links.size(), 582u + 532u);
  for (const FabricLink& link : map.links) EXPECT_EQ(link.rate, "4xNDR");
}

TEST(RealFabric, HasItsLeavesAndRails) {
  POLYRING_NEEDS_TOPOLOGIES();
  const FabricMap map = real_fabric();
  const std::vector<Leaf> leaves = leaves_of(map);
  const auto leaf = [&](std::string_view name) {
    return *std::ranges::find_if(leaves, [&](const Leaf& at) {
      return map.switches[static_cast<std::size_t>(at.switch_index)].name == name;
    });
  };
  const Leaf first = leaf("A09-P1-IBLEAF-01-02");
  EXPECT_EQ(first.adapters.size(), 16u);
  EXPECT_EQ(first.uplinks, 14);
  EXPECT_DOUBLE_EQ(first.down.value, 16 * kNdr.value);
  EXPECT_DOUBLE_EQ(first.up.value, 14 * kNdr.value);
  const Leaf crossed = leaf("B09-P1-IBLEAF-03-08");
  EXPECT_EQ(crossed.adapters.size(), 19u);
  EXPECT_EQ(crossed.uplinks, 18);
  // Eight units of four rails each; the leaf 03-01 is missing.
  const std::vector<Neighbourhood> near = neighbourhoods_of(map, leaves);
  ASSERT_EQ(near.size(), 8u);
  std::vector<std::size_t> sizes;
  for (const Neighbourhood& of : near) sizes.push_back(of.leaves.size());
  EXPECT_EQ(std::ranges::count(sizes, 4u), 7);
  EXPECT_EQ(std::ranges::count(sizes, 3u), 1);
}

}  // namespace
}  // namespace polyring

// Hosts known one by one: which are equal, in which order, and how that is said, written and read again.
#include "topology/inventory/inventory.hpp"

#include <nlohmann/json.hpp>

#include "tests/folder.hpp"
#include "tests/topology/support.hpp"
#include "topology/inventory/formats/inventory_text.hpp"
#include "topology/inventory/formats/probe_json.hpp"
#include "topology/inventory/formats/read_inventory.hpp"
#include "topology/presets.hpp"

namespace polyring {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::small_machine;
using testing::TemporaryFolder;
using testing::usage_sentence;
using Json = nlohmann::json;

Machine named(std::string name, Machine machine = small_machine()) {
  machine.name = std::move(name);
  machine.nics[0].ports[0].guid = fmt::format("0xa{}", machine.name.back());
  return machine;
}

Machine without_network(std::string name) {
  Machine machine = named(std::move(name));
  machine.nics[0].ports[0].up = false;
  return machine;
}

Inventory hosts(std::vector<Machine> machines) {
  std::vector<Inventory> parts;
  for (Machine& machine : machines) parts.push_back(inventory_of(std::move(machine)));
  return merged(std::move(parts));
}

std::vector<int> counts(const Inventory& inventory) {
  std::vector<int> counts;
  for (const HostGroup& group : inventory.cluster.groups) counts.push_back(group.count);
  return counts;
}

std::vector<std::string> sentences(const Inventory& inventory) {
  std::vector<std::string> sentences;
  for (const NamedDifference& difference : differences_of(inventory))
    sentences.push_back(difference.sentence);
  return sentences;
}

TEST(Inventory, SaysOfWhichHostsSomethingWasAsked) {
  const auto part = [](const std::string& name, std::vector<std::string> asked) {
    Inventory one = inventory_of(named(name));
    one.asked = std::move(asked);
    return one;
  };
  const std::string rails = "2 of 4 NICs are used: mlx5_0 (processor 0), mlx5_2 (processor 1)";
  EXPECT_THAT(merged({part("n1", {rails}), part("n2", {rails})}).asked, ElementsAre(rails));
  const Inventory some = merged({part("n1", {rails}), part("n2", {})});
  EXPECT_THAT(some.asked, ElementsAre("n1: " + rails));
  EXPECT_THAT(merged({some, part("n3", {rails})}).asked, ElementsAre("n3: " + rails, "n1: " + rails));
}

TEST(Inventory, GroupsNeighboursThatAreAlikeAndKeepsTheOrder) {
  const Inventory all =
      hosts({named("n1"), named("n2"), without_network("n3"), named("n4"), without_network("n5")});
  EXPECT_THAT(counts(all), ElementsAre(2, 1, 1, 1));
  EXPECT_EQ(all.cluster.name, "n1 and 4 more");
  EXPECT_EQ(all.cluster.host_count(), 5);
  // Rank 5 is the second of the third host, the one without a network.
  EXPECT_EQ(all.cluster.place(5).host, 2);
  EXPECT_FALSE(all.cluster.host(2).nics[0].up());
  EXPECT_TRUE(all.cluster.host(3).nics[0].up());
  EXPECT_EQ(all.members[0][1].name, "n2");
  EXPECT_THAT(all.members[0][1].port_guids, ElementsAre("0xa2"));
  EXPECT_THAT(sentences(all), ElementsAre("on n3 and n5 mlx5_0 is down"));
  const std::vector<HostKind> kinds = kinds_of(all.cluster);
  ASSERT_EQ(kinds.size(), 2u);
  EXPECT_THAT(kinds[0].groups, ElementsAre(0, 2));
  EXPECT_EQ(kinds[0].count, 3);
}

TEST(Inventory, TheCommonestKindIsTheUsualOne) {
  const Inventory all = hosts({without_network("n1"), named("n2"), named("n3")});
  EXPECT_THAT(sentences(all), ElementsAre("n1's mlx5_0 is down"));
}

TEST(Inventory, OfOneHostIsThatHost) {
  const Inventory one = hosts({named("n1")});
  EXPECT_EQ(one.cluster.name, "n1");
  EXPECT_THAT(one.notes, IsEmpty());
  EXPECT_EQ(inventory_text(one).find("hosts\n"), std::string::npos);
  EXPECT_EQ(probe_json(one), probe_json(one.cluster));
}

TEST(Inventory, NotesWhatIsTooLittleToMatter) {
  Machine first = named("n1");
  first.packages[0].memory = {128ull << 30};
  Machine second = first;
  second.name = "n2";
  second.packages[0].memory = {(128ull << 30) - (64 << 10)};
  const Inventory all = hosts({first, second});
  EXPECT_THAT(counts(all), ElementsAre(2));
  EXPECT_THAT(all.notes, ElementsAre("taken as equal although n2's package0 has 64KiB less memory"));
  std::vector<Machine> many{first};
  for (std::uint64_t i = 1; i <= 9; ++i) {
    many.push_back(named(fmt::format("m{}", i), first));
    many.back().packages[0].memory.value -= i << 16;
  }
  const Inventory noted = hosts(many);
  EXPECT_EQ(noted.cluster.groups.size(), 1u);
  ASSERT_EQ(noted.notes.size(), 5u);
  EXPECT_THAT(noted.notes.back(), HasSubstr("5 more differences of less than 1 %"));
}

TEST(Inventory, KeepsTheRemarksOfAllHosts) {
  Machine first = named("n1");
  Machine second = named("n2");
  first.remarks = {"the clock is slow", "gpu0 is warm"};
  second.remarks = {"the clock is slow"};
  const Inventory all = hosts({first, second, named("n3", second)});
  ASSERT_EQ(all.cluster.groups.size(), 1u);
  EXPECT_THAT(all.cluster.host(0).remarks, ElementsAre("the clock is slow", "n1: gpu0 is warm"));
}

TEST(Inventory, KeepsTheFaultsOfEachHost) {
  Machine second = named("n2");
  second.link_faults = {{"gpu0", "gpu0 is slow"}};
  const Inventory all = hosts({named("n1"), second});
  EXPECT_THAT(all.members[0][0].link_faults, ElementsAre());
  EXPECT_THAT(all.members[0][1].link_faults, ElementsAre(LinkFault{"gpu0", "gpu0 is slow"}));
}

TEST(Inventory, AHostOfAnotherKindIsSeenByItself) {
  const Inventory all = hosts({named("n1"), named("n2"), named("big", preset("dgx-a100", 1).host(0))});
  ASSERT_EQ(sentences(all).size(), 1u);
  EXPECT_THAT(sentences(all)[0],
              ::testing::MatchesRegex("big has [0-9]+ differences from n1: another kind of host"));
  EXPECT_THAT(inventory_text(all), HasSubstr("\nhost big "));
  const Inventory little = hosts({named("n1"), named("n2"), without_network("n3")});
  EXPECT_THAT(inventory_text(little), Not(HasSubstr("\nhost n3 ")));
  EXPECT_THAT(inventory_text(little), HasSubstr("hosts\n  2 equal: n1 and n2\n  n3's mlx5_0 is down\n"));
  EXPECT_THAT(inventory_text(little), HasSubstr("n1 and 2 more: 3 hosts, 6 ranks"));
  EXPECT_EQ(pictured(little).groups.size(), 1u);
  EXPECT_EQ(not_pictured_text(little), "\nnot shown, as it differs little\n  n3's mlx5_0 is down\n");
  EXPECT_THAT(not_pictured(all), IsEmpty()) << "all are shown";
  EXPECT_EQ(not_pictured_text(hosts({named("n1"), named("n2")})), "");
}

TEST(Inventory, IsReadAgainFromItsJson) {
  Inventory all = hosts({named("n1"), named("n2"), without_network("n3")});
  all.unprobed = {{"n4", "no answer"}};
  all.notes = {"a note"};
  all.places = {"leaf1: n1"};
  const std::string json = probe_json(all);
  const Inventory again = parse_inventory_json(json, "memory");
  EXPECT_EQ(probe_json(again), json);
  EXPECT_EQ(again.members[0][1].name, "n2");
  EXPECT_EQ(again.members[0][1].port_guids, all.members[0][1].port_guids);
  EXPECT_EQ(again.members[1][0].name, "n3");
  const Json parsed = Json::parse(json);
  EXPECT_EQ(parsed.at("hosts").at(0).at("members").at(1).at("name"), "n2");
  EXPECT_EQ(parsed.at("differences").at(0),
            Json::parse(R"({"hosts": ["n3"], "difference": "n3's mlx5_0 is down"})"));
  EXPECT_EQ(parsed.at("unprobed").at(0).at("why"), "no answer");
  EXPECT_EQ(probe_json(parse_probe_json(json, "memory")), probe_json(all.cluster));
}

TEST(Inventory, KeepsWhichCoresOfEachHostAreAllowed) {
  Inventory one = hosts({named("n1")});
  one.members[0][0].allowed = AllowedCores{{2, 3, 4, 7}, {3, 4}, 1.5};
  EXPECT_EQ(Json::parse(probe_json(one)).at("hosts").at(0).at("allowed_cores"),
            Json::parse(R"({"cpuset": [2, 3, 4, 7], "affinity": [3, 4], "cpu_limit": 1.5})"));
  const Inventory all = merged({parse_inventory_json(probe_json(one), "memory"), hosts({named("n2")})});
  ASSERT_THAT(counts(all), ElementsAre(2)) << "the hosts are equal";
  const Inventory again = parse_inventory_json(probe_json(all), "memory");
  EXPECT_EQ(again.members[0][0].allowed, one.members[0][0].allowed);
  EXPECT_EQ(again.members[0][1].allowed, std::nullopt) << "who says nothing may use all";
}

TEST(Inventory, RefusesAllowedCoresThatCannotBe) {
  const auto fault = [](const char* allowed) {
    Json json = Json::parse(probe_json(hosts({named("n1")})));  // of 8 cores
    json["hosts"][0]["allowed_cores"] = Json::parse(allowed);
    return usage_sentence([&] { parse_inventory_json(json.dump(), "x.json"); });
  };
  EXPECT_THAT(fault("7"), HasSubstr("'x.json'.hosts[0].allowed_cores is missing or not an object"));
  EXPECT_THAT(fault(R"({"cpuset": [0], "affinity": []})"),
              HasSubstr("affinity is missing or not an ascending"));
  EXPECT_THAT(fault(R"({"affinity": [0]})"), HasSubstr("cpuset is missing"));
  for (const char* cpuset : {"[1, 0]", "[0, 0]", "[-1, 0]", "[0, 8]", "[0, 1.5]", "[0, 1e300]"})
    EXPECT_THAT(fault(fmt::format(R"({{"cpuset": {}, "affinity": [0]}})", cpuset).c_str()),
                HasSubstr("cpuset is missing or not an ascending array of numbers of its 8 cores"));
  EXPECT_THAT(fault(R"({"cpuset": [1], "affinity": [0]})"), HasSubstr("not a part of cpuset"));
  EXPECT_THAT(fault(R"({"cpuset": [0], "affinity": [0], "cpu_limit": 0})"),
              HasSubstr("cpu_limit is missing or not above 0"));
}

TEST(Inventory, RefusesMembersThatAreNotAsMany) {
  Json json = Json::parse(probe_json(hosts({named("n1"), named("n2")})));
  json["hosts"][0]["members"].erase(1);
  EXPECT_THAT(usage_sentence([&] { parse_inventory_json(json.dump(), "x.json"); }),
              HasSubstr("'x.json'.hosts[0].members"));
}

TEST(Inventory, PutsHostsIntoAnotherOrder) {
  const Inventory all = hosts({named("n1"), without_network("n2"), named("n3"), named("n4")});
  const Inventory moved = reordered(all, {3, 0, 2, 1});
  EXPECT_THAT(counts(moved), ElementsAre(3, 1));
  EXPECT_EQ(moved.members[0][0].name, "n4");
  EXPECT_EQ(moved.members[0][1].name, "n1");
  EXPECT_EQ(moved.members[1][0].name, "n2");
  EXPECT_FALSE(moved.cluster.host(3).nics[0].up());
}

TEST(ReadInventory, MergesFilesOfAllFormats) {
  const TemporaryFolder folder;
  const auto one = folder.write("one.json", probe_json(inventory_of(named("n1"))));
  const auto two = folder.write("two.json", probe_json(hosts({named("n2"), named("n3")})));
  const std::filesystem::path xml = tests_folder() / "topology/fixtures/two_sockets.v2.xml";
  const Inventory all = read_inventory(std::vector{one, two, xml});
  EXPECT_THAT(counts(all), ElementsAre(3, 1));
  EXPECT_EQ(all.members[0][2].name, "n3");
  const Inventory twice = read_inventory(std::vector{two, two});
  EXPECT_EQ(twice.cluster.host_count(), 4);
  EXPECT_THAT(twice.notes, ElementsAre("several files describe n2 and n3, which are counted each time"));
}

TEST(ReadInventory, SaysOfSeveralFilesWhichOneIsWrong) {
  const TemporaryFolder folder;
  const auto good = folder.write("good.json", probe_json(inventory_of(named("n1"))));
  const auto bad = folder.write("bad.xml", "<?xml version=\"1.0\"?>\n<topology version=\"2.0\">\n");
  EXPECT_THAT(usage_sentence([&] { read_inventory(std::vector{good, bad, good}); }), HasSubstr("bad.xml"));
  EXPECT_THAT(usage_sentence([&] {
                read_inventory(std::vector{good, folder.path() / "none"});
              }),
              HasSubstr("there is no file"));
}

TEST(Inventory, OfAThousandHosts) {
  std::vector<Machine> machines;
  for (int i = 0; i < 1000; ++i) {
    machines.push_back(named(fmt::format("node{:04}", i), preset("dgx-h100", 1).host(0)));
    machines.back().packages[0].memory = {(1024ull << 30) + (static_cast<std::uint64_t>(i % 50) << 16)};
    if (i % 100 == 99) machines.back().nics[0].ports[0].up = false;
  }
  const Inventory all = hosts(std::move(machines));
  const std::string text = inventory_text(all);
  EXPECT_EQ(all.cluster.host_count(), 1000);
  EXPECT_EQ(kinds_of(all.cluster)[0].count, 990);
  EXPECT_THAT(text, HasSubstr("on node[0099,0199,0299,0399,0499,0599,0699,0799,0899,0999] mlx5_0 is down"));
}

// Read off the files by hand: the hosts differ in names, GUIDs, addresses and serial numbers, in how their
// cores are numbered, and in one 64 KiB page of memory at package0 of sierra3683.
TEST(RealHosts, OfSierraAreAlikeButForAPage) {
  POLYRING_NEEDS_TOPOLOGIES();
  std::vector<std::filesystem::path> files;
  for (int i = 0; i < 4; ++i)
    files.push_back(testing::topologies() / "hwloc" / fmt::format("flux-sched-sierra2-4n-{}.xml", i));
  const Inventory all = read_inventory(files);
  ASSERT_EQ(all.cluster.groups.size(), 1u);
  EXPECT_EQ(all.cluster.ranks(), 16);
  std::vector<std::string> names;
  for (const HostIdentity& host : all.members[0]) names.push_back(host.name);
  EXPECT_THAT(names, ElementsAre("sierra3682", "sierra3179", "sierra3683", "sierra3178"));
  EXPECT_THAT(differences_of(all), IsEmpty());
  EXPECT_THAT(all.notes, ElementsAre("taken as equal although sierra3683's package0 has 64KiB more memory"));
}

}  // namespace
}  // namespace polyring

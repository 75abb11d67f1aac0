// The three formats and the reader, on small clusters; the catalogue's golden files are in presets_test.cpp.
#include <nlohmann/json.hpp>

#include "tests/folder.hpp"
#include "tests/topology/support.hpp"
#include "topology/inventory/formats/probe_json.hpp"
#include "topology/inventory/formats/probe_matrix.hpp"
#include "topology/inventory/formats/probe_text.hpp"
#include "topology/inventory/formats/read_cluster.hpp"
#include "topology/presets.hpp"

namespace polyring {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::small_machine;
using ::testing::StartsWith;
using testing::TemporaryFolder;
using testing::usage_sentence;
using Json = nlohmann::json;

TEST(ProbeText, MarksWhatIsUnknownOrDown) {
  Machine machine = small_machine();
  machine.links[0].bandwidth = {};
  machine.nics[0].ports = {{1, false, {}}};
  const std::string text = probe_text(cluster_of(machine, 1));
  EXPECT_THAT(text, AllOf(HasSubstr("pcie ? -> gpu0"), HasSubstr("port 1 DOWN ?"),
                          HasSubstr("small: 1 host, 2 ranks")));
  machine.nics[0].ports.clear();
  EXPECT_THAT(probe_text(cluster_of(machine, 1)), HasSubstr("ports ?"));
  machine.packages[0].cores = 0;
  EXPECT_THAT(probe_text(cluster_of(machine, 1)), HasSubstr("package0  ?, ? cores, ? GiB"));
}

TEST(ProbeText, ListsEachLinkOnce) {
  const Machine machine = preset("summit", 1).host(0);
  const std::string text = probe_text(cluster_of(machine, 1));
  std::size_t links = 0;
  for (const char* kind : {" nvlink ", " pcie ", " socket-bus "}) {
    for (std::size_t at = text.find(kind); at != std::string::npos; at = text.find(kind, at + 1)) ++links;
  }
  EXPECT_EQ(links, machine.links.size());
}

TEST(ProbeText, SaysWhichNicsShareALink) {
  const std::string text = probe_text(cluster_of(testing::two_port_machine(), 1));
  EXPECT_THAT(text, HasSubstr("pcie 16.0 GB/s shared with mlx5_1 -> mlx5_0"));
  EXPECT_THAT(text, HasSubstr("pcie 16.0 GB/s shared with mlx5_0 -> mlx5_1"));
  EXPECT_THAT(text, HasSubstr("pcie 16.0 GB/s -> gpu0"));
}

TEST(ProbeText, ListsEachKindOfHost) {
  Cluster cluster = preset("minsky", 3);
  cluster.groups.push_back({small_machine(), 1});
  EXPECT_THAT(probe_text(cluster),
              AllOf(HasSubstr("4 hosts, 14 ranks"), HasSubstr("3 equal"), HasSubstr("host small")));
  EXPECT_THAT(probe_matrix(cluster), AllOf(HasSubstr("minsky, 3 equal"), HasSubstr("\nsmall\n")));
}

TEST(ProbeMatrix, OfAHostWithoutDevicesSaysSo) {
  Machine machine;
  machine.name = "bare";
  machine.packages.push_back(
      {.name = "package0", .model = {}, .cores = 1, .memory = {}, .memory_bandwidth = {}, .numa_nodes = {}});
  EXPECT_THAT(probe_matrix(cluster_of(machine, 1)), StartsWith("bare\nno GPU and no NIC\n"));
}

TEST(ProbeMatrix, MarksNvlinkOfUnknownBandwidth) {
  Machine machine = small_machine();
  machine.links.push_back({{DeviceKind::gpu, 0}, {DeviceKind::gpu, 1}, LinkKind::nvlink, {}, {}});
  EXPECT_THAT(probe_matrix(cluster_of(machine, 1)), HasSubstr("gpu0    X     NV? "));
  machine.links.back().count = 12;
  EXPECT_THAT(probe_matrix(cluster_of(machine, 1)), HasSubstr("gpu0    X       NV?x12"));
  EXPECT_THAT(probe_text(cluster_of(machine, 1)), HasSubstr("gpu0 - gpu1  nvlink 12 x ?\n"));
}

TEST(ProbeJson, KeepsTheNumberOfBondedLinks) {
  Machine machine = small_machine();
  EXPECT_THAT(probe_json(cluster_of(machine, 1)), Not(HasSubstr("\"count\": 12")));
  machine.links.push_back({{DeviceKind::gpu, 0}, {DeviceKind::gpu, 1}, LinkKind::nvlink, {}, {}, 12});
  std::string text = probe_json(cluster_of(machine, 1));
  EXPECT_EQ(parse_probe_json(text, "memory").host(0).links.back().count, 12);
  EXPECT_EQ(probe_json(parse_probe_json(text, "memory")), text);
  text.replace(text.find("\"count\": 12"), 11, "\"count\": -1");
  EXPECT_THAT(testing::usage_sentence([&] { parse_probe_json(text, "memory"); }),
              HasSubstr(".count is missing or not"));
}

TEST(ProbeJson, HasTheKeysThatToolsRead) {
  Machine machine = small_machine();
  machine.gpus[0].pci = "0000:01:00.0";
  machine.links[0].bandwidth = {};
  const Json json = Json::parse(probe_json(cluster_of(machine, 2)));
  const Json& host = json.at("hosts").at(0);
  EXPECT_EQ(host.at("name"), "small");
  EXPECT_EQ(host.at("count"), 2);
  EXPECT_EQ(host.at("gpus").at(0).at("name"), "gpu0");
  EXPECT_EQ(host.at("gpus").at(0).at("pci"), "0000:01:00.0");
  EXPECT_EQ(host.at("gpus").at(1).at("numa"), 1);
  EXPECT_EQ(host.at("nics").at(0).at("kind"), "infiniband");
  EXPECT_EQ(host.at("nics").at(0).at("ports").at(0),
            Json::parse(R"({"number": 1, "up": true, "GBps": 12.0})"));
  EXPECT_EQ(host.at("links").at(1).at("from"), "gpu1");
  EXPECT_EQ(host.at("links").at(1).at("to"), "package1");
  EXPECT_EQ(host.at("links").at(1).at("kind"), "pcie");
  EXPECT_EQ(host.at("links").at(1).at("GBps"), 16);
  EXPECT_TRUE(host.at("links").at(0).at("GBps").is_null());
}

TEST(ProbeJson, SaysWhichNicsShareALink) {
  const std::string text = probe_json(cluster_of(testing::two_port_machine(), 1));
  const auto links = nlohmann::json::parse(text).at("hosts").at(0).at("links");
  EXPECT_EQ(links.at(2).at("shared_with"), nlohmann::json({"mlx5_1"}));
  EXPECT_EQ(links.at(3).at("shared_with"), nlohmann::json({"mlx5_0"}));
  EXPECT_FALSE(links.at(0).contains("shared_with"));
  EXPECT_EQ(probe_json(parse_probe_json(text, "memory")), text);
}

TEST(ProbeJson, KeepsEverythingUnknownUnknown) {
  Machine machine = small_machine();
  machine.gpus[0].numa = machine.gpus[0].host_bridge = -1;
  machine.nics[0].ports = {{2, false, {}}};
  machine.packages[0].cores = 0;
  machine.name = "caf\xe9";  // not UTF-8
  const std::string json = probe_json(cluster_of(machine, 1));
  const Cluster again = parse_probe_json(json, "memory");
  EXPECT_TRUE(Json::parse(json)["hosts"][0]["packages"][0]["cores"].is_null());
  EXPECT_EQ(again.host(0).packages[0].cores, 0);
  EXPECT_EQ(again.host(0).gpus[0].numa, -1);
  EXPECT_EQ(again.host(0).gpus[0].host_bridge, -1);
  EXPECT_FALSE(again.host(0).nics[0].ports[0].bandwidth.known());
  EXPECT_EQ(again.host(0).nics[0].ports[0].number, 2);
  EXPECT_EQ(probe_json(again), json);
}

Json good_json() { return Json::parse(probe_json(cluster_of(small_machine(), 2))); }

std::string sentence_about(const std::string& text) {
  return usage_sentence([&] { parse_probe_json(text, "machine.json"); });
}

TEST(ProbeJson, KeepsWhatALiveProbeNoted) {
  Machine machine = small_machine();
  machine.nics[0].ports[0].guid = "0x506b4b0300c0ffee";
  machine.nics[0].system_guid = "0x506b4b0300c0ffe0";
  machine.links[0].kind = LinkKind::c2c;
  machine.sources = {{"hwloc", true, "2 packages"}, {"NVML", false, "there is no libnvidia-ml.so.1"}};
  machine.remarks = {"gpu1 runs on 8 of 16 PCIe lanes"};
  machine.link_faults = {{"gpu1", machine.remarks[0]}, {"mlx5_0", "mlx5_0 port 1 is DOWN", true}};
  machine.gpu_driver = "NVIDIA 550.54.15";
  machine.gpu_links_known = false;
  machine.packages[0].cpu = {"x86_64", "GenuineIntel", 6, 143};
  const Cluster cluster = cluster_of(machine, 1);
  const std::string json = probe_json(cluster);
  EXPECT_EQ(probe_json(parse_probe_json(json, "probe.json")), json);
  EXPECT_THAT(json, AllOf(HasSubstr("0x506b4b0300c0ffee"), HasSubstr("0x506b4b0300c0ffe0")));
  EXPECT_THAT(json, AllOf(HasSubstr("GenuineIntel"), HasSubstr("gpu_links_known"), HasSubstr("link_faults")));
  EXPECT_THAT(probe_text(cluster),
              AllOf(HasSubstr("absent NVML: there is no libnvidia-ml.so.1"),
                    HasSubstr("look at\n    gpu1 runs on 8 of 16 PCIe lanes"), HasSubstr("c2c")));
}

TEST(ProbeJson, RefusesWhatIsNotOurs) {
  EXPECT_THAT(sentence_about("{\"hosts\": ["), HasSubstr("not valid JSON"));
  EXPECT_THAT(sentence_about("{}"), HasSubstr("not of polyring probe"));
  EXPECT_THAT(sentence_about("[1, 2]"), HasSubstr("not of polyring probe"));
  EXPECT_THAT(sentence_about("{\"schema\": \"polyring-result\", \"version\": 1}"),
              HasSubstr("not of polyring probe"));
  EXPECT_THAT(sentence_about(std::string(100'000, '[')), HasSubstr("not valid JSON"));
}

TEST(ProbeJson, RefusesANewerVersion) {
  Json json = good_json();
  json["version"] = 2;
  EXPECT_THAT(sentence_about(json.dump()), AllOf(HasSubstr("version 2"), HasSubstr("machine.json")));
  json["version"] = "1";
  EXPECT_THAT(sentence_about(json.dump()), HasSubstr("no valid version"));
}

TEST(ProbeJson, NamesTheFieldThatIsWrong) {
  const auto with = [](const char* pointer, const Json& value) {
    Json json = good_json();
    json[Json::json_pointer(pointer)] = value;
    return sentence_about(json.dump());
  };
  EXPECT_THAT(with("/hosts", 3), HasSubstr("'machine.json'.hosts is missing or not an array"));
  EXPECT_THAT(with("/hosts/0", 3), HasSubstr("hosts[0]"));
  EXPECT_THAT(with("/hosts/0/count", 0), HasSubstr("0 hosts"));
  EXPECT_THAT(with("/hosts/0/count", 1e300), HasSubstr("count"));
  EXPECT_THAT(with("/hosts/0/count", 4'000'000'000), HasSubstr("count"));
  EXPECT_THAT(with("/hosts/0/gpus/1/name", 7), HasSubstr("hosts[0].gpus[1].name"));
  EXPECT_THAT(with("/hosts/0/gpus/1/memory_bytes", -7), HasSubstr("memory_bytes"));
  EXPECT_THAT(with("/hosts/0/nics/0/kind", "token ring"), HasSubstr("one of infiniband, ethernet"));
  EXPECT_THAT(with("/hosts/0/nics/0/ports/0/up", 1), HasSubstr("ports[0].up"));
  EXPECT_THAT(with("/hosts/0/links/0/from", "gpu9"), HasSubstr("links[0].from"));
  EXPECT_THAT(with("/hosts/0/links/0/GBps", "fast"), HasSubstr("links[0].GBps"));
  EXPECT_THAT(with("/hosts/0/links/0/GBps", -1), HasSubstr("bandwidth"));
  EXPECT_THAT(with("/hosts/0/links/0/GBps", 1e300), HasSubstr("bandwidth"));
  EXPECT_THAT(with("/hosts/0/packages/0/numa", "x"), HasSubstr("packages[0].numa"));
  EXPECT_THAT(with("/hosts/0/packages/0/numa", Json::array({4'294'967'297})), HasSubstr("packages[0].numa"));
  EXPECT_THAT(with("/hosts/0/nvswitches", 1'000'000), HasSubstr("nvswitches"));
  const Json many(Json::array_t(1500));
  for (const char* devices : {"/hosts/0/packages", "/hosts/0/switches", "/hosts/0/gpus", "/hosts/0/nics"})
    EXPECT_THAT(with(devices, many), HasSubstr("an array of at most ")) << devices;
}

TEST(ProbeJson, KeepsAFabricsPods) {
  Cluster cluster = preset("minsky", 16);
  EXPECT_THAT(probe_json(cluster), Not(HasSubstr("pods")));
  cluster.fabric.hosts_per_leaf = 4;
  cluster.fabric.pods = {{8, gigabytes_per_second(5)}};
  const std::string json = probe_json(cluster);
  const Cluster again = parse_probe_json(json, "probe.json");
  ASSERT_EQ(again.fabric.pods.size(), 1u);
  EXPECT_EQ(again.fabric.pods[0].hosts, 8);
  EXPECT_DOUBLE_EQ(again.fabric.pods[0].uplink.gigabytes_per_second(), 5);
  EXPECT_EQ(probe_json(again), json);
  EXPECT_THAT(probe_text(again), HasSubstr(", pods of 8 hosts with 5.00 GB/s up"));
  cluster.fabric.pods.resize(5, cluster.fabric.pods[0]);
  EXPECT_THAT(usage_sentence([&] { parse_probe_json(probe_json(cluster), "probe.json"); }),
              HasSubstr("5 levels of pods"));
}

TEST(ReadCluster, TellsFormatsByContent) {
  const TemporaryFolder folder;
  const Cluster cluster = preset("ac922", 2);
  EXPECT_EQ(probe_json(read_cluster(folder.write("a.xml", "\n " + probe_json(cluster)))),
            probe_json(cluster));
  const std::string xml = testing::read_all(tests_folder() / "topology/fixtures/two_sockets.v2.xml");
  const Cluster imported = read_cluster(folder.write("b.json", xml));
  EXPECT_EQ(imported.host_count(), 1);
  EXPECT_EQ(imported.host(0).gpus.size(), 3u);
  EXPECT_EQ(imported.name, "twosockets");
  EXPECT_FALSE(imported.fabric.citations.empty());
  EXPECT_THAT(usage_sentence([&] { read_cluster(folder.write("c", "GPU0 X NV1")); }),
              AllOf(HasSubstr("neither"), Not(HasSubstr("\n"))));
  EXPECT_THAT(
      usage_sentence([&] { read_cluster(folder.write("net.out", "#\n#\n\nvendid=0x2c9\ndevid=0xd2f2\n")); }),
      AllOf(HasSubstr("a fabric, not a host"), HasSubstr("--fabric ")));
  EXPECT_THAT(usage_sentence([&] { read_cluster(folder.path() / "none"); }), HasSubstr("no file"));
}

}  // namespace
}  // namespace polyring

// NCCL's topology XML as we write it: what our reader makes of it again, and the rules of NCCL's own parser.
#include "topology/inventory/formats/write_nccl_xml.hpp"

#include <algorithm>
#include <regex>
#include <sstream>

#include "tests/topology/support.hpp"
#include "topology/inventory/formats/nccl_xml.hpp"
#include "topology/path.hpp"
#include "topology/presets.hpp"
#include "topology/shared_links.hpp"

namespace polyring {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::small_machine;
using testing::usage_sentence;

Machine again(const Machine& machine) {
  return parse_nccl_xml(write_nccl_xml(cluster_of(machine, 1)), "again.xml").host(0);
}

/// The kinds of paths from each GPU to all GPUs and NICs, with NODE as PHB, for the format has no host
/// bridges; and what PCIe and NVLink carry on them.
std::vector<std::string> paths_of(const Machine& machine) {
  std::vector<std::string> paths;
  const auto add = [&](DeviceId from, DeviceId to) {
    const auto path = find_path(machine, from, to);
    ASSERT_TRUE(path.has_value());
    const PathType type = path->type == PathType::node ? PathType::phb : path->type;
    const bool known = type != PathType::sys;  // buses between sockets are not in the format
    paths.push_back(fmt::format("{} {} {} {:.2g}", machine.device_name(from), machine.device_name(to),
                                to_text(type), known ? path->bandwidth.gigabytes_per_second() : 0));
  };
  for (int gpu = 0; gpu < static_cast<int>(machine.gpus.size()); ++gpu) {
    for (int other = 0; other < static_cast<int>(machine.gpus.size()); ++other) {
      if (other != gpu) add({DeviceKind::gpu, gpu}, {DeviceKind::gpu, other});
    }
    for (int nic = 0; nic < static_cast<int>(machine.nics.size()); ++nic) {
      add({DeviceKind::gpu, gpu}, {DeviceKind::nic, nic});
    }
  }
  return paths;
}

TEST(WriteNcclXml, OfEveryPresetHasTheSamePathsAgain) {
  for (const std::string_view name : preset_names()) {
    SCOPED_TRACE(std::string(name));
    const Machine machine = preset(name, 1).host(0);
    // A NIC on two sockets is on one of them afterwards.
    const bool shared = std::ranges::any_of(machine.nics, [](const Nic& nic) { return nic.host_bridge < 0; });
    const Machine read = again(machine);
    EXPECT_EQ(read.gpus.size(), machine.gpus.size());
    ASSERT_EQ(read.nics.size(), machine.nics.size());
    EXPECT_EQ(read.nvswitches, machine.nvswitches);
    if (!shared) {
      EXPECT_EQ(paths_of(read), paths_of(machine));
    }
    for (std::size_t nic = 0; nic < read.nics.size(); ++nic) {
      EXPECT_EQ(read.nics[nic].name, machine.nics[nic].name);
      EXPECT_EQ(read.nics[nic].kind, machine.nics[nic].kind);
      EXPECT_NEAR(read.nics[nic].bandwidth().value, machine.nics[nic].bandwidth().value,
                  5e-3 * machine.nics[nic].bandwidth().value);
    }
  }
}

TEST(WriteNcclXml, IsASecondTimeTheSame) {
  for (const char* name : {"minsky", "dgx-h100", "big-basin"}) {
    const std::string once = write_nccl_xml(cluster_of(again(preset(name, 1).host(0)), 1));
    EXPECT_EQ(write_nccl_xml(parse_nccl_xml(once, "again.xml")), once) << name;
  }
}

TEST(WriteNcclXml, OfMinskyIsThis) {
  testing::expect_golden("probe/minsky.nccl.xml", write_nccl_xml(preset("minsky", 1)));
}

// src/graph/xml.cc: no declaration, attributes after one blank each, nothing between a value and the end of
// its element.
TEST(WriteNcclXml, SticksToWhatNcclsParserKnows) {
  const std::regex line(
      " *(<!-- ([^<>-]|-(?!-))* -->|</[a-z0-9]+>|<[a-z0-9]+( [A-Za-z_]+=\"[^\"'<>&]{0,254}\")*/?>)");
  Machine machine = small_machine();
  machine.name = std::string(300, 'x') + "<a href=\"b\">&\n";
  machine.nics[0].name = "mlx5\"_0'---";
  machine.links.push_back({{DeviceKind::nic, 0}, {DeviceKind::package, 1}, LinkKind::pcie, {}, {}});
  for (const Machine& each : {machine, preset("dgx-a100", 1).host(0), preset("ac922", 1).host(0)}) {
    std::istringstream text(write_nccl_xml(cluster_of(each, 1)));
    for (std::string row; std::getline(text, row);) EXPECT_TRUE(std::regex_match(row, line)) << row;
  }
}

TEST(WriteNcclXml, KeepsBandwidthsThatNoGenerationHas) {
  Machine machine = small_machine();
  machine.links[0].bandwidth = gigabytes_per_second(11.3);
  machine.links.push_back(
      {{DeviceKind::gpu, 0}, {DeviceKind::gpu, 1}, LinkKind::nvlink, gigabytes_per_second(33), {}});
  machine.nics[0].ports[0].bandwidth = gigabytes_per_second(7.7);
  const std::string text = write_nccl_xml(cluster_of(machine, 1));
  EXPECT_THAT(text, AllOf(HasSubstr("polyring_GBps=\"11.3\""), HasSubstr("polyring_GBps=\"33\"")));
  const Machine read = again(machine);
  EXPECT_DOUBLE_EQ(find_path(read, {DeviceKind::gpu, 0}, {DeviceKind::package, 0})->bandwidth.value, 11.3e9);
  EXPECT_DOUBLE_EQ(find_path(read, {DeviceKind::gpu, 0}, {DeviceKind::gpu, 1})->bandwidth.value, 33e9);
  EXPECT_NEAR(read.nics[0].bandwidth().value, 7.7e9, 0.04e9);
}

TEST(WriteNcclXml, LeavesOpenWhatIsUnknown) {
  Machine machine = small_machine();
  machine.links[0].bandwidth = {};
  machine.gpus[0].model = "Tesla V100-SXM2-16GB";
  machine.links.push_back({{DeviceKind::gpu, 0}, {DeviceKind::gpu, 1}, LinkKind::nvlink, {}, {}, 2});
  EXPECT_THAT(write_nccl_xml(cluster_of(machine, 1)),
              AllOf(HasSubstr("link_speed=\"\" link_width=\"0\""), Not(HasSubstr("sm=\"70\""))));
  const Machine read = again(machine);
  EXPECT_FALSE(find_path(read, {DeviceKind::gpu, 0}, {DeviceKind::package, 0})->bandwidth.known());
  EXPECT_FALSE(find_path(read, {DeviceKind::gpu, 0}, {DeviceKind::gpu, 1})->bandwidth.known());
}

TEST(WriteNcclXml, KeepsTheNumberOfNvlinksWhereTheirSpeedIsUnknown) {
  Machine machine = small_machine();
  machine.gpus[0].model = "device 10de:307f, sm 999";
  machine.links.push_back({{DeviceKind::gpu, 0}, {DeviceKind::gpu, 1}, LinkKind::nvlink, {}, {}, 12});
  const std::string text = write_nccl_xml(cluster_of(machine, 1));
  EXPECT_THAT(text, AllOf(HasSubstr("count=\"12\""), HasSubstr("sm=\"999\""), Not(HasSubstr("count=\"1\""))));
  EXPECT_EQ(testing::links_of(again(machine)).back(), "gpu0-gpu1 nvlink ?");
  EXPECT_EQ(again(machine).links.back().count, 12);
}

TEST(WriteNcclXml, InventsNoNumberOfNvlinks) {
  Machine machine = small_machine();
  machine.links.push_back({{DeviceKind::gpu, 0}, {DeviceKind::gpu, 1}, LinkKind::nvlink, {}, {}});
  EXPECT_THAT(write_nccl_xml(cluster_of(machine, 1)),
              AllOf(HasSubstr("<!-- NVLink to gpu1 is left out: neither how many links nor how fast"),
                    Not(HasSubstr("<nvlink"))));
  machine.links.back().bandwidth = gigabytes_per_second(33);
  EXPECT_THAT(
      write_nccl_xml(cluster_of(machine, 1)),
      AllOf(HasSubstr("<!-- NVLink to gpu1: the count of 1 stands for an unknown number of links -->"),
            HasSubstr("count=\"1\"")));
  EXPECT_EQ(again(machine).links.back().count, 0);
}

/// As NCCL's own do: without what it is known by it refuses one that is above no GPU or NIC of its own.
TEST(WriteNcclXml, KeepsWhatCpusAreKnownByAndLeavesOutEmptyOnesWithoutIt) {
  Machine machine = small_machine();
  const std::size_t used = again(machine).packages.size();
  machine.packages.push_back({"package9", "", 0, {}, {}, {9}});
  EXPECT_EQ(again(machine).packages.size(), used);
  CpuIdentity& cpu = machine.packages.back().cpu;
  for (const auto& [enough, identity] : std::vector<std::pair<bool, CpuIdentity>>{
           {false, {"x86_64", "", -1, -1}},
           {false, {"x86_64", "GenuineIntel", 6, -1}},
           {true, {"x86_64", "GenuineIntel", 6, 143}},
           {true, {"x86_64", "AuthenticAMD", -1, -1}},
           {true, {"ppc64", "", -1, -1}},
       }) {
    cpu = identity;
    EXPECT_EQ(again(machine).packages.size(), used + (enough ? 1 : 0)) << cpu.architecture << cpu.vendor;
  }
  const CpuIdentity read = again(preset("dgx-h100", 1).host(0)).packages[1].cpu;
  EXPECT_EQ(std::tuple(read.architecture, read.vendor, read.family, read.model),
            std::tuple("x86_64", "GenuineIntel", 6, 143));
}

TEST(WriteNcclXml, ListsOnlyPortsThatAreUp) {
  Machine machine = small_machine();
  machine.nics[0].ports = {{1, false, gigabytes_per_second(12)}, {2, true, gigabytes_per_second(12)}};
  machine.nics[0].system_guid = "0x506b4b030027bbf2";
  const std::string text = write_nccl_xml(cluster_of(machine, 1));
  EXPECT_THAT(text, AllOf(HasSubstr("port=\"2\""), Not(HasSubstr("port=\"1\"")),
                          HasSubstr("guid=\"0xf2bb2700034b6b50\"")));
  EXPECT_EQ(again(machine).nics[0].system_guid, "0x506b4b030027bbf2");
  machine.nics[0].ports[1].up = false;
  EXPECT_THAT(write_nccl_xml(cluster_of(machine, 1)), AllOf(HasSubstr("0x020700"), Not(HasSubstr("<net"))));
}

TEST(WriteNcclXml, MakesFunctionsOfOneDeviceOne) {
  const Machine machine = testing::two_port_machine();
  const std::string xml = write_nccl_xml(cluster_of(machine, 1));
  EXPECT_THAT(xml, HasSubstr("busid=\"0000:4d:00.0\""));
  EXPECT_THAT(xml, Not(HasSubstr("0000:4d:00.1")));
  const Machine read = again(machine);
  ASSERT_EQ(read.nics.size(), 2u);
  EXPECT_EQ(read.nics[1].name, "mlx5_1");
  EXPECT_EQ(physical_links(read).back(), static_cast<int>(read.links.size()) - 2) << "of one link";
}

TEST(WriteNcclXml, KeepsAnInfinibandPortFromTheEthernetPortBesideIt) {
  Machine machine = testing::two_port_machine();
  machine.nics[1].kind = NicKind::ethernet;
  const Machine read = again(machine);
  ASSERT_EQ(read.nics.size(), 2u);
  EXPECT_EQ(read.nics[0].kind, NicKind::infiniband);
  EXPECT_EQ(read.nics[1].kind, NicKind::ethernet);
}

TEST(WriteNcclXml, SaysOfWhichDevicesTheCpuIsUnknown) {
  Machine machine = small_machine();
  EXPECT_THAT(write_nccl_xml(cluster_of(machine, 1)), Not(HasSubstr("Nothing tells")));
  machine.gpus[0].package_known = false;
  machine.nics[0].package_known = false;
  EXPECT_THAT(write_nccl_xml(cluster_of(machine, 1)),
              AllOf(HasSubstr("<!-- Nothing tells which CPU gpu0 is near; it need not be this one -->"),
                    HasSubstr("which CPU mlx5_0 is near"), Not(HasSubstr("which CPU gpu1"))));
  EXPECT_EQ(again(machine).gpus.size(), 2u);
}

TEST(WriteNcclXml, NamesTheFunctionThatIsUp) {
  Machine machine = testing::two_port_machine();
  machine.nics[0].ports[0].up = false;
  const Machine read = again(machine);
  ASSERT_EQ(read.nics.size(), 1u);
  EXPECT_EQ(read.nics[0].name, "mlx5_1");
}

TEST(WriteNcclXml, WritesRcclsVersionForAmd) {
  Machine machine = small_machine();
  for (Gpu& gpu : machine.gpus) gpu.model = "device 1002:74a1, gcn gfx942";
  machine.links.push_back(
      {{DeviceKind::gpu, 0}, {DeviceKind::gpu, 1}, LinkKind::xgmi, gigabytes_per_second(64), {}});
  const std::string text = write_nccl_xml(cluster_of(machine, 1));
  EXPECT_THAT(text, AllOf(HasSubstr("version=\"2\""), HasSubstr("gcn=\"gfx942\""), HasSubstr("<xgmi"),
                          HasSubstr("count=\"1\""), Not(HasSubstr("<nvlink"))));
  EXPECT_EQ(testing::links_of(again(machine)).back(), "gpu0-gpu1 xgmi 64.0 GB/s");
}

TEST(WriteNcclXml, GivesEachCpuANumberOfItsOwn) {
  for (const std::vector<int>& nodes : {std::vector{0}, std::vector<int>{}}) {
    Machine machine = small_machine();
    for (Package& package : machine.packages) package.numa_nodes = nodes;
    for (Gpu& gpu : machine.gpus) gpu.numa = nodes.empty() ? -1 : 0;
    machine.nics[0].numa = machine.gpus[0].numa;
    const std::string text = write_nccl_xml(cluster_of(machine, 1));
    EXPECT_THAT(text, AllOf(HasSubstr(fmt::format("numaid=\"{}\"", machine.gpus[0].numa)),
                            HasSubstr("numaid=\"1024\""), HasSubstr("<!-- The number 1024 is made up: ")));
    const Machine read = again(machine);
    EXPECT_EQ(find_path(read, {DeviceKind::gpu, 0}, {DeviceKind::gpu, 1})->type, PathType::sys);
    EXPECT_TRUE(read.packages[1].numa_nodes.empty());
  }
}

TEST(WriteNcclXml, KeepsTheNamesOfNicsWithoutKnownPorts) {
  Machine machine = small_machine();
  machine.nics[0].name = "hsi0";
  machine.nics[0].ports.clear();
  const Machine read = again(machine);
  ASSERT_EQ(read.nics.size(), 1u);
  EXPECT_EQ(read.nics[0].name, "hsi0");
  EXPECT_TRUE(read.nics[0].ports.empty());
}

TEST(WriteNcclXml, RefusesHostsWithoutGpusAndNics) {
  Machine machine = small_machine();
  machine.gpus.clear();
  machine.nics.clear();
  machine.links.clear();
  EXPECT_THAT(usage_sentence([&] { write_nccl_xml(cluster_of(machine, 1)); }),
              HasSubstr("'small' has neither GPUs nor NICs"));
}

TEST(WriteNcclXml, RefusesSeveralKindsOfHosts) {
  Cluster cluster = preset("minsky", 2);
  EXPECT_NO_THROW(write_nccl_xml(cluster));
  cluster.groups.push_back({small_machine(), 1});
  EXPECT_THAT(usage_sentence([&] { write_nccl_xml(cluster); }),
              HasSubstr("the hosts of 'minsky' are of 2 kinds"));
}

}  // namespace
}  // namespace polyring

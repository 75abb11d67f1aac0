// Comparing hosts: what is not compared, and the words for each kind of difference.
#include "topology/inventory/compare.hpp"

#include "tests/topology/support.hpp"
#include "topology/host_names.hpp"
#include "topology/inventory/formats/read_cluster.hpp"
#include "topology/presets.hpp"
#include "topology/processes.hpp"
#include "topology/resize.hpp"

namespace polyring {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::small_machine;

/// What colleagues would say of "node07", each difference a sentence.
std::vector<std::string> said(const Machine& usual, const Machine& other,
                              double tolerance = kUsualTolerance) {
  const std::vector<std::string> hosts{"node07"};
  std::vector<std::string> sentences;
  for (const Difference& difference : differences(usual, other, tolerance))
    sentences.push_back(sentence(difference, hosts));
  return sentences;
}

Machine dgx() { return preset("dgx-a100", 1).host(0); }

/// The link that joins two devices by a kind.
Link& link_of(Machine& machine, DeviceId a, DeviceId b, LinkKind kind) {
  for (Link& link : machine.links) {
    const bool joins = (link.from == a && link.to == b) || (link.from == b && link.to == a);
    if (joins && link.kind == kind) return link;
  }
  ADD_FAILURE() << "there is no such link";
  return machine.links.front();
}

TEST(HostNames, AreListedOrFolded) {
  const auto text = [](const std::vector<std::string>& names) { return names_text(names); };
  EXPECT_EQ(text({}), "");
  EXPECT_EQ(text({"node07"}), "node07");
  EXPECT_EQ(text({"node07", "node11"}), "node07 and node11");
  EXPECT_EQ(text({"a", "b", "c"}), "a, b and c");
  EXPECT_EQ(text({"n08", "n09", "n10", "n11", "n14"}), "n[08-11,14]");
  EXPECT_EQ(text({"n3", "n1", "n2", "login", "n10", "n2"}), "n[1-3], login, n10");
  EXPECT_EQ(text({"x9", "x10", "x11", "y", "y1"}), "x9, x[10-11], y, y1");
  EXPECT_EQ(text({"a12345678901", "a12345678902", "b", "c", "d"}), "a12345678901, a12345678902, b, c, d");
}

TEST(Compare, IgnoresWhatNaturallyDiffers) {
  const Machine usual = dgx();
  Machine other = usual;
  other.name = "another";
  for (Gpu& gpu : other.gpus) gpu.pci = "0000:ff:00.0";
  for (Nic& nic : other.nics) {
    nic.pci = fmt::format("0000:fe:{:02x}.0", &nic - other.nics.data());
    nic.system_guid = "0x1";
    for (Port& port : nic.ports) port.guid = "0x2";
  }
  other.citations = {{"a", "b"}};
  other.sources = {{"NVML", false, "absent"}};
  other.remarks = {"gpu0 is warm"};
  EXPECT_THAT(said(usual, other, 0), IsEmpty());
  EXPECT_EQ(normal_form(usual), normal_form(other));
}

TEST(Compare, NamesPackagesAndMemory) {
  const Machine usual = small_machine();
  Machine other = usual;
  other.model = "X";
  other.packages[0].cores = 3;
  other.packages[1].model = "EPYC";
  EXPECT_THAT(said(usual, other),
              ElementsAre("node07's model is X, not unknown", "node07's package0 has 3 cores, not 4 cores",
                          "node07's package1 is EPYC, not unknown"));
  other = usual;
  other.packages[0].cores = 0;
  EXPECT_THAT(said(usual, other),
              ElementsAre("node07's package0 has an unknown number of cores, not 4 cores"));
  other = usual;
  other.packages.push_back(usual.packages[0]);
  other.packages.back().name = "package2";
  EXPECT_THAT(said(usual, other), ElementsAre("node07 has 3 CPU sockets, not 2"));
  other = usual;
  other.packages[1].numa_nodes = {1, 2};
  EXPECT_THAT(said(usual, other), ElementsAre("node07's package1 has other NUMA nodes"));
}

TEST(Compare, TellsAMissingModuleFromAFewPages) {
  Machine usual = small_machine();
  usual.packages[0].memory = {128ull << 30};
  Machine other = usual;
  other.packages[0].memory = {112ull << 30};
  EXPECT_THAT(said(usual, other), ElementsAre("node07's package0 has 112 GiB of memory, not 128 GiB"));
  other.packages[0].memory = {(128ull << 30) + (64 << 10)};
  EXPECT_THAT(said(usual, other), IsEmpty());
  EXPECT_THAT(said(usual, other, 0), ElementsAre("node07's package0 has 64KiB more memory"));
  EXPECT_THAT(said(other, usual, 0), ElementsAre("node07's package0 has 64KiB less memory"));
}

TEST(Compare, NamesMissingGpus) {
  Machine usual = preset("minsky", 1).host(0);
  for (int i = 0; i < 4; ++i) usual.gpus[static_cast<std::size_t>(i)].pci = fmt::format("000{}:01:00.0", i);
  const Machine first_three = with_gpus(usual, 3);
  EXPECT_THAT(said(usual, first_three), ElementsAre("node07 has 3 GPUs, not 4: gpu3 is missing"));
  const Machine none = without_gpus(usual);
  EXPECT_THAT(said(usual, none), ElementsAre("node07 has 0 GPUs, not 4"));

  // The GPU at address 1 is gone, and those behind it have moved up.
  Machine second_gone = usual;
  second_gone.gpus.erase(second_gone.gpus.begin() + 1);
  const auto moved = [](DeviceId& id) {
    if (id.kind == DeviceKind::gpu && id.index > 1) --id.index;
  };
  std::erase_if(second_gone.links, [](const Link& link) {
    const DeviceId gone{DeviceKind::gpu, 1};
    return link.from == gone || link.to == gone;
  });
  for (Link& link : second_gone.links) {
    moved(link.from);
    moved(link.to);
  }
  for (std::size_t i = 0; i < 3; ++i) second_gone.gpus[i].name = fmt::format("gpu{}", i);
  EXPECT_THAT(said(usual, second_gone), ElementsAre("node07 has 3 GPUs, not 4: gpu1 is missing"));
}

TEST(Compare, NamesOtherGpus) {
  const Machine usual = dgx();
  Machine other = usual;
  for (Gpu& gpu : other.gpus) gpu.model = "H20";
  EXPECT_THAT(said(usual, other),
              ElementsAre(fmt::format("node07's GPUs are H20, not {}", usual.gpus[0].model)));
  other = usual;
  other.gpus[2].model = "H20";
  other.gpus[2].memory = {usual.gpus[2].memory.value / 2};
  EXPECT_THAT(said(usual, other),
              ElementsAre(fmt::format("node07's gpu2 is H20, not {}", usual.gpus[2].model),
                          ::testing::HasSubstr("node07's gpu2 has ")));
}

TEST(Compare, NamesOtherDrivers) {
  Machine usual = dgx();
  usual.gpu_driver = "NVIDIA 550.54.15";
  Machine other = usual;
  other.gpu_driver = "NVIDIA 535.104.05";
  EXPECT_THAT(said(usual, other),
              ElementsAre("node07's GPUs have driver NVIDIA 535.104.05, not NVIDIA 550.54.15"));
  other.gpu_driver.clear();
  EXPECT_THAT(said(usual, other), ElementsAre("node07's GPUs have driver unknown, not NVIDIA 550.54.15"));
  EXPECT_NE(normal_form(usual), normal_form(other));
}

TEST(Compare, NamesLostNvlinks) {
  constexpr DeviceId kGpu0{DeviceKind::gpu, 0};
  constexpr DeviceId kGpu1{DeviceKind::gpu, 1};
  Machine usual = small_machine();
  for (Gpu& gpu : usual.gpus) gpu.model = "Tesla V100-SXM2-16GB";
  usual.links.push_back({kGpu0, kGpu1, LinkKind::nvlink, gigabytes_per_second(75), {}});
  Machine other = usual;
  link_of(other, kGpu0, kGpu1, LinkKind::nvlink).bandwidth = gigabytes_per_second(50);
  EXPECT_THAT(said(usual, other),
              ElementsAre("node07 has one NVLink less between gpu0 and gpu1 (50.0 GB/s, not 75.0 GB/s)"));
  EXPECT_THAT(said(other, usual),
              ElementsAre("node07 has one NVLink more between gpu0 and gpu1 (75.0 GB/s, not 50.0 GB/s)"));
  link_of(other, kGpu0, kGpu1, LinkKind::nvlink).bandwidth = gigabytes_per_second(40);
  EXPECT_THAT(said(usual, other),
              ElementsAre("node07 has NVLink of 40.0 GB/s between gpu0 and gpu1, not 75.0 GB/s"));
  other.links.pop_back();
  EXPECT_THAT(said(usual, other), ElementsAre("node07 has no NVLink at all"));
  EXPECT_THAT(said(other, usual),
              ElementsAre("node07 has NVLink between gpu0 and gpu1 (75.0 GB/s), where others have none"));
}

TEST(Compare, CountsNvlinksOfUnknownSpeed) {
  Machine usual = small_machine();
  usual.links.push_back({{DeviceKind::gpu, 0}, {DeviceKind::gpu, 1}, LinkKind::nvlink, {}, {}, 2});
  Machine other = usual;
  EXPECT_THAT(said(usual, other), IsEmpty());
  other.links.back().count = 1;
  EXPECT_THAT(said(usual, other), ElementsAre("node07 has 1 x NVLink between gpu0 and gpu1, not 2"));
  EXPECT_NE(normal_form(usual), normal_form(other));
}

TEST(Compare, NamesNvlinksOfSeveralPairsOnce) {
  const Machine usual = preset("minsky", 1).host(0);
  Machine none = usual;
  std::erase_if(none.links, [](const Link& link) { return link.kind == LinkKind::nvlink; });
  EXPECT_THAT(said(usual, none), ElementsAre("node07 has no NVLink at all"));
}

TEST(Compare, AddsUpLinksOfOnePairWhereverTheyAreSaidToBegin) {
  constexpr DeviceId kGpu0{DeviceKind::gpu, 0};
  constexpr DeviceId kGpu1{DeviceKind::gpu, 1};
  Machine usual = small_machine();
  for (Gpu& gpu : usual.gpus) gpu.model = "B200";
  Machine other = usual;
  usual.links.push_back({kGpu0, kGpu1, LinkKind::nvlink, gigabytes_per_second(100), {}});
  for (const auto& [from, to] : {std::pair(kGpu0, kGpu1), std::pair(kGpu1, kGpu0)})
    other.links.push_back({from, to, LinkKind::nvlink, gigabytes_per_second(50), {}});
  EXPECT_THAT(said(usual, other), IsEmpty());
  other.links.pop_back();
  EXPECT_THAT(said(usual, other),
              ElementsAre("node07 has one NVLink less between gpu0 and gpu1 (50.0 GB/s, not 100 GB/s)"));
}

TEST(Compare, NamesThePortOfANicWithSeveral) {
  Machine usual = small_machine();
  usual.nics[0].ports.push_back({2, true, gigabytes_per_second(12)});
  Machine other = usual;
  other.nics[0].ports[1].up = false;
  EXPECT_THAT(said(usual, other), ElementsAre("node07's mlx5_0 port 2 is down"));
  other = usual;
  other.nics[0].numa = 1;
  EXPECT_THAT(said(usual, other), ElementsAre("node07's mlx5_0 is near NUMA node 1, not 0"));
  EXPECT_NE(normal_form(usual), normal_form(other));
}

TEST(Compare, NamesNicsThatAreDownSlowOrGone) {
  const Machine usual = dgx();
  ASSERT_GE(usual.nics.size(), 3u);
  Machine other = usual;
  other.nics[0].ports[0].up = false;
  other.nics[1].ports[0].bandwidth = 0.5 * usual.nics[1].ports[0].bandwidth;
  EXPECT_THAT(said(usual, other),
              ElementsAre("node07's mlx5_0 is down", fmt::format("node07's mlx5_1 runs at {}, not {}",
                                                                 to_text(other.nics[1].ports[0].bandwidth),
                                                                 to_text(usual.nics[1].ports[0].bandwidth))));
  other = usual;
  other.nics[2].name = "ibs2";
  EXPECT_THAT(said(usual, other),
              ElementsAre("node07 has no mlx5_2", "node07 has ibs2 too, which others have not"));
}

TEST(Compare, NamesPcieThatIsSlowOrElsewhere) {
  const Machine usual = small_machine();
  Machine other = usual;
  link_of(other, {DeviceKind::gpu, 1}, {DeviceKind::package, 1}, LinkKind::pcie).bandwidth =
      gigabytes_per_second(7.88);
  EXPECT_THAT(said(usual, other), ElementsAre("node07's gpu1 hangs on PCIe at 7.88 GB/s, not 16.0 GB/s"));
  other = usual;
  link_of(other, {DeviceKind::nic, 0}, {DeviceKind::package, 0}, LinkKind::pcie).to.index = 1;
  EXPECT_THAT(said(usual, other), ElementsAre("node07's mlx5_0 hangs on package1, not on package0"));
}

TEST(Compare, SeesWhoSharesASwitch) {
  // gpu0 and mlx5_0 below switch0, gpu1 below switch1, both at package0.
  Machine usual = small_machine();
  usual.switches = {{"switch0", ""}, {"switch1", ""}};
  usual.links.clear();
  const auto join = [&](DeviceId device, DeviceId above) {
    usual.links.push_back({device, above, LinkKind::pcie, gigabytes_per_second(16), {}});
  };
  join({DeviceKind::gpu, 0}, {DeviceKind::pci_switch, 0});
  join({DeviceKind::nic, 0}, {DeviceKind::pci_switch, 0});
  join({DeviceKind::gpu, 1}, {DeviceKind::pci_switch, 1});
  join({DeviceKind::pci_switch, 0}, {DeviceKind::package, 0});
  join({DeviceKind::pci_switch, 1}, {DeviceKind::package, 0});
  Machine other = usual;
  other.links[1].to = {DeviceKind::pci_switch, 1};
  EXPECT_THAT(said(usual, other),
              ElementsAre("node07's gpu0 shares its PCIe switch with nothing, not with mlx5_0",
                          "node07's gpu1 shares its PCIe switch with mlx5_0, not with nothing",
                          "node07's mlx5_0 shares its PCIe switch with gpu1, not with gpu0"));
  // Which of the switches has which number does not matter.
  other = usual;
  for (Link& link : other.links) {
    for (DeviceId* end : {&link.from, &link.to}) {
      if (end->kind == DeviceKind::pci_switch) end->index = 1 - end->index;
    }
  }
  EXPECT_THAT(said(usual, other), IsEmpty());
  other = usual;
  other.links[2].to = {DeviceKind::package, 0};
  EXPECT_THAT(said(usual, other), ElementsAre("node07's gpu1 has 0 PCIe switches above it, not 1"));
  other = usual;
  other.links[4].bandwidth = gigabytes_per_second(8);
  EXPECT_THAT(said(usual, other),
              ElementsAre("node07's PCIe switch above gpu1 hangs at 8.00 GB/s, not 16.0 GB/s"));
}

TEST(Compare, SeesWhichNicsAreOfOneAdapter) {
  const Machine usual = testing::two_port_machine();
  Machine other = usual;
  for (Nic& nic : other.nics) nic.pci.replace(0, 7, "0000:5d");
  EXPECT_THAT(said(usual, other), IsEmpty()) << "another slot";
  EXPECT_EQ(normal_form(usual), normal_form(other));
  other.nics[1].pci = "0000:5e:00.0";
  EXPECT_THAT(said(usual, other),
              ElementsAre("node07's mlx5_0 shares its PCIe link with nothing, not with mlx5_1",
                          "node07's mlx5_1 shares its PCIe link with nothing, not with mlx5_0"));
  EXPECT_NE(normal_form(usual), normal_form(other));
}

TEST(Compare, OfEveryPresetWithItselfFindsNothing) {
  for (const std::string_view name : preset_names()) {
    const Machine machine = preset(name, 1).host(0);
    EXPECT_THAT(said(machine, machine, 0), IsEmpty()) << name;
    EXPECT_FALSE(said(machine, with_processes(machine, machine.ranks() + 1)).empty()) << name;
  }
}

TEST(Compare, SentencesAboutSeveralHosts) {
  const std::vector<std::string> hosts{"node07", "node11"};
  EXPECT_EQ(sentence({Difference::Kind::has, "no mlx5_1"}, hosts), "node07 and node11 have no mlx5_1");
  EXPECT_EQ(sentence({Difference::Kind::own, "mlx5_1 is down"}, hosts),
            "on node07 and node11 mlx5_1 is down");
}

}  // namespace
}  // namespace polyring

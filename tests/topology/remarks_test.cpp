#include "topology/inventory/probe/remarks.hpp"

#include "tests/topology/sysfs_tree.hpp"
#include "topology/inventory/probe/sysfs_machine.hpp"

namespace polyring::probe {
namespace {

using ::testing::ElementsAre;
using testing::PciFiles;
using ::testing::StartsWith;
using testing::SysfsTree;

const std::string kRoot = "pci0000:00/0000:00:01.0";
const std::string kDevice = kRoot + "/0000:01:00.0";
const PciFiles kNic{.device_class = "0x020000", .vendor = "0x15b3"};

PciFiles gpu_files() { return {.device_class = "0x030200"}; }

std::vector<std::string> about_pcie(const SysfsTree& tree, const std::set<std::string>& busy = {}) {
  const Sysfs sysfs(tree.path());
  std::vector<LinkFault> faults;
  return pcie_remarks(machine_from(sysfs), sysfs, busy, faults);
}

std::vector<std::string> about_ports(const SysfsTree& tree) {
  const Sysfs sysfs(tree.path());
  std::vector<LinkFault> faults;
  return port_remarks(machine_from(sysfs), sysfs, faults);
}

TEST(PcieRemarks, AreOnLanesThatBothEndsHave) {
  const SysfsTree tree;
  tree.bridge(kRoot);
  PciFiles files = gpu_files();
  files.lanes = 8;
  tree.pci(kDevice, files);
  EXPECT_THAT(about_pcie(tree),
              ElementsAre(StartsWith("gpu0 (0000:01:00.0) runs on 8 of 16 PCIe lanes, which both")));
}

TEST(PcieRemarks, AreFaultsWhereBothEndsCanDoMore) {
  for (const int slot : {8, 16}) {
    const SysfsTree tree;
    tree.bridge(kRoot, slot);
    PciFiles files = gpu_files();
    files.lanes = 8;
    tree.pci(kDevice, files);
    const Sysfs sysfs(tree.path());
    std::vector<LinkFault> faults;
    const std::vector<std::string> remarks = pcie_remarks(machine_from(sysfs), sysfs, {}, faults);
    EXPECT_EQ(faults, slot == 8 ? std::vector<LinkFault>{} : std::vector<LinkFault>({{"gpu0", remarks[0]}}));
  }
}

TEST(PcieRemarks, AreOnSlotsThatAreNarrowerThanTheGpu) {
  const SysfsTree tree;
  tree.bridge(kRoot, 8);
  PciFiles files = gpu_files();
  files.lanes = 8;
  tree.pci(kDevice, files);
  EXPECT_THAT(about_pcie(tree),
              ElementsAre(StartsWith("gpu0 (0000:01:00.0) has 16 PCIe lanes, but its slot only 8")));
}

TEST(PcieRemarks, AreNoneWhereAllIsWellOrUnknown) {
  const SysfsTree tree;
  tree.bridge(kRoot);
  tree.pci(kDevice, gpu_files());
  PciFiles unknown = gpu_files();
  unknown.lanes = 0;
  unknown.max_lanes = 255;
  unknown.speed = unknown.max_speed = "Unknown";
  tree.pci("pci0000:00/0000:00:02.0", unknown);
  EXPECT_THAT(about_pcie(tree, {"0000:01:00.0", "0000:00:02.0"}), ElementsAre());
}

TEST(PcieRemarks, AreOnTheSpeedOfGpusThatWorkOnly) {
  const SysfsTree tree;
  tree.bridge(kRoot);
  PciFiles files = gpu_files();
  files.speed = "2.5";
  tree.pci(kDevice, files);
  EXPECT_THAT(about_pcie(tree), ElementsAre());
  EXPECT_THAT(about_pcie(tree, {"0000:01:00.0"}),
              ElementsAre(StartsWith("gpu0 (0000:01:00.0) runs its PCIe link at 2.5 of 16 GT/s")));
}

TEST(PcieRemarks, AreOnTheSpeedOfNicsAndTheirPorts) {
  const SysfsTree tree;
  tree.bridge(kRoot);
  PciFiles files = kNic;
  files.max_speed = "8.0";
  files.speed = "5.0";
  tree.pci(kDevice, files);
  tree.interface("eth0", kDevice, "up", "200000");
  EXPECT_THAT(about_pcie(tree),
              ElementsAre(StartsWith("eth0 (0000:01:00.0) runs its PCIe link at 5 of 8 GT/s"),
                          StartsWith("eth0 has ports of 25.0 GB/s behind a PCIe link of 15.8 GB/s")));
}

TEST(PcieRemarks, CountTheFunctionsOfAnAdapterTogether) {
  const SysfsTree tree;
  tree.bridge(kRoot);
  for (const std::string function : {"0", "1"}) {
    const std::string place = kRoot + "/0000:01:00." + function;
    tree.pci(place, kNic);
    tree.interface("eth" + function, place, "up", "200000");
  }
  EXPECT_THAT(
      about_pcie(tree),
      ElementsAre(StartsWith("eth0 + eth1 has ports of 50.0 GB/s behind a PCIe link of 31.5 GB/s, which")));
}

TEST(DriverRemarks, SayWhichGpusAJobDoesNotHave) {
  const SysfsTree tree;
  for (int i = 1; i <= 4; ++i) tree.pci(fmt::format("pci0000:00/0000:00:0{}.0", i), gpu_files());
  tree.pci("pci0000:00/0000:00:05.0", {.device_class = "0x120000", .vendor = "0x1002"});
  const Sysfs sysfs(tree.path());
  Machine machine = machine_from(sysfs);
  machine.gpus.push_back({"gpu5", {}, "", -1, -1, {}, {}});
  const std::set<std::string> all{"0000:00:01.0", "0000:00:02.0", "0000:00:03.0", "0000:00:04.0"};
  EXPECT_THAT(driver_remarks(machine, sysfs, all), ElementsAre());
  EXPECT_THAT(driver_remarks(machine, sysfs, {"0000:00:01.0", "0000:00:03.0"}),
              ElementsAre(::testing::AllOf(
                  StartsWith("gpu1 (0000:00:02.0), gpu3 (0000:00:04.0) are there, but NVIDIA's driver "),
                  ::testing::EndsWith("expected are of all 6 GPUs"))));
}

TEST(PortRemarks, SayWhyAnInfinibandPortDoesNotCount) {
  const SysfsTree tree;
  const auto add = [&](int number, const char* state, const char* physical) {
    const std::string place = fmt::format("pci0000:00/0000:00:0{}.0", number);
    tree.pci(place, {.device_class = "0x020700", .vendor = "0x15b3"});
    tree.openfabrics(fmt::format("mlx5_{}", number), place, fmt::format("506b:4b03:0000:000{}", number),
                     "506b:4b03:0000:0011", state, physical);
  };
  add(1, "4: ACTIVE", "5: LinkUp");
  add(2, "1: DOWN", "2: Polling");
  add(3, "1: DOWN", "3: Disabled");
  add(4, "2: INIT", "5: LinkUp");
  EXPECT_THAT(about_ports(tree), ElementsAre(StartsWith("mlx5_2 port 1 is DOWN (Polling): see its cable"),
                                             StartsWith("mlx5_3 port 1 is DOWN and disabled"),
                                             StartsWith("mlx5_4 port 1 has a link, but no subnet manager")));
}

TEST(PortRemarks, TellAMissingCarrierFromAnInterfaceThatNobodySetUp) {
  const SysfsTree tree;
  for (int number = 1; number <= 2; ++number) tree.pci(fmt::format("pci0000:00/0000:00:0{}.0", number), kNic);
  tree.interface("eth1", "pci0000:00/0000:00:01.0", "down", "-1", "0");
  tree.interface("eth2", "pci0000:00/0000:00:02.0", "down", "-1", "");
  EXPECT_THAT(about_ports(tree), ElementsAre(StartsWith("eth1 is set up but has no carrier")));
}

TEST(PortRemarks, AreFaultsWhereMostOfItsKindAreUp) {
  for (const int down : {1, 2}) {
    const SysfsTree tree;
    for (int number = 0; number < 3; ++number) {
      const std::string place = fmt::format("pci0000:00/0000:00:0{}.0", number);
      tree.pci(place, kNic);
      tree.interface(fmt::format("eth{}", number), place, number < down ? "down" : "up", "25000",
                     number < down ? "0" : "1");
    }
    const Sysfs sysfs(tree.path());
    std::vector<LinkFault> faults;
    EXPECT_EQ(port_remarks(machine_from(sysfs), sysfs, faults).size(), static_cast<std::size_t>(down));
    ASSERT_EQ(faults.size(), down == 1 ? 1u : 0u);
    if (down == 1) {
      EXPECT_EQ(faults[0].device, "eth0");
      EXPECT_TRUE(faults[0].is_port);
    }
  }
}

TEST(PortRemarks, CompareMtusAtOneSpeed) {
  const SysfsTree tree;
  for (int number = 0; number < 4; ++number) {
    const std::string place = fmt::format("pci0000:00/0000:00:0{}.0", number);
    tree.pci(place, kNic);
    const bool management = number == 3;
    tree.interface(fmt::format("eth{}", number), place, "up", management ? "1000" : "100000", "1",
                   number < 2 ? "9000" : "1500");
  }
  EXPECT_THAT(about_ports(tree),
              ElementsAre("interfaces of 12.5 GB/s differ in MTU: 1500 of eth2; 9000 of eth0, eth1"));
}

TEST(Bonds, CountTheirActiveMembersOnly) {
  const SysfsTree tree;
  for (int number = 0; number < 2; ++number) {
    const std::string place = fmt::format("pci0000:00/0000:00:0{}.0", number);
    tree.pci(place, kNic);
    tree.interface(fmt::format("eth{}", number), place, "up", "25000");
    tree.write(fmt::format("devices/{}/net/eth{}/bonding_slave/state", place, number),
               number == 0 ? "active" : "backup");
  }
  tree.write("class/net/bond0/bonding/mode", "active-backup 1");
  tree.write("class/net/bond0/bonding/slaves", "eth0 eth1");
  tree.write("class/net/bond0/operstate", "up");
  tree.write("class/net/bond0/speed", "25000");
  const Sysfs sysfs(tree.path());
  const Machine machine = machine_from(sysfs);
  ASSERT_EQ(machine.nics.size(), 2u);
  EXPECT_DOUBLE_EQ(machine.nics[0].bandwidth().gigabytes_per_second(), 3.125);
  EXPECT_FALSE(machine.nics[1].up());
  std::vector<LinkFault> faults;
  EXPECT_THAT(port_remarks(machine, sysfs, faults), ElementsAre(StartsWith("eth1 stands by in a bond")));
  ASSERT_EQ(sysfs.bonds().size(), 1u);
  EXPECT_EQ(sysfs.bonds()[0].mode, "active-backup");
  EXPECT_THAT(sysfs.bonds()[0].members, ElementsAre("eth0", "eth1"));
}

}  // namespace
}  // namespace polyring::probe

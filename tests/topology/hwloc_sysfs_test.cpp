// What hwloc shows of a machine and its sysfs together: XML of hwloc's in place of the live topology, and a
// small tree in place of /sys.
#include "tests/folder.hpp"
#include "tests/topology/sysfs_tree.hpp"
#include "topology/inventory/probe/hwloc_machine.hpp"

namespace polyring::probe {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;
using testing::SysfsTree;

std::string fixture(const std::string& name) {
  return testing::read_all(tests_folder() / "topology/fixtures" / name);
}

void replace(std::string& text, std::string_view from, std::string_view to) {
  const auto at = text.find(from);
  ASSERT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
}

Machine machine_of(const std::string& xml, const SysfsTree& tree) {
  const auto topology = HwlocTopology::from_xml(xml);
  return topology ? machine_from(*topology, Sysfs(tree.path())) : Machine{};
}

TEST(HwlocAndSysfs, CountNoVirtualFunctionsOfGpus) {
  const SysfsTree tree;
  const std::string xml = fixture("two_sockets.v2.xml");
  EXPECT_EQ(machine_of(xml, tree).gpus.size(), 3u);
  tree.write("bus/pci/devices/0000:04:00.0/physfn/vendor", "0x10de");
  const Machine machine = machine_of(xml, tree);
  ASSERT_EQ(machine.gpus.size(), 2u);
  EXPECT_EQ(machine.gpus[0].pci, "0000:03:00.0");
  EXPECT_EQ(machine.gpus[1].model, "Example AMD GPU");
}

// Before mlx5_0 hwloc lists the OpenFabrics device of a representor.
TEST(HwlocAndSysfs, PassOverDevicesOfRepresentors) {
  const SysfsTree tree;
  const std::string place = "pci0000:00/0000:01:00.0";
  tree.pci(place, {.device_class = "0x020700", .vendor = "0x15b3"});
  for (const char* name : {"mlx5_0", "mlx5_rep"})
    tree.openfabrics(name, place, "0001:0002:0003:0004", "0001:0002:0003:0005");
  tree.interface("eth1", place, "up", "100000");
  tree.write("devices/" + place + "/net/eth1/phys_port_name", "pf0vf0");
  tree.write("devices/" + place + "/infiniband/mlx5_rep/ports/1/gid_attrs/ndevs/0", "eth1");
  std::string xml = fixture("two_sockets.v2.xml");
  const std::string own = "<object type=\"OSDev\" gp_index=\"119\" name=\"mlx5_0\" osdev_type=\"3\">";
  replace(xml, own, "<object type=\"OSDev\" gp_index=\"205\" name=\"mlx5_rep\" osdev_type=\"3\"/>" + own);
  const Machine machine = machine_of(xml, tree);
  ASSERT_FALSE(machine.nics.empty());
  EXPECT_EQ(machine.nics[0].name, "mlx5_0");
  EXPECT_EQ(machine.nics[0].ports.size(), 1u);
}

TEST(HwlocAndSysfs, TakeVirtualFunctionsForNicsOfTheirOwn) {
  std::string xml = fixture("two_sockets.v2.xml");
  const std::size_t once = machine_of(xml, SysfsTree()).nics.size();
  for (int i = 0; i < 2; ++i) replace(xml, "0207 [15b3:1017]", "0207 [15b3:1018]");
  EXPECT_EQ(machine_of(xml, SysfsTree()).nics.size(), once + 1);
}

// ConnectX-3's, whether its ports run as InfiniBand or as Ethernet.
TEST(HwlocAndSysfs, TellTheLinkLayerOfClass0280) {
  const std::string port =
      "<info name=\"Port1State\" value=\"4\"/>\n                  <info name=\"Port2State\"";
  const std::string interface = "<info name=\"Port\" value=\"1\"/>";
  const auto xml_with = [&](const std::string& lid, const std::string& address) {
    std::string xml = fixture("two_sockets.v2.xml");
    for (int i = 0; i < 2; ++i) replace(xml, "0207 [15b3:1017]", "0280 [15b3:1003]");
    if (!lid.empty()) replace(xml, port, "<info name=\"Port1LID\" value=\"" + lid + "\"/>" + port);
    replace(xml, interface, address.empty() ? "" : "<info name=\"Address\" value=\"" + address + "\"/>");
    return xml;
  };
  const auto kind = [](const std::string& xml) {
    const auto topology = HwlocTopology::from_xml(xml);
    return topology ? to_text(machine_from(*topology, std::nullopt).nics.at(0).kind) : "none";
  };
  const std::string ethernet = "00:02:c9:00:00:01";
  std::string ipoib = "80:00:00:48:fe:80:00:00:00:00:00:00:00:02:c9:03:00:00:00:01";
  EXPECT_EQ(kind(xml_with("0x2", ethernet)), "infiniband");
  EXPECT_EQ(kind(xml_with("0x0", ipoib)), "ethernet");
  EXPECT_EQ(kind(xml_with("", ipoib)), "infiniband");
  EXPECT_EQ(kind(xml_with("", ethernet)), "ethernet");
  EXPECT_EQ(kind(xml_with("", "")), "unknown");
  // On the machine itself the port says it.
  const SysfsTree tree;
  tree.write("class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE");
  tree.write("class/infiniband/mlx5_0/ports/1/link_layer", "InfiniBand");
  EXPECT_EQ(machine_of(xml_with("0x0", ethernet), tree).nics.at(0).kind, NicKind::infiniband);
}

TEST(HwlocAndSysfs, TakeTwoLevelsOfABroadcomSwitchForOne) {
  std::string xml = fixture("broadcom_levels.v2.xml");
  for (const std::string_view subsystem : {"[1000:0003]", "[1000:1003]"}) {
    while (xml.find(subsystem) != std::string::npos) replace(xml, subsystem, "[0000:0000]");
  }
  const SysfsTree tree;
  EXPECT_EQ(machine_of(xml, tree).switches.size(), 3u);
  const auto bridge = [&](const std::string& address, const std::string& subsystem) {
    const std::string folder = "bus/pci/devices/" + address + "/";
    tree.write(folder + "vendor", "0x1000");
    tree.write(folder + "device", "0xc030");
    tree.write(folder + "subsystem_vendor", "0x1000");
    tree.write(folder + "subsystem_device", subsystem);
  };
  bridge("0000:01:00.0", "0x0003");
  for (const char* lower : {"0000:03:00.0", "0000:07:00.0"}) bridge(lower, "0x1003");
  EXPECT_EQ(machine_of(xml, tree).switches.size(), 1u);
}

// As hwloc shows the HBM of Grace Hopper where it is told to keep it.
TEST(HwlocAndSysfs, DoNotTakeMemoryOfGpusForThePackages) {
  std::string xml = fixture("two_sockets.v2.xml");
  replace(xml, "nodeset=\"0x3\" complete_nodeset=\"0x3\" allowed_cpuset=\"0x3\" allowed_nodeset=\"0x3\"",
          "nodeset=\"0x7\" complete_nodeset=\"0x7\" allowed_cpuset=\"0x3\" allowed_nodeset=\"0x7\"");
  replace(xml, "cpuset=\"0x1\" complete_cpuset=\"0x1\" nodeset=\"0x1\" complete_nodeset=\"0x1\">",
          "cpuset=\"0x1\" complete_cpuset=\"0x1\" nodeset=\"0x5\" complete_nodeset=\"0x5\">");
  const std::string_view first = "local_memory=\"68719476736\"/>";
  replace(
      xml, first,
      std::string(first) +
          "<object type=\"NUMANode\" gp_index=\"201\" os_index=\"2\" subtype=\"GPUMemory\" cpuset=\"0x1\" "
          "complete_cpuset=\"0x1\" nodeset=\"0x4\" complete_nodeset=\"0x4\" local_memory=\"103079215104\"/>");
  const Machine machine = machine_of(xml, SysfsTree());
  ASSERT_EQ(machine.packages.size(), 2u);
  EXPECT_EQ(machine.packages[0].memory.value, std::uint64_t{64} << 30);
  EXPECT_THAT(machine.packages[0].numa_nodes, ElementsAre(0));
  ASSERT_EQ(machine.gpus.size(), 3u);
  EXPECT_EQ(machine.gpus[0].numa, 0);
}

TEST(HwlocAndSysfs, CountAzuresAcceleratedNetworkOnce) {
  const SysfsTree tree;
  tree.interface("eth9", "LNXSYSTM:00/VMBUS:00/eth9", "up", "50000");
  std::string xml = fixture("two_sockets.v2.xml");
  replace(xml, "  </object>\n  <distances2",
          "    <object type=\"OSDev\" gp_index=\"200\" name=\"eth9\" osdev_type=\"2\"/>\n  </object>\n  "
          "<distances2");
  const auto names = [&] {
    std::vector<std::string> found;
    for (const Nic& nic : machine_of(xml, tree).nics) found.push_back(nic.name);
    return found;
  };
  const std::vector<std::string> both = names();
  EXPECT_THAT(both, Contains("eth9"));
  tree.link("devices/LNXSYSTM:00/VMBUS:00/eth9/net/eth9/lower_ib0", "class/net/ib0");
  const std::vector<std::string> without = names();
  EXPECT_EQ(without.size() + 1, both.size());
  EXPECT_THAT(without, Not(Contains("eth9")));
}

}  // namespace
}  // namespace polyring::probe

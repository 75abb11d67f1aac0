#include "topology/inventory/probe/sysfs_machine.hpp"

#include "tests/topology/sysfs_tree.hpp"
#include "topology/inventory/probe.hpp"
#include "topology/path.hpp"

namespace polyring {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::SysfsTree;

constexpr DeviceId gpu(int index) { return {DeviceKind::gpu, index}; }
constexpr DeviceId nic(int index) { return {DeviceKind::nic, index}; }

const std::string kSwitch = "pci0000:00/0000:00:01.0/0000:01:00.0";

/// A GPU and a NIC below one switch of the first socket, a GPU and a dual-port NIC at the second.
void fill(const SysfsTree& tree) {
  tree.two_sockets();
  tree.bridge("pci0000:00/0000:00:01.0");
  tree.bridge(kSwitch);
  tree.bridge(kSwitch + "/0000:02:00.0");
  tree.bridge(kSwitch + "/0000:02:01.0", 8);
  tree.pci(kSwitch + "/0000:02:00.0/0000:03:00.0", {.device_class = "0x030200", .numa = 0});
  tree.pci(kSwitch + "/0000:02:01.0/0000:04:00.0",
           {.device_class = "0x020700", .vendor = "0x15b3", .numa = 0, .lanes = 8});
  tree.openfabrics("mlx5_0", kSwitch + "/0000:02:01.0/0000:04:00.0", "506b:4b03:0000:0001",
                   "506b:4b03:0000:0011");
  tree.bridge("pci0000:80/0000:80:01.0");
  tree.pci("pci0000:80/0000:80:01.0/0000:81:00.0", {.device_class = "0x030200", .numa = 1});
  tree.bridge("pci0000:80/0000:80:02.0");
  for (const std::string function : {"0", "1"}) {
    const std::string place = "pci0000:80/0000:80:02.0/0000:82:00." + function;
    tree.pci(place, {.device_class = "0x020000", .vendor = "0x15b3", .numa = 1});
    tree.openfabrics("mlx5_" + std::to_string(1 + std::stoi(function)), place, "506b:4b03:0000:0002",
                     "0000:0000:0000:0000", "4: ACTIVE", "5: LinkUp", "Ethernet");
    tree.interface("eth" + function, place, "up", "100000");
  }
  // What is no GPU and no NIC: the server's own VGA, a disk, a virtual function, lo.
  tree.pci("pci0000:80/0000:80:03.0", {.device_class = "0x030000", .vendor = "0x1a03"});
  tree.pci("pci0000:80/0000:80:04.0", {.device_class = "0x010802", .vendor = "0x144d"});
  tree.pci("pci0000:80/0000:80:02.0/0000:82:01.0", {.device_class = "0x020000", .vendor = "0x15b3"});
  tree.link("devices/pci0000:80/0000:80:02.0/0000:82:01.0/physfn",
            "devices/pci0000:80/0000:80:02.0/0000:82:00.0");
  tree.write("class/net/lo/operstate", "unknown");
  tree.write("class/dmi/id/product_name", "XE8640");
  tree.write("class/dmi/id/sys_vendor", "Dell Inc.");
}

TEST(RecordedSysfs, HasPackagesAndMemory) {
  const SysfsTree tree;
  fill(tree);
  const Machine machine = probe_recorded_sysfs(tree.path());
  EXPECT_EQ(machine.name, tree.path().filename().string());
  EXPECT_EQ(machine.model, "Dell Inc. XE8640");
  ASSERT_EQ(machine.packages.size(), 2u);
  for (int i = 0; i < 2; ++i) {
    const Package& package = machine.packages[static_cast<std::size_t>(i)];
    EXPECT_EQ(package.cores, 2);
    EXPECT_EQ(package.memory.value, std::uint64_t{1} << 30);
    EXPECT_THAT(package.numa_nodes, ElementsAre(i));
  }
}

TEST(RecordedSysfs, NamesTheDriverOfItsGpus) {
  const SysfsTree tree;
  fill(tree);
  EXPECT_EQ(probe_recorded_sysfs(tree.path()).gpu_driver, "");
  tree.write("module/nvidia/version", "550.54.15");
  EXPECT_EQ(probe_recorded_sysfs(tree.path()).gpu_driver, "NVIDIA 550.54.15");
  tree.write("module/amdgpu/version", "6.7.0");
  EXPECT_EQ(probe_recorded_sysfs(tree.path()).gpu_driver, "NVIDIA 550.54.15 and amdgpu 6.7.0");
  const SysfsTree none;
  none.two_sockets();
  none.write("module/nvidia/version", "550.54.15");
  EXPECT_EQ(probe_recorded_sysfs(none.path()).gpu_driver, "");
}

TEST(RecordedSysfs, HasDevicesWhereTheyHang) {
  const SysfsTree tree;
  fill(tree);
  const Machine machine = probe_recorded_sysfs(tree.path());
  ASSERT_EQ(machine.gpus.size(), 2u);
  EXPECT_EQ(machine.gpus[1].pci, "0000:81:00.0");
  EXPECT_EQ(machine.gpus[1].numa, 1);
  EXPECT_NE(machine.gpus[0].host_bridge, machine.gpus[1].host_bridge);
  ASSERT_EQ(machine.switches.size(), 1u);
  EXPECT_EQ(machine.switches[0].pci, "0000:01:00.0");
  ASSERT_EQ(machine.nics.size(), 3u);
  EXPECT_EQ(machine.nics[0].name, "mlx5_0");
  EXPECT_EQ(find_path(machine, gpu(0), nic(0))->type, PathType::pix);
  EXPECT_EQ(find_path(machine, gpu(0), gpu(1))->type, PathType::sys);
  EXPECT_EQ(find_path(machine, gpu(1), nic(1))->type, PathType::phb);
  // Eight of 16 lanes of generation 4.
  EXPECT_NEAR(find_path(machine, gpu(0), nic(0))->bandwidth.gigabytes_per_second(), 15.754, 1e-3);
  EXPECT_NEAR(find_path(machine, gpu(1), nic(1))->bandwidth.gigabytes_per_second(), 31.508, 1e-3);
}

TEST(RecordedSysfs, TakesTwoLevelsOfABroadcomSwitchForOne) {
  const auto machine_of = [](const std::string& lower) {
    const SysfsTree tree;
    const auto bridge = [&](const std::string& place, const std::string& subsystem) {
      tree.pci(place, {.device_class = "0x060400",
                       .vendor = "0x1000",
                       .device = "0xc030",
                       .subsystem_vendor = "0x1000",
                       .subsystem_device = subsystem});
    };
    tree.bridge("pci0000:00/0000:00:01.0");
    bridge(kSwitch, "0x0003");
    for (int port = 0; port < 2; ++port) {
      const std::string below = fmt::format("{}/0000:02:0{}.0", kSwitch, port);
      const std::string upstream = fmt::format("{}/0000:{:02x}:00.0", below, 0x10 * (port + 1));
      const std::string downstream = fmt::format("{}/0000:{:02x}:00.0", upstream, 0x10 * (port + 1) + 1);
      bridge(below, "0x0003");
      bridge(upstream, lower);
      bridge(downstream, lower);
      tree.pci(fmt::format("{}/0000:{:02x}:00.0", downstream, 0x10 * (port + 1) + 2),
               {.device_class = "0x030200"});
    }
    return probe_recorded_sysfs(tree.path());
  };
  const Machine one = machine_of("0x1003");
  EXPECT_EQ(one.switches.size(), 1u);
  EXPECT_EQ(find_path(one, gpu(0), gpu(1))->type, PathType::pix);
  const Machine three = machine_of("0x0003");
  EXPECT_EQ(three.switches.size(), 3u);
  EXPECT_EQ(find_path(three, gpu(0), gpu(1))->type, PathType::pxb);
}

// ConnectX-3's, whether its ports run as InfiniBand or as Ethernet.
TEST(RecordedSysfs, TellsTheLinkLayerOfOtherControllersByTheirPortsOrInterfaces) {
  const std::string place = "pci0000:00/0000:00:01.0";
  const auto kind = [&](const auto& add) {
    const SysfsTree tree;
    tree.pci(place, {.device_class = "0x028000", .vendor = "0x15b3", .device = "0x1003"});
    add(tree);
    const Machine machine = probe_recorded_sysfs(tree.path());
    EXPECT_EQ(machine.nics.size(), 1u);
    return machine.nics.empty() ? "none" : to_text(machine.nics[0].kind);
  };
  const auto openfabrics = [&](const char* layer) {
    return [&place, layer](const SysfsTree& tree) {
      tree.openfabrics("mlx4_0", place, "0002:c903:0000:0001", "0002:c903:0000:0002", "4: ACTIVE",
                       "5: LinkUp", layer);
      tree.interface("ib0", place, "up", "40000");
    };
  };
  const auto interface = [&](const char* type) {
    return [&place, type](const SysfsTree& tree) {
      tree.interface("ib0", place, "up", "40000");
      tree.write("class/net/ib0/type", type);
    };
  };
  EXPECT_EQ(kind(openfabrics("InfiniBand")), "infiniband");
  EXPECT_EQ(kind(openfabrics("Ethernet")), "ethernet");
  EXPECT_EQ(kind(openfabrics("")), "ethernet") << "by its interface";
  EXPECT_EQ(kind(interface("1")), "ethernet");
  EXPECT_EQ(kind(interface("32")), "infiniband");
  EXPECT_EQ(kind(interface("65534")), "unknown");
}

TEST(RecordedSysfs, CountsNoVirtualFunctionsOfGpus) {
  const SysfsTree tree;
  fill(tree);
  const std::string physical = "pci0000:80/0000:80:01.0/0000:81:00.0";
  for (int function = 1; function <= 4; ++function) {
    const std::string place = fmt::format("pci0000:80/0000:80:01.0/0000:81:00.{}", function);
    tree.pci(place, {.device_class = "0x030200", .numa = 1});
    tree.link("devices/" + place + "/physfn", "devices/" + physical);
  }
  const Machine machine = probe_recorded_sysfs(tree.path());
  ASSERT_EQ(machine.gpus.size(), 2u);
  EXPECT_EQ(machine.gpus[1].pci, "0000:81:00.0");
}

// A virtual machine of Azure's: eth0 hangs on the VMbus and hands its traffic to the virtual function.
TEST(RecordedSysfs, CountsAzuresAcceleratedNetworkOnce) {
  const SysfsTree tree;
  const std::string function = "LNXSYSTM:00/VMBUS:00/pcie0/pci0001:00/0001:00:02.0";
  tree.pci(function, {.device_class = "0x020000", .vendor = "0x15b3"});
  tree.interface("eth1", function, "up", "50000");
  tree.interface("eth0", "LNXSYSTM:00/VMBUS:00/eth0", "up", "50000");
  EXPECT_EQ(probe_recorded_sysfs(tree.path()).nics.size(), 2u) << "of two networks";
  tree.link("devices/LNXSYSTM:00/VMBUS:00/eth0/net/eth0/lower_eth1", "class/net/eth1");
  const Machine machine = probe_recorded_sysfs(tree.path());
  ASSERT_EQ(machine.nics.size(), 1u);
  EXPECT_EQ(machine.nics[0].name, "eth1");
  EXPECT_EQ(machine.nics[0].pci, "0001:00:02.0");
  EXPECT_DOUBLE_EQ(machine.nics[0].bandwidth().gigabytes_per_second(), 6.25);
}

// The same adapter's RoCE device has a port for each representor; older kernels made a device of each.
TEST(RecordedSysfs, LeavesOutOpenFabricsPortsOfRepresentors) {
  const SysfsTree tree;
  tree.two_sockets();
  const std::string place = "pci0000:00/0000:00:01.0";
  tree.pci(place, {.device_class = "0x020000", .vendor = "0x15b3", .device = "0x101d"});
  const auto interface = [&](const std::string& name, const std::string& port) {
    tree.interface(name, place, "up", "100000");
    tree.write("devices/" + place + "/net/" + name + "/phys_port_name", port);
  };
  const std::string ports = "devices/" + place + "/infiniband/mlx5_1/ports/";
  const auto port = [&](int number, const std::string& gid) {
    const std::string folder = ports + std::to_string(number) + "/";
    tree.write(folder + "state", "4: ACTIVE");
    tree.write(folder + "rate", "100 Gb/sec (4X EDR)");
    tree.write(folder + "link_layer", "Ethernet");
    tree.write(folder + "gids/0", gid);
  };
  const std::string none = "0000:0000:0000:0000:0000:0000:0000:0000";
  tree.openfabrics("mlx5_0", place, "b83f:d203:0061:0000", "0000:0000:0000:0001", "4: ACTIVE", "5: LinkUp",
                   "Ethernet");
  tree.openfabrics("mlx5_1", place, "b83f:d203:0061:0000", "0000:0000:0000:0002", "4: ACTIVE", "5: LinkUp",
                   "Ethernet");
  port(2, none);
  port(3, "fe80:0000:0000:0000:0000:0000:0000:0003");
  EXPECT_EQ(probe::Sysfs(tree.path()).openfabrics_ports("mlx5_1").size(), 3u)
      << "nothing says that it switches";
  interface("eth0", "p0");
  interface("eth1", "pf0vf0");
  tree.write("devices/" + place + "/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/0", "eth1");
  tree.write(ports + "1/gid_attrs/ndevs/0", "eth0");
  tree.write(ports + "3/gid_attrs/ndevs/0", "eth1");
  const probe::Sysfs sysfs(tree.path());
  EXPECT_THAT(sysfs.openfabrics_devices(), ElementsAre(::testing::Pair("mlx5_1", "0000:00:01.0")));
  const std::vector<Port> found = sysfs.openfabrics_ports("mlx5_1");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].number, 1);
  EXPECT_EQ(sysfs.openfabrics_states("mlx5_1").size(), 1u);
  const Machine machine = probe_recorded_sysfs(tree.path());
  ASSERT_EQ(machine.nics.size(), 1u);
  EXPECT_EQ(machine.nics[0].name, "mlx5_1");
  EXPECT_EQ(machine.nics[0].ports.size(), 1u);
}

// An adapter in switchdev mode: its functions' representors are interfaces of the same device.
TEST(RecordedSysfs, CountsNoRepresentors) {
  const SysfsTree tree;
  const std::string place = "pci0000:00/0000:00:05.0";
  tree.pci(place, {.device_class = "0x020000", .vendor = "0x15b3"});
  const auto add = [&](const std::string& name, const std::string& port) {
    tree.interface(name, place, "up", "100000");
    tree.write("devices/" + place + "/net/" + name + "/phys_port_name", port);
  };
  add("eth0", "p0");
  add("eth1", "pf0vf0");
  add("eth2", "c1pf0sf88");
  add("eth3", "pf0");
  const Machine machine = probe_recorded_sysfs(tree.path());
  ASSERT_EQ(machine.nics.size(), 1u);
  EXPECT_EQ(machine.nics[0].name, "eth0");
  EXPECT_DOUBLE_EQ(machine.nics[0].bandwidth().gigabytes_per_second(), 12.5);
}

TEST(RecordedSysfs, HasPortsWithTheirGuids) {
  const SysfsTree tree;
  fill(tree);
  const Machine machine = probe_recorded_sysfs(tree.path());
  ASSERT_EQ(machine.nics.size(), 3u);
  EXPECT_EQ(machine.nics[0].kind, NicKind::infiniband);
  EXPECT_EQ(machine.nics[0].system_guid, "0x506b4b0300000001");
  EXPECT_EQ(machine.nics[0].ports.at(0).guid, "0x506b4b0300000011");
  EXPECT_EQ(machine.nics[2].kind, NicKind::ethernet);
  EXPECT_EQ(machine.nics[2].ports.at(0).guid, "");
  // Two functions of one adapter are two ports.
  EXPECT_EQ(machine.nics[1].system_guid, machine.nics[2].system_guid);
}

TEST(RecordedSysfs, SeesOnePortOnceThatTwoSocketsShare) {
  const SysfsTree tree;
  tree.two_sockets();
  for (const std::string root : {"0", "8"}) {
    const std::string place = "pci0000:" + root + "0/0000:" + root + "0:01.0/0000:" + root + "1:00.0";
    tree.bridge("pci0000:" + root + "0/0000:" + root + "0:01.0");
    tree.pci(place, {.device_class = "0x020700", .vendor = "0x15b3", .numa = root == "0" ? 0 : 1});
    tree.openfabrics("mlx5_" + root, place, "506b:4b03:0000:0001", "506b:4b03:0000:001" + root);
  }
  const Machine machine = probe_recorded_sysfs(tree.path());
  ASSERT_EQ(machine.nics.size(), 1u);
  EXPECT_EQ(machine.nics[0].numa, -1);
  EXPECT_EQ(std::ranges::count(machine.links, nic(0), &Link::from), 2);
}

// A virtual machine that has a virtual function of each of an adapter's two ports.
TEST(RecordedSysfs, TakesVirtualFunctionsForNicsOfTheirOwn) {
  const SysfsTree tree;
  for (const std::string slot : {"5", "6"}) {
    const std::string place = "pci0000:00/0000:00:0" + slot + ".0";
    tree.pci(place, {.device_class = "0x020700", .vendor = "0x15b3", .device = "0x101e"});
    tree.openfabrics("mlx5_" + slot, place, "506b:4b03:0000:0001", "506b:4b03:0000:001" + slot);
  }
  EXPECT_EQ(probe_recorded_sysfs(tree.path()).nics.size(), 2u);
}

TEST(RecordedSysfs, ReadsACopyWithoutTheBussLinks) {
  const SysfsTree tree;
  fill(tree);
  std::filesystem::remove_all(tree.path() / "bus");
  const Machine machine = probe_recorded_sysfs(tree.path());
  ASSERT_EQ(machine.gpus.size(), 2u);
  EXPECT_EQ(find_path(machine, gpu(0), nic(0))->type, PathType::pix);
  EXPECT_NEAR(find_path(machine, gpu(0), nic(0))->bandwidth.gigabytes_per_second(), 15.754, 1e-3);
}

TEST(RecordedSysfs, SaysOfWhichDevicesThePackageIsUnknown) {
  const SysfsTree tree;
  tree.two_sockets();
  const std::string nowhere = "pci0000:00/0000:00:05.0";
  const std::string by_processors = "pci0000:00/0000:00:06.0";
  tree.pci(nowhere, {.device_class = "0x030200", .numa = -1});
  tree.pci(by_processors, {.device_class = "0x030200", .numa = -1});
  tree.write("devices/" + by_processors + "/local_cpulist", "2-3,6-7");
  tree.write("class/net/eth0/operstate", "up");
  tree.write("class/net/eth0/type", "1");
  tree.write("class/net/eth0/speed", "10000");
  tree.write("class/net/eth0/device/vendor", "0x1af4");
  const Machine machine = probe_recorded_sysfs(tree.path());
  ASSERT_EQ(machine.gpus.size(), 2u);
  ASSERT_EQ(machine.nics.size(), 1u);
  EXPECT_FALSE(machine.gpus[0].package_known);
  EXPECT_TRUE(machine.gpus[1].package_known);
  EXPECT_FALSE(machine.nics[0].package_known);
  EXPECT_THAT(machine.remarks, ::testing::Contains(HasSubstr("which package gpu0, eth0 are near")));
  EXPECT_EQ(find_path(machine, gpu(0), gpu(1))->type, PathType::unknown);
}

TEST(RecordedSysfs, OfOnePackageHasAllDevicesThere) {
  const SysfsTree tree;
  tree.pci("pci0000:00/0000:00:05.0", {.device_class = "0x030200", .numa = -1});
  const Machine machine = probe_recorded_sysfs(tree.path());
  ASSERT_EQ(machine.gpus.size(), 1u);
  EXPECT_TRUE(machine.gpus[0].package_known);
  EXPECT_THAT(machine.remarks, ::testing::Not(::testing::Contains(HasSubstr("which package"))));
}

// As with numa=off: one node for all processors.
TEST(RecordedSysfs, OfANodeOfSeveralPackagesDoesNotSayWhereThingsAre) {
  const SysfsTree tree;
  tree.two_sockets();
  std::filesystem::remove_all(tree.path() / "devices/system/node/node1");
  tree.write("devices/system/node/node0/cpulist", "0-7");
  tree.pci("pci0000:00/0000:00:05.0", {.device_class = "0x030200", .numa = 0});
  const Machine machine = probe_recorded_sysfs(tree.path());
  ASSERT_EQ(machine.packages.size(), 2u);
  for (const Package& package : machine.packages) {
    EXPECT_THAT(package.numa_nodes, ElementsAre(0));
    EXPECT_EQ(package.memory.value, 0u) << "unknown";
  }
  ASSERT_EQ(machine.gpus.size(), 1u);
  EXPECT_FALSE(machine.gpus[0].package_known);
}

TEST(RecordedSysfs, SaysWhatWasRead) {
  const SysfsTree tree;
  fill(tree);
  std::filesystem::remove_all(tree.path() / "devices/system");
  const Machine machine = probe_recorded_sysfs(tree.path());
  EXPECT_EQ(machine.packages.size(), 1u);
  const auto detail = &ProbeSource::detail;
  EXPECT_THAT(
      machine.sources,
      ElementsAre(AllOf(Field(&ProbeSource::name, "sysfs"), Field(&ProbeSource::read, true),
                        Field(detail, HasSubstr("not recorded: processors (devices/system/cpu), memory"))),
                  AllOf(Field(&ProbeSource::name, "hwloc"), Field(&ProbeSource::read, false)),
                  AllOf(Field(&ProbeSource::name, "NVML"), Field(&ProbeSource::read, false)),
                  AllOf(Field(&ProbeSource::name, "ROCm"), Field(&ProbeSource::read, false))));
}

// cp and tar keep links as they are: one with an absolute target leads to the /sys of this machine.
TEST(RecordedSysfs, DoesNotLeaveTheCopy) {
  const SysfsTree tree;
  fill(tree);
  const SysfsTree other;
  other.pci("pci0000:90/0000:90:01.0", {.device_class = "0x030200", .numa = 1});
  other.interface("eth7", "pci0000:90/0000:90:01.0", "up", "100000");
  std::filesystem::create_symlink(other.path() / "devices/pci0000:90/0000:90:01.0",
                                  tree.path() / "bus/pci/devices/0000:90:01.0");
  std::filesystem::create_symlink(other.path() / "class/net/eth7", tree.path() / "class/net/eth7");
  std::filesystem::create_symlink("/dev/zero",
                                  tree.path() / "devices/pci0000:80/0000:80:01.0/0000:81:00.0/product_name");
  const Machine machine = probe_recorded_sysfs(tree.path());
  EXPECT_EQ(machine.gpus.size(), 2u);
  EXPECT_EQ(machine.nics.size(), 3u);
  EXPECT_THAT(machine.sources.at(0).detail,
              AllOf(HasSubstr("lead out of it, " + tree.path().string()), HasSubstr("scripts/record_sysfs")));
  const SysfsTree whole;
  fill(whole);
  EXPECT_THAT(probe_recorded_sysfs(whole.path()).sources.at(0).detail, Not(HasSubstr("out of it")));
}

TEST(RecordedSysfs, MustBeOne) {
  const testing::TemporaryFolder folder;
  const auto sentence = [](const std::filesystem::path& path) {
    return testing::usage_sentence([&] { probe_recorded_sysfs(path); });
  };
  EXPECT_THAT(sentence(folder.path() / "missing"), HasSubstr("there is no folder"));
  EXPECT_THAT(sentence(folder.write("file", "x")), HasSubstr("there is no folder"));
  EXPECT_THAT(sentence(folder.path()), HasSubstr("none of class/, bus/ and devices/"));
}

// A bus between every two of thousands of packages would take all memory.
TEST(RecordedSysfs, RefusesCrowds) {
  const auto sentence = [](const SysfsTree& tree) {
    return testing::usage_sentence([&] { probe_recorded_sysfs(tree.path()); });
  };
  const SysfsTree packages;
  for (int cpu = 0; cpu < 1025; ++cpu)
    packages.write(fmt::format("devices/system/cpu/cpu{}/topology/physical_package_id", cpu),
                   fmt::format("{}", cpu));
  EXPECT_THAT(sentence(packages), AllOf(HasSubstr(packages.path().string()), HasSubstr("has 1025 packages"),
                                        HasSubstr("scripts/record_sysfs")));
  const SysfsTree gpus;
  for (int slot = 0; slot < 257; ++slot)
    gpus.pci(fmt::format("pci{:04x}:00/{:04x}:00:01.0", slot, slot), {.device_class = "0x030200"});
  EXPECT_THAT(sentence(gpus), HasSubstr("has 257 GPUs"));
}

TEST(RecordedSysfs, PassesOverAbsurdNumbers) {
  const SysfsTree tree;
  tree.two_sockets();
  tree.write("devices/system/cpu/cpu0/topology/physical_package_id", "-9223372036854775808");
  tree.openfabrics("mlx5_0", "pci0000:00/0000:00:01.0", "506b:4b03:0000:0001", "506b:4b03:0000:0011");
  for (const char* port : {"0", "256", "1e99", "nan", "inf", "99999999999999999999", "x"})
    tree.write(fmt::format("class/infiniband/mlx5_0/ports/{}/state", port), "4: ACTIVE");
  const Machine machine = probe_recorded_sysfs(tree.path());
  EXPECT_EQ(machine.packages.size(), 2u);
  ASSERT_EQ(machine.nics.size(), 1u);
  EXPECT_THAT(machine.nics[0].ports, ElementsAre(Field(&Port::number, 1)));
}

// Its ports were read off the files by hand. The copy has class/infiniband and nothing else.
TEST(RecordedSysfs, ReadsPrometheussCopy) {
  POLYRING_NEEDS_TOPOLOGIES();
  const auto folder = testing::topologies() / "fabric/sysfs-prometheus";
  const Machine machine = probe_recorded_sysfs(folder);
  EXPECT_EQ(machine.name, "sysfs-prometheus");
  EXPECT_EQ(probe_recorded_sysfs(folder / "sys").name, "sysfs-prometheus");
  EXPECT_TRUE(machine.gpus.empty());
  ASSERT_EQ(machine.nics.size(), 3u);
  EXPECT_EQ(machine.nics[0].name, "hfi1_0");
  EXPECT_NEAR(machine.nics[0].bandwidth().gigabytes_per_second(), 12.12, 0.01);
  EXPECT_EQ(machine.nics[1].model, "MT4099");
  EXPECT_NEAR(machine.nics[1].bandwidth().gigabytes_per_second(), 8, 1e-9);
  EXPECT_NEAR(machine.nics[2].bandwidth().gigabytes_per_second(), 3.03, 0.01);
  EXPECT_THAT(machine.sources.at(0).detail,
              AllOf(HasSubstr("OpenFabrics"), HasSubstr("not recorded: processors")));
  EXPECT_THAT(machine.remarks, ElementsAre());
}

TEST(LiveProbe, SaysWhatItRead) {
  const Machine machine = probe_this_machine();
  std::vector<std::string> names;
  for (const ProbeSource& source : machine.sources) {
    names.push_back(source.name);
    EXPECT_NE(source.detail, "") << source.name;
  }
  EXPECT_THAT(names, ElementsAre("hwloc", "sysfs", "NVML", "ROCm"));
  EXPECT_TRUE(machine.sources[0].read);
}

TEST(LiveProbe, LeavesGpusOut) {
  const Machine machine = probe_without_gpus();
  const Machine whole = probe_this_machine();
  EXPECT_TRUE(machine.gpus.empty());
  EXPECT_EQ(machine.name, whole.name);
  EXPECT_EQ(machine.packages.size(), whole.packages.size());
  EXPECT_EQ(machine.nics.size(), whole.nics.size());
  ASSERT_EQ(machine.sources.size(), 4U);
  for (const std::size_t driver : {2U, 3U}) EXPECT_FALSE(machine.sources[driver].read);
  EXPECT_EQ(machine.sources[1].detail, whole.sources[1].detail);
}

}  // namespace
}  // namespace polyring

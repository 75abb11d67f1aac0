#include "topology/inventory/probe/sysfs.hpp"

#include <unistd.h>

#include <filesystem>

#include "tests/topology/support.hpp"
#include "topology/inventory/probe.hpp"
#include "topology/inventory/probe/trial.hpp"

namespace polyring::probe {
namespace {

using polyring::testing::TemporaryFolder;

TEST(PcieBandwidth, IsGenerationTimesLanesAfterCoding) {
  EXPECT_NEAR(pcie_bandwidth("2.5 GT/s PCIe", 1).value, 0.25e9, 1);
  EXPECT_NEAR(pcie_bandwidth("5.0 GT/s PCIe", 8).value, 4e9, 1);
  EXPECT_NEAR(pcie_bandwidth("8.0 GT/s PCIe", 16).value, 15.754e9, 1e6);
  EXPECT_NEAR(pcie_bandwidth("16.0 GT/s PCIe", 16).value, 31.508e9, 1e6);
  EXPECT_NEAR(pcie_bandwidth("32.0 GT/s PCIe", 16).value, 63.015e9, 1e6);
  EXPECT_NEAR(pcie_bandwidth("64.0 GT/s PCIe", 16).value, 121e9, 1e6);
  EXPECT_FALSE(pcie_bandwidth("Unknown", 16).known());
  EXPECT_FALSE(pcie_bandwidth("", 16).known());
}

// The payload rates that the InfiniBand Trade Association gives for four lanes.
TEST(OpenfabricsRate, IsThatOfThePayload) {
  const auto rate = [](const char* text) {
    return openfabrics_rate(text, NicKind::infiniband).gigabytes_per_second();
  };
  EXPECT_NEAR(rate("40 Gb/sec (4X QDR)"), 4, 1e-9);
  EXPECT_NEAR(rate("56 Gb/sec (4X FDR)"), 6.8, 0.02);
  EXPECT_NEAR(rate("100 Gb/sec (4X EDR)"), 12.1, 0.03);
  EXPECT_NEAR(rate("200 Gb/sec (4X HDR)"), 24.2, 0.05);
  EXPECT_NEAR(rate("400 Gb/sec (4X NDR)"), 48.5, 0.02);
  EXPECT_DOUBLE_EQ(openfabrics_rate("100 Gb/sec (4X EDR)", NicKind::ethernet).value, 12.5e9);
  EXPECT_EQ(rate(""), 0);
}

TEST(SysfsPcie, TakesTheBestGenerationOnTheConnectedLanes) {
  const TemporaryFolder folder;
  const Sysfs sysfs(folder.path());
  const std::string device = "bus/pci/devices/0000:01:00.0/";
  folder.write(device + "max_link_speed", "16.0 GT/s PCIe\n");
  folder.write(device + "current_link_speed", "2.5 GT/s PCIe\n");  // idle
  folder.write(device + "max_link_width", "16\n");
  folder.write(device + "current_link_width", "8\n");
  EXPECT_NEAR(sysfs.pcie_bandwidth("0000:01:00.0").value, 15.754e9, 1e6);
  folder.write(device + "current_link_width", "0\n");
  EXPECT_NEAR(sysfs.pcie_bandwidth("0000:01:00.0").value, 31.508e9, 1e6);
  folder.write(device + "max_link_width", "255\n");
  EXPECT_FALSE(sysfs.pcie_bandwidth("0000:01:00.0").known());
  EXPECT_FALSE(sysfs.pcie_bandwidth("0000:02:00.0").known());
}

TEST(SysfsPcie, KnowsVirtualFunctions) {
  const TemporaryFolder folder;
  folder.write("bus/pci/devices/0000:01:00.2/physfn/vendor", "0x15b3\n");
  folder.write("bus/pci/devices/0000:01:00.0/vendor", "0x15b3\n");
  EXPECT_TRUE(Sysfs(folder.path()).is_virtual_function("0000:01:00.2"));
  EXPECT_FALSE(Sysfs(folder.path()).is_virtual_function("0000:01:00.0"));
  EXPECT_FALSE(Sysfs(folder.path()).is_virtual_function(""));
}

TEST(SysfsPorts, OfInfinibandAreUpOnlyWhenActive) {
  const TemporaryFolder folder;
  const std::string ports = "class/infiniband/mlx5_0/ports/";
  folder.write(ports + "1/state", "4: ACTIVE\n");
  folder.write(ports + "1/rate", "100 Gb/sec (4X EDR)\n");
  folder.write(ports + "1/link_layer", "InfiniBand\n");
  folder.write(ports + "2/state", "1: DOWN\n");
  folder.write(ports + "2/rate", "10 Gb/sec (4X SDR)\n");
  folder.write(ports + "2/link_layer", "InfiniBand\n");
  const Sysfs sysfs(folder.path());
  const std::vector<Port> found = sysfs.openfabrics_ports("mlx5_0");
  ASSERT_EQ(found.size(), 2u);
  EXPECT_TRUE(found[0].up);
  EXPECT_NEAR(found[0].bandwidth.gigabytes_per_second(), 12.12, 0.01);
  EXPECT_FALSE(found[1].up);
  EXPECT_EQ(found[1].number, 2);
  EXPECT_EQ(sysfs.openfabrics_kind("mlx5_0"), NicKind::infiniband);
  EXPECT_TRUE(sysfs.openfabrics_ports("mlx5_9").empty());
  EXPECT_EQ(sysfs.openfabrics_kind("mlx5_9"), std::nullopt);
}

TEST(SysfsPorts, OfRoceAreEthernet) {
  const TemporaryFolder folder;
  const std::string port = "class/infiniband/mlx5_0/ports/1/";
  folder.write(port + "state", "4: ACTIVE\n");
  folder.write(port + "rate", "100 Gb/sec (4X EDR)\n");
  folder.write(port + "link_layer", "Ethernet\n");
  const Sysfs sysfs(folder.path());
  EXPECT_EQ(sysfs.openfabrics_kind("mlx5_0"), NicKind::ethernet);
  EXPECT_DOUBLE_EQ(sysfs.openfabrics_ports("mlx5_0").at(0).bandwidth.value, 12.5e9);
}

// As AWS's driver writes it, which names no link layer.
TEST(SysfsPorts, OfEfaAreEthernet) {
  const TemporaryFolder folder;
  const std::string port = "class/infiniband/efa_0/ports/1/";
  folder.write(port + "state", "4: ACTIVE\n");
  folder.write(port + "rate", "100 Gb/sec (4X EDR)\n");
  folder.write(port + "link_layer", "Unknown\n");
  const Sysfs sysfs(folder.path());
  EXPECT_EQ(sysfs.openfabrics_kind("efa_0"), NicKind::ethernet);
  EXPECT_DOUBLE_EQ(sysfs.openfabrics_ports("efa_0").at(0).bandwidth.value, 12.5e9);
  std::filesystem::remove(folder.path() / port / "link_layer");
  EXPECT_EQ(sysfs.openfabrics_kind("efa_0"), std::nullopt);
}

TEST(SysfsPorts, OfEthernetSayTheirSpeed) {
  const TemporaryFolder folder;
  const auto interface = [&](const std::string& name, const char* state, const char* carrier,
                             const char* speed) {
    folder.write("class/net/" + name + "/operstate", state);
    folder.write("class/net/" + name + "/carrier", carrier);
    folder.write("class/net/" + name + "/speed", speed);
    return Sysfs(folder.path()).ethernet_port(name, 1).value();
  };
  EXPECT_TRUE(interface("eth0", "up\n", "1\n", "1000\n").up);
  EXPECT_DOUBLE_EQ(interface("eth0", "up\n", "1\n", "1000\n").bandwidth.value, 0.125e9);
  EXPECT_FALSE(interface("eth1", "down\n", "0\n", "-1\n").up);
  EXPECT_FALSE(interface("eth1", "down\n", "0\n", "-1\n").bandwidth.known());
  EXPECT_TRUE(interface("eth2", "unknown\n", "1\n", "-1\n").up);
  EXPECT_FALSE(interface("eth2", "unknown\n", "0\n", "-1\n").up);
  EXPECT_FALSE(Sysfs(folder.path()).ethernet_port("eth9", 1).has_value());
}

TEST(SysfsFiles, ThatMayNotBeReadAreNamed) {
  const TemporaryFolder folder;
  std::filesystem::permissions(folder.path(), std::filesystem::perms{0755});
  std::filesystem::permissions(folder.write("secret", "x\n"), std::filesystem::perms::none);
  struct Seen {
    std::size_t refused;
    bool named;
  };
  const Shared<Seen> seen;
  const std::string path = folder.path();
  try_out(
      [&] {
        constexpr uid_t kNobody = 65534;
        if (geteuid() == 0 && setuid(kNobody) != 0) return;
        const Sysfs sysfs(path);
        sysfs.line("secret");
        sysfs.line("missing");
        *seen = {sysfs.refused().size(), sysfs.refused().contains(path + "/secret")};
      },
      {5});
  EXPECT_EQ(seen->refused, 1u);
  EXPECT_TRUE(seen->named);
}

TEST(SysfsRealPorts, ReadAsTheirDriversWroteThem) {
  POLYRING_NEEDS_TOPOLOGIES();
  const Sysfs sysfs(polyring::testing::topologies() / "fabric/sysfs-prometheus/sys");
  const std::vector<Port> mlx4 = sysfs.openfabrics_ports("mlx4_0");
  ASSERT_EQ(mlx4.size(), 2u);
  EXPECT_TRUE(mlx4[0].up && mlx4[1].up);
  EXPECT_NEAR(mlx4[0].bandwidth.gigabytes_per_second(), 4, 1e-9);
  const std::vector<Port> hfi1 = sysfs.openfabrics_ports("hfi1_0");
  ASSERT_EQ(hfi1.size(), 1u);
  EXPECT_NEAR(hfi1[0].bandwidth.gigabytes_per_second(), 12.12, 0.01);
}

}  // namespace
}  // namespace polyring::probe

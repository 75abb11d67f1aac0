#include "topology/peer_access.hpp"

#include <gtest/gtest.h>

#include "topology/presets.hpp"
#include "topology/processes.hpp"

namespace polyring {
namespace {

TEST(PeerAccess, IsByNvlinkAndNotAcrossSockets) {
  const PeerAccess minsky(preset("minsky", 2));
  EXPECT_TRUE(minsky(0, 1));
  EXPECT_TRUE(minsky(3, 2));
  EXPECT_FALSE(minsky(1, 2));
  EXPECT_TRUE(minsky(6, 7));
  EXPECT_FALSE(minsky(3, 4)) << "another host";
  EXPECT_FALSE(minsky(0, 5)) << "another host, and joined if it were the same";
  EXPECT_EQ(minsky.text(), "0-1, 2-3");
}

TEST(PeerAccess, IsOfAllUnderNvswitches) {
  const PeerAccess dgx(preset("dgx-h100", 2));
  for (int a = 0; a < 16; ++a) {
    for (int b = 0; b < 16; ++b) {
      if (a == b) continue;
      EXPECT_EQ(dgx(a, b), a / 8 == b / 8) << a << " and " << b;
    }
  }
  EXPECT_EQ(dgx.text(), "all ranks of a host");
}

TEST(PeerAccess, HoldsBothWaysAndListsPairsThatOverlap) {
  const PeerAccess cube(preset("dgx1-v100", 1));
  int pairs = 0;
  for (int a = 0; a < 8; ++a) {
    for (int b = 0; b < a; ++b) {
      EXPECT_EQ(cube(a, b), cube(b, a));
      pairs += cube(a, b) ? 1 : 0;
    }
  }
  EXPECT_EQ(pairs, 16) << "the NVLinks of a hybrid cube mesh";
  EXPECT_EQ(cube.text(), "0-1, 0-2, 0-3, 0-4, 1-2, 1-3, 1-5, 2-3, 2-6, 3-7, 4-5, 4-6, 4-7, 5-6, 5-7, 6-7");
}

TEST(PeerAccess, IsUnderOnePcieHostBridge) {
  Machine machine;
  machine.packages.resize(2);
  machine.gpus.resize(4);
  machine.switches.resize(1);
  const auto link = [&](DeviceKind kind, int from, DeviceKind to_kind, int to, LinkKind how) {
    machine.links.push_back({{kind, from}, {to_kind, to}, how, {}, {}});
  };
  link(DeviceKind::gpu, 0, DeviceKind::pci_switch, 0, LinkKind::pcie);
  link(DeviceKind::gpu, 1, DeviceKind::pci_switch, 0, LinkKind::pcie);
  link(DeviceKind::pci_switch, 0, DeviceKind::package, 0, LinkKind::pcie);
  link(DeviceKind::gpu, 2, DeviceKind::package, 1, LinkKind::pcie);
  link(DeviceKind::gpu, 3, DeviceKind::package, 1, LinkKind::pcie);
  link(DeviceKind::package, 0, DeviceKind::package, 1, LinkKind::socket_bus);
  const PeerAccess apart(cluster_of(machine, 1));
  EXPECT_TRUE(apart(0, 1)) << "one switch";
  EXPECT_FALSE(apart(1, 2)) << "two sockets";
  EXPECT_FALSE(apart(2, 3)) << "of one socket, but nothing tells their host bridges";
  machine.gpus[2].host_bridge = machine.gpus[3].host_bridge = 0;
  EXPECT_TRUE(PeerAccess(cluster_of(machine, 1))(2, 3));
  machine.gpus[3].host_bridge = 1;
  EXPECT_FALSE(PeerAccess(cluster_of(machine, 1))(2, 3));
}

TEST(PeerAccess, IsOfProcessesThatShareMemory) {
  Machine machine;
  machine.packages.resize(2);
  const Cluster hosts = cluster_of(with_processes(machine, 4), 2);
  EXPECT_EQ(PeerAccess(hosts).text(), "all ranks of a host");
  EXPECT_FALSE(PeerAccess(hosts)(3, 4));
  EXPECT_EQ(PeerAccess(cluster_of(with_processes(machine, 1), 2)).text(), "no ranks");
}

}  // namespace
}  // namespace polyring

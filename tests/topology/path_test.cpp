#include "topology/path.hpp"

#include "tests/topology/support.hpp"
#include "topology/presets.hpp"

namespace polyring {
namespace {

using testing::small_machine;

constexpr DeviceId gpu(int i) { return {DeviceKind::gpu, i}; }
constexpr DeviceId nic(int i) { return {DeviceKind::nic, i}; }
constexpr DeviceId package(int i) { return {DeviceKind::package, i}; }

Path path(const Machine& machine, DeviceId from, DeviceId to) {
  const auto found = find_path(machine, from, to);
  EXPECT_TRUE(found.has_value());
  return found.value_or(Path{});
}

/// The devices that a path touches, walked hop by hop; a hop that does not start where the last ended fails.
std::vector<DeviceId> walk(const Machine& machine, DeviceId from, const Path& path) {
  std::vector<DeviceId> devices{from};
  for (const Hop& hop : path.hops) {
    const Link& link = machine.links[static_cast<std::size_t>(hop.link)];
    EXPECT_EQ(devices.back(), hop.forward ? link.from : link.to);
    devices.push_back(hop.forward ? link.to : link.from);
  }
  return devices;
}

TEST(Path, ToItselfIsEmpty) {
  EXPECT_EQ(path(small_machine(), gpu(0), gpu(0)).type, PathType::self);
  EXPECT_TRUE(path(small_machine(), gpu(0), gpu(0)).hops.empty());
}

TEST(Path, AddsLatenciesAndIsAsWideAsItsNarrowestHop) {
  const Machine machine = small_machine();
  const Path across = path(machine, gpu(1), nic(0));
  EXPECT_EQ(walk(machine, gpu(1), across), (std::vector{gpu(1), package(1), package(0), nic(0)}));
  EXPECT_DOUBLE_EQ(across.bandwidth.value, 8e9);
  EXPECT_DOUBLE_EQ(across.latency.value, 4e-6);
  EXPECT_EQ(across.type, PathType::sys);
}

TEST(Path, OfAnUnknownHopIsOfUnknownBandwidth) {
  Machine machine = small_machine();
  machine.links.back().bandwidth = {};
  EXPECT_FALSE(path(machine, gpu(0), gpu(1)).bandwidth.known());
}

TEST(Path, IsNothingWithoutLinks) {
  Machine machine = small_machine();
  machine.links.clear();
  EXPECT_FALSE(find_path(machine, gpu(0), gpu(1)).has_value());
}

TEST(Path, TakesTheWiderOfEquallyLongWays) {
  Machine machine = small_machine();
  machine.links.push_back({package(1), package(0), LinkKind::socket_bus, gigabytes_per_second(30), {}});
  machine.links[0].bandwidth = machine.links[1].bandwidth = gigabytes_per_second(100);
  const Path widest = path(machine, gpu(0), gpu(1));
  EXPECT_DOUBLE_EQ(widest.bandwidth.value, 30e9);
  EXPECT_FALSE(widest.hops[1].forward);
}

TEST(Path, TakesTheWiderWayBehindAnEquallyNearDevice) {
  // Two ways of three hops: over switch0 at 5 GB/s, over switch1 at 9 GB/s; the first link is the same width.
  Machine machine = small_machine();
  machine.switches = {{"switch0", ""}, {"switch1", ""}};
  machine.links.erase(machine.links.begin());
  for (int s = 0; s < 2; ++s) {
    const DeviceId pci_switch{DeviceKind::pci_switch, s};
    machine.links.push_back({gpu(0), pci_switch, LinkKind::pcie, gigabytes_per_second(16), {}});
    machine.links.push_back(
        {pci_switch, package(0), LinkKind::pcie, gigabytes_per_second(s == 0 ? 5 : 9), {}});
  }
  EXPECT_DOUBLE_EQ(path(machine, gpu(0), package(0)).bandwidth.value, 9e9);
}

TEST(Path, NeverPassesThroughGpusOrNics) {
  // gpu0 - gpu1 - gpu2 over NVLink: a transfer from gpu0 to gpu2 still goes over PCIe.
  Machine machine = small_machine();
  machine.gpus.push_back({"gpu2", "", "", 0, 0, {}, {}});
  machine.links.push_back({gpu(2), package(0), LinkKind::pcie, gigabytes_per_second(16), {}});
  machine.links.push_back({gpu(0), gpu(1), LinkKind::nvlink, gigabytes_per_second(40), {}});
  machine.links.push_back({gpu(1), gpu(2), LinkKind::nvlink, gigabytes_per_second(40), {}});
  const Path far = path(machine, gpu(0), gpu(2));
  EXPECT_EQ(walk(machine, gpu(0), far), (std::vector{gpu(0), package(0), gpu(2)}));
  EXPECT_EQ(far.type, PathType::phb);
  EXPECT_EQ(path(machine, gpu(0), gpu(1)).type, PathType::nvl);
}

TEST(Path, PrefersNvlinkToPcieAlsoThroughAnNvswitch) {
  Machine machine = small_machine();
  machine.nvswitches = 1;
  for (int i = 0; i < 2; ++i) {
    machine.links.push_back(
        {gpu(i), {DeviceKind::nvswitch, 0}, LinkKind::nvlink, gigabytes_per_second(3), {}});
  }
  const Path nvlink = path(machine, gpu(0), gpu(1));
  EXPECT_EQ(nvlink.type, PathType::nvl);
  EXPECT_DOUBLE_EQ(nvlink.bandwidth.value, 3e9);
}

TEST(Path, TellsHostBridgesAndNumaNodesApart) {
  Machine machine = small_machine();
  EXPECT_EQ(path(machine, gpu(0), nic(0)).type, PathType::phb);
  machine.nics[0].host_bridge = 5;
  EXPECT_EQ(path(machine, gpu(0), nic(0)).type, PathType::node);
  machine.nics[0].host_bridge = machine.gpus[0].host_bridge = -1;
  EXPECT_EQ(path(machine, gpu(0), nic(0)).type, PathType::node);
  machine.nics[0].numa = 3;
  EXPECT_EQ(path(machine, gpu(0), nic(0)).type, PathType::sys);
  EXPECT_EQ(path(machine, gpu(0), package(0)).type, PathType::phb);
  EXPECT_EQ(path(machine, gpu(0), package(1)).type, PathType::sys);
}

TEST(Path, CountsSwitches) {
  Machine machine = small_machine();
  machine.switches = {{"switch0", ""}, {"switch1", ""}};
  constexpr DeviceId upper{DeviceKind::pci_switch, 0};
  constexpr DeviceId lower{DeviceKind::pci_switch, 1};
  machine.links[0].to = lower;  // gpu0 under the lower switch, the NIC and then gpu1 under the upper
  machine.links[2].to = upper;
  machine.links.push_back({lower, upper, LinkKind::pcie, gigabytes_per_second(16), {}});
  machine.links.push_back({upper, package(0), LinkKind::pcie, gigabytes_per_second(16), {}});
  EXPECT_EQ(path(machine, gpu(0), nic(0)).type, PathType::pxb);
  machine.links[0].to = upper;
  EXPECT_EQ(path(machine, gpu(0), nic(0)).type, PathType::pix);
}

TEST(Path, OnMinskyIsNvlinkWithinASocketOnly) {
  const Machine machine = preset("minsky", 1).host(0);
  EXPECT_EQ(path(machine, gpu(0), gpu(1)).type, PathType::nvl);
  EXPECT_DOUBLE_EQ(path(machine, gpu(0), gpu(1)).bandwidth.value, 40e9);
  const Path across = path(machine, gpu(0), gpu(2));
  EXPECT_EQ(across.type, PathType::sys);
  EXPECT_EQ(walk(machine, gpu(0), across), (std::vector{gpu(0), package(0), package(1), gpu(2)}));
  EXPECT_DOUBLE_EQ(across.bandwidth.value, 38.4e9);
  EXPECT_DOUBLE_EQ(path(machine, gpu(0), nic(0)).bandwidth.value, 15.75e9);
}

TEST(Path, OnSummitBothRailsAreAtBothSockets) {
  const Machine machine = preset("summit", 1).host(0);
  for (int g = 0; g < 6; ++g) {
    for (int n = 0; n < 2; ++n) {
      EXPECT_EQ(path(machine, gpu(g), nic(n)).hops.size(), 2u);
      EXPECT_EQ(path(machine, gpu(g), nic(n)).type, PathType::node);
    }
  }
}

/// A GPU beside its CPU has a C2C and a PCIe link to it: the wider one is the way, in both directions, also
/// where something else is the bottleneck, and wherever it stands among the links.
TEST(Path, OfTwoLinksBetweenTheSameDevicesTheWiderIsTaken) {
  for (const bool c2c_first : {false, true}) {
    for (const double pcie : {63.0, 0.25}) {
      Machine machine = small_machine();
      const Link c2c{gpu(0), package(0), LinkKind::c2c, gigabytes_per_second(447), {}};
      machine.links[0].bandwidth = gigabytes_per_second(pcie);
      machine.links.insert(c2c_first ? machine.links.begin() : machine.links.end(), c2c);
      for (const DeviceId other : {nic(0), gpu(1), package(1)}) {
        const Path there = path(machine, gpu(0), other);
        const Path back = path(machine, other, gpu(0));
        EXPECT_EQ(there.type, back.type);
        EXPECT_EQ(there.bandwidth, back.bandwidth);
        const auto uses = [&](const Path& way) {
          return std::ranges::any_of(way.hops, [&](const Hop& hop) {
            return machine.links[static_cast<std::size_t>(hop.link)].kind == LinkKind::c2c;
          });
        };
        EXPECT_TRUE(uses(there) && uses(back));
      }
      EXPECT_EQ(path(machine, gpu(0), nic(0)).type, PathType::p2c);
      EXPECT_EQ(path(machine, nic(0), gpu(0)).type, PathType::p2c);
    }
  }
}

TEST(Path, BetweenFunctionsOfOneAdapterIsPix) {
  Machine machine = testing::two_port_machine();
  EXPECT_EQ(path(machine, nic(0), nic(1)).type, PathType::pix);
  machine.nics[1].pci = "0000:4e:00.0";
  EXPECT_EQ(path(machine, nic(0), nic(1)).type, PathType::phb);
  machine.nics[0].pci = machine.nics[1].pci = "";
  EXPECT_EQ(path(machine, nic(0), nic(1)).type, PathType::phb) << "of none the address is known";
}

}  // namespace
}  // namespace polyring

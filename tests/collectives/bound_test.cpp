#include "collectives/schedule/bound.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "topology/min_cut.hpp"
#include "topology/presets.hpp"

namespace polyring {
namespace {

/// Two sockets with two GPUs each; GPU-GPU 40 GB/s inside a socket, 32 GB/s between the sockets, one 10 GB/s
/// NIC on the first socket.
Machine two_sockets() {
  Machine machine;
  machine.name = "two-sockets";
  machine.packages = {{"package0", {}, 8, {}, {}, {0}}, {"package1", {}, 8, {}, {}, {1}}};
  machine.gpus.resize(4);
  for (int gpu = 0; gpu < 4; ++gpu) {
    machine.gpus[static_cast<std::size_t>(gpu)].name = "gpu" + std::to_string(gpu);
    machine.links.push_back({{DeviceKind::gpu, gpu},
                             {DeviceKind::package, gpu / 2},
                             LinkKind::pcie,
                             gigabytes_per_second(16),
                             microseconds(1)});
  }
  const auto nvlink = [&](int a, int b) {
    machine.links.push_back({{DeviceKind::gpu, a},
                             {DeviceKind::gpu, b},
                             LinkKind::nvlink,
                             gigabytes_per_second(40),
                             microseconds(1)});
  };
  nvlink(0, 1);
  nvlink(2, 3);
  machine.links.push_back({{DeviceKind::package, 0},
                           {DeviceKind::package, 1},
                           LinkKind::socket_bus,
                           gigabytes_per_second(32),
                           microseconds(1)});
  machine.nics = {{"nic0", {}, {}, 0, -1, NicKind::infiniband, {{1, true, gigabytes_per_second(10)}}}};
  machine.links.push_back({{DeviceKind::nic, 0},
                           {DeviceKind::package, 0},
                           LinkKind::pcie,
                           gigabytes_per_second(16),
                           microseconds(1)});
  return machine;
}

Cluster hosts_like(Machine machine, int hosts) {
  Cluster cluster;
  cluster.groups = {{std::move(machine), hosts}};
  return cluster;
}

constexpr Bytes kPayload{1'000'000'000};

TEST(Bound, InOneHostIsTheWorstOfGpuAndSocket) {
  const Bound bound = allreduce_bound(hosts_like(two_sockets(), 1), kPayload);
  // GPUs: 2·3/4 GB over 56 GB/s; sockets: 1 GB over 32 GB/s, of the socket bus and of two PCIe links.
  EXPECT_DOUBLE_EQ(bound.time.value, 1.0 / 32);
  EXPECT_EQ(bound.cut, "2 GPUs of package0 reach the others only over 2 x PCIe of 16.0 GB/s: 32.0 GB/s");
}

TEST(Bound, BetweenHostsIsTheNics) {
  const Bound bound = allreduce_bound(hosts_like(two_sockets(), 64), kPayload);
  EXPECT_DOUBLE_EQ(bound.time.value, 2 * 63.0 / 64 / 10);
  EXPECT_EQ(bound.cut, "4 GPUs of a host share 1 x InfiniBand of 10.0 GB/s: 10.0 GB/s");
}

TEST(Bound, OfOneRankOrUnknownLinksIsUnknown) {
  Machine machine = two_sockets();
  for (Link& link : machine.links) link.bandwidth = {};
  EXPECT_EQ(allreduce_bound(hosts_like(machine, 1), kPayload).time.value, 0);
  Machine cpu_only;
  cpu_only.packages.resize(1);
  EXPECT_EQ(allreduce_bound(hosts_like(cpu_only, 1), kPayload).time.value, 0);
}

/// GPUs may have more links than those that are listed: only what leaves the host is a limit then.
TEST(Bound, OfGpusWithLinksThatNobodyKnowsIsTheNics) {
  Machine machine = two_sockets();
  machine.gpu_links_known = false;
  const Bound alone = allreduce_bound(hosts_like(machine, 1), kPayload);
  EXPECT_EQ(alone.time.value, 0);
  EXPECT_EQ(alone.cut, "two-sockets: which NVLinks or xGMI links its GPUs have");
  const Cluster two = hosts_like(machine, 2);
  EXPECT_EQ(allreduce_bound(two, kPayload).time.value, network_bound(two, kPayload).time.value);
  EXPECT_GT(network_bound(two, kPayload).time.value, 0);
}

TEST(Bound, OfPartsThatAreKnownHoldsWithoutTheOthers) {
  // gpu3 is joined by links of unknown speed; 56 GB/s still limit what leaves gpu0.
  Machine machine = two_sockets();
  machine.links[3].bandwidth = machine.links[5].bandwidth = machine.links[6].bandwidth = {};
  const Bound bound = allreduce_bound(hosts_like(machine, 1), kPayload);
  EXPECT_DOUBLE_EQ(bound.time.value, 1.0 / 32) << "both GPUs of package0 leave it over 2 x 16 GB/s of PCIe";
  EXPECT_EQ(bound.cut, "2 GPUs of package0 reach the others only over 2 x PCIe of 16.0 GB/s: 32.0 GB/s");
}

TEST(Bound, IgnoresPortsThatAreDown) {
  Machine machine = two_sockets();
  machine.nics.front().ports.push_back({2, false, gigabytes_per_second(10)});
  EXPECT_DOUBLE_EQ(allreduce_bound(hosts_like(machine, 2), kPayload).time.value, 1.0 / 10);
}

TEST(Bound, SeesANicsNarrowPcieLink) {
  Machine machine = two_sockets();
  machine.links.back().bandwidth = gigabytes_per_second(4);
  EXPECT_DOUBLE_EQ(allreduce_bound(hosts_like(machine, 2), kPayload).time.value, 1.0 / 4);
}

/// PCIe in front of such a port limits as well, but the port may carry less: that would be no expectation.
TEST(Bound, BetweenHostsWhosePortsAreUnknownIsUnknown) {
  Machine machine = two_sockets();
  machine.nics.front().ports.front().bandwidth = {};
  Cluster cluster = hosts_like(machine, 4);
  const auto unknown = [&] {
    const Bound bound = network_bound(cluster, kPayload);
    return bound.time.value == 0 ? bound.cut : "known";
  };
  EXPECT_EQ(unknown(), "two-sockets: the speed of nic0");
  cluster.fabric.hosts_per_leaf = 2;
  cluster.fabric.leaf_uplink = gigabytes_per_second(12);
  EXPECT_EQ(unknown(), "two-sockets: the speed of nic0") << "hosts may share less than their leaf's uplinks";
}

TEST(Bound, OfTwoPortsBehindOneSlotIsTheSlots) {
  // Two ports of 200 Gb/s at PCIe gen 4 x16, which bring 31.5 GB/s together, not 50.
  Machine machine = two_sockets();
  machine.links.back().bandwidth = gigabytes_per_second(31.5);
  machine.nics[0].pci = "0000:4d:00.0";
  machine.nics[0].ports[0].bandwidth = gigabytes_per_second(25);
  machine.nics.push_back(machine.nics[0]);
  machine.nics[1].name = "nic1";
  machine.nics[1].pci = "0000:4d:00.1";
  machine.links.push_back(machine.links.back());
  machine.links.back().from.index = 1;
  const Bound bound = network_bound(hosts_like(machine, 2), kPayload);
  EXPECT_DOUBLE_EQ(bound.time.value, 1 / 31.5);
  EXPECT_EQ(bound.cut, "4 GPUs of a host share PCIe nic0 + nic1 - package0: 31.5 GB/s");
}

TEST(Bound, CountsANicOfTwoSocketsForBoth) {
  // One socket reaches it over 16 GB/s, the other over 4, and each the other socket over 32: 42 on average.
  Machine machine = two_sockets();
  machine.links.push_back({{DeviceKind::nic, 0},
                           {DeviceKind::package, 1},
                           LinkKind::pcie,
                           gigabytes_per_second(4),
                           microseconds(1)});
  machine.nics.front().ports.front().bandwidth = gigabytes_per_second(1000);
  const Bound bound = allreduce_bound(hosts_like(machine, 2), kPayload);
  EXPECT_EQ(
      bound.cut,
      "4 GPUs of a host share PCIe nic0 - package0 of 16.0 GB/s and PCIe nic0 - package1 of 4.00 GB/s: 20.0 "
      "GB/s");
  machine.links.back().bandwidth = {};
  machine.links[machine.links.size() - 2].bandwidth = {};
  EXPECT_EQ(allreduce_bound(hosts_like(machine, 2), kPayload).cut,
            "2 GPUs of package0 reach the others only over 2 x PCIe of 16.0 GB/s: 32.0 GB/s")
      << "links of unknown speed limit nothing";
}

TEST(Bound, SeesAnOversubscribedLeafSwitch) {
  Cluster cluster = hosts_like(two_sockets(), 16);
  cluster.fabric.hosts_per_leaf = 4;
  cluster.fabric.leaf_uplink = gigabytes_per_second(5);
  const Bound bound = allreduce_bound(cluster, kPayload);
  EXPECT_DOUBLE_EQ(bound.time.value, 2 * 3.0 / 4 / 5);
  EXPECT_EQ(bound.cut, "4 hosts of a leaf switch share its uplinks: 5.00 GB/s");
}

TEST(Bound, SeesAnOversubscribedPod) {
  Cluster cluster = hosts_like(two_sockets(), 16);
  cluster.fabric.hosts_per_leaf = 4;
  cluster.fabric.leaf_uplink = gigabytes_per_second(100);
  cluster.fabric.pods = {{8, gigabytes_per_second(5)}};
  const Bound bound = allreduce_bound(cluster, kPayload);
  EXPECT_DOUBLE_EQ(bound.time.value, 2 * 1.0 / 2 / 5);
  EXPECT_EQ(bound.cut, "8 hosts of a pod share its uplinks: 5.00 GB/s");
}

TEST(Bound, OfUnlikeHostsIsTheWorstHostOrTheAverage) {
  Machine slow = two_sockets();
  slow.name = "slow";
  slow.nics.front().ports.front().bandwidth = gigabytes_per_second(1);
  Cluster cluster = hosts_like(two_sockets(), 3);
  cluster.groups.push_back({slow, 1});
  EXPECT_DOUBLE_EQ(allreduce_bound(cluster, kPayload).time.value, 1.0);
  EXPECT_EQ(allreduce_bound(cluster, kPayload).cut,
            "4 GPUs of slow share 1 x InfiniBand of 1.00 GB/s: 1.00 GB/s");
  // One of 9 GB/s is not what limits: 2·3/4 GB leave a host on average, over (3 · 10 + 9) / 4 = 9.75 GB/s.
  cluster.groups.back().machine.nics.front().ports.front().bandwidth = gigabytes_per_second(9);
  EXPECT_DOUBLE_EQ(allreduce_bound(cluster, kPayload).time.value, 1.5 / 9.75);
  EXPECT_EQ(allreduce_bound(cluster, kPayload).cut,
            "4 GPUs of slow share 1 x InfiniBand of 9.00 GB/s: 9.00 GB/s, on average 9.75 GB/s");
}

TEST(Bound, SeesTheSharedUplinkOfAPcieSwitch) {
  // Four GPUs behind one switch with one uplink of 16 GB/s, four behind another, both at one package.
  Machine machine;
  machine.name = "switched";
  machine.packages = {{"package0", {}, 8, {}, {}, {0}}};
  machine.switches = {{"switch0", {}}, {"switch1", {}}};
  const auto pcie = [&](DeviceId from, DeviceId to) {
    machine.links.push_back({from, to, LinkKind::pcie, gigabytes_per_second(16), microseconds(1)});
  };
  for (int s = 0; s < 2; ++s) pcie({DeviceKind::pci_switch, s}, {DeviceKind::package, 0});
  for (int gpu = 0; gpu < 8; ++gpu) {
    machine.gpus.push_back({});
    machine.gpus.back().name = "gpu" + std::to_string(gpu);
    pcie({DeviceKind::gpu, gpu}, {DeviceKind::pci_switch, gpu / 4});
  }
  // A GPU alone: 2·7/8 GB over 16 GB/s; a switch: 1 GB over 16 GB/s.
  EXPECT_DOUBLE_EQ(allreduce_bound(hosts_like(machine, 1), kPayload).time.value, 1.75 / 16);
  machine.links[0].bandwidth = machine.links[1].bandwidth = gigabytes_per_second(4);
  const Bound bound = allreduce_bound(hosts_like(machine, 1), kPayload);
  EXPECT_DOUBLE_EQ(bound.time.value, 1.0 / 4);
  EXPECT_EQ(bound.cut, "4 GPUs behind switch0 reach the others only over PCIe switch0 - package0: 4.00 GB/s");
}

TEST(Bound, SeesIslandsOfNvlink) {
  // All on one package, so that only the NVLinks tell gpu0 and gpu1 from gpu2 and gpu3.
  Machine machine = two_sockets();
  for (int gpu = 0; gpu < 4; ++gpu) {
    Link& link = machine.links[static_cast<std::size_t>(gpu)];
    link.to = {DeviceKind::package, 0};
    link.bandwidth = gigabytes_per_second(3);
  }
  const Bound bound = allreduce_bound(hosts_like(machine, 1), kPayload);
  EXPECT_DOUBLE_EQ(bound.time.value, 1.0 / 6);
  EXPECT_EQ(
      bound.cut,
      "2 GPUs joined to each other (gpu0, gpu1) reach the others only over 2 x PCIe of 3.00 GB/s: 6.00 GB/s");
}

/// The bound by every way to part up to eight ranks of a host, each part by its least cut.
class EveryPartition {
 public:
  explicit EveryPartition(const Machine& machine) : ranks_(machine.ranks()) {
    for (unsigned part = 1; part + 1 < (1u << ranks_); ++part) {
      std::vector<bool> inside;
      for (int rank = 0; rank < ranks_; ++rank) inside.push_back(((part >> rank) & 1u) != 0);
      joined_[part] = min_cut(machine, inside, false).bandwidth.value;
    }
    part_the_rest((1u << ranks_) - 1, 0, 0, 1e300);
  }
  double seconds() const { return worst_; }

 private:
  /// With the lowest rank that is left goes every subset of the others that are.
  void part_the_rest(unsigned left, int parts, double total, double least) {
    if (left == 0) {
      const double payload = static_cast<double>(kPayload.value);
      if (parts > 1) worst_ = std::max({worst_, 2 * (parts - 1) * payload / total, payload / least});
      return;
    }
    const unsigned lowest = left & (~left + 1);
    const unsigned others = left ^ lowest;
    for (unsigned with = others;; with = (with - 1) & others) {
      const unsigned part = lowest | with;
      if (joined_.contains(part))
        part_the_rest(left ^ part, parts + 1, total + joined_[part], std::min(least, joined_[part]));
      if (with == 0) break;
    }
  }

  int ranks_;
  std::map<unsigned, double> joined_;
  double worst_ = 0;
};

TEST(Bound, IsThatOfTheWorstOfAllPartitionsOnThePresets) {
  for (const std::string_view name : preset_names()) {
    const Cluster cluster = preset(name, 1);
    if (cluster.ranks() < 2) continue;
    const double named = allreduce_bound(cluster, kPayload).time.value;
    EXPECT_NEAR(named / EveryPartition(cluster.host(0)).seconds(), 1, 1e-9) << name;
  }
}

TEST(Bound, OfTheNetworkIsItsPartAlone) {
  const Cluster cluster = preset("dgx-a100", 2);
  // 8 HDR a host; but 2·15/16 GB leave each GPU over 300 + 31.5 GB/s at best.
  EXPECT_NEAR(network_bound(cluster, kPayload).time.value, 1.0 / (8 * 24.2), 1e-12);
  EXPECT_EQ(network_bound(cluster, kPayload).cut, "8 GPUs of a host share 8 x HDR InfiniBand: 194 GB/s");
  EXPECT_NEAR(allreduce_bound(cluster, kPayload).time.value, 2 * 15.0 / 16 / 331.5, 1e-12);
  EXPECT_EQ(network_bound(preset("dgx-a100", 1), kPayload).time.value, 0);
}

TEST(Bound, UsuallyLeavesPcieOutWhereNvlinksJoinAllGpus) {
  const auto usual = [](const char* machine, int hosts) {
    return usual_bound(Collective::allreduce, preset(machine, hosts), kPayload).time.value;
  };
  EXPECT_NEAR(usual("dgx-a100", 1), 2 * 7.0 / 8 / 300, 1e-12);
  for (const char* machine : {"minsky", "ethernet"})  // two islands, and none
    EXPECT_EQ(usual(machine, 1), allreduce_bound(preset(machine, 1), kPayload).time.value) << machine;
  EXPECT_NEAR(usual("dgx-a100", 2), 2 * 15.0 / 16 / 331.5, 1e-12) << "NICs are reached over PCIe";
}

TEST(Bound, UsuallyIsOfWhatIsUsedTogetherInEachCollective) {
  const auto usual = [](Collective collective, const char* machine) {
    return usual_bound(collective, preset(machine, 1), kPayload);
  };
  for (const Collective collective :
       {Collective::reduce_scatter, Collective::allgather, Collective::alltoall}) {
    EXPECT_NEAR(usual(collective, "dgx-h100").time.value, 7.0 / 8 / 450, 1e-12);
    EXPECT_EQ(usual(collective, "dgx-h100").cut.find("PCIe"), std::string::npos);
    EXPECT_EQ(usual(collective, "minsky").time.value,
              collective_bound(collective, preset("minsky", 1), kPayload).time.value);
  }
  // A DGX-1 joins each GPU with four others: a ring takes these NVLinks alone, and an alltoall sends to the
  // three others over PCIe at the same time.
  EXPECT_NEAR(usual(Collective::allgather, "dgx1-v100").time.value, 7.0 / 8 / 150, 1e-12);
  EXPECT_EQ(usual(Collective::alltoall, "dgx1-v100").time.value,
            collective_bound(Collective::alltoall, preset("dgx1-v100", 1), kPayload).time.value);
}

TEST(BusBandwidth, IsThatOfNcclTests) {
  EXPECT_DOUBLE_EQ(bus_bandwidth(kPayload, 4, {0.1}).gigabytes_per_second(), 15);
  EXPECT_FALSE(bus_bandwidth(kPayload, 4, {0}).known());
}

TEST(Bound, OfBlocksIsWhatMustEnterOrLeaveAPart) {
  // Of eight ranks a host has four, behind a NIC of 10 GB/s; each GPU has 56 GB/s around it.
  const Cluster hosts = hosts_like(two_sockets(), 2);
  for (const Collective collective : {Collective::reduce_scatter, Collective::allgather})
    EXPECT_DOUBLE_EQ(collective_bound(collective, hosts, kPayload).time.value, 0.5 / 10);
  EXPECT_DOUBLE_EQ(collective_bound(Collective::alltoall, hosts, kPayload).time.value, 4 * 0.5 / 10);
  EXPECT_EQ(collective_bound(Collective::alltoall, hosts, kPayload).cut,
            allreduce_bound(hosts, kPayload).cut);
  // Of three hosts each lacks, or has to give away, the blocks of the two others.
  const Cluster three = hosts_like(two_sockets(), 3);
  for (const Collective collective : {Collective::reduce_scatter, Collective::allgather})
    EXPECT_DOUBLE_EQ(collective_bound(collective, three, kPayload).time.value, 8.0 / 12 / 10);
  EXPECT_DOUBLE_EQ(collective_bound(Collective::alltoall, three, kPayload).time.value, 4 * 8.0 / 12 / 10);
  // In one host a socket's two GPUs have 32 GB/s to the others, a GPU 16 + 40.
  const Cluster host = hosts_like(two_sockets(), 1);
  EXPECT_DOUBLE_EQ(collective_bound(Collective::alltoall, host, kPayload).time.value, 2 * 0.5 / 32);
  EXPECT_DOUBLE_EQ(collective_bound(Collective::allgather, host, kPayload).time.value, 0.5 / 32);
  EXPECT_EQ(collective_bound(Collective::allgather, hosts_like(two_sockets(), 1), {}).time.value, 0);
  EXPECT_EQ(collective_bound(Collective::allreduce, hosts, kPayload).time.value,
            allreduce_bound(hosts, kPayload).time.value);
}

}  // namespace
}  // namespace polyring

#include "collectives/bound.hpp"

#include <gtest/gtest.h>

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
  // GPUs: 2·3/4 GB over 56 GB/s; sockets: 1 GB over 32 GB/s.
  EXPECT_DOUBLE_EQ(bound.time.value, 1.0 / 32);
  EXPECT_EQ(bound.cut, "2 sockets, each joined by 32.0 GB/s");
}

TEST(Bound, BetweenHostsIsTheNics) {
  const Bound bound = allreduce_bound(hosts_like(two_sockets(), 64), kPayload);
  EXPECT_DOUBLE_EQ(bound.time.value, 2 * 63.0 / 64 / 10);
  EXPECT_EQ(bound.cut, "64 hosts, each with NICs of 10.0 GB/s");
}

TEST(Bound, OfOneRankOrUnknownLinksIsUnknown) {
  Machine machine = two_sockets();
  for (Link& link : machine.links) link.bandwidth = {};
  EXPECT_EQ(allreduce_bound(hosts_like(machine, 1), kPayload).time.value, 0);
  Machine cpu_only;
  cpu_only.packages.resize(1);
  EXPECT_EQ(allreduce_bound(hosts_like(cpu_only, 1), kPayload).time.value, 0);
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
  EXPECT_EQ(bound.cut, "2 hosts, each with NICs of 20.0 GB/s");
  machine.links.back().bandwidth = {};
  machine.links[machine.links.size() - 2].bandwidth = {};
  EXPECT_EQ(allreduce_bound(hosts_like(machine, 2), kPayload).cut, "8 GPUs, each joined by 56.0 GB/s")
      << "links of unknown speed limit nothing";
}

TEST(Bound, SeesAnOversubscribedLeafSwitch) {
  Cluster cluster = hosts_like(two_sockets(), 16);
  cluster.fabric.hosts_per_leaf = 4;
  cluster.fabric.leaf_uplink = gigabytes_per_second(5);
  const Bound bound = allreduce_bound(cluster, kPayload);
  EXPECT_DOUBLE_EQ(bound.time.value, 2 * 3.0 / 4 / 5);
  EXPECT_EQ(bound.cut, "4 leaf switches, each with uplinks of 5.00 GB/s");
}

TEST(Bound, OfUnlikeHostsIsTheWorstHostOrTheAverage) {
  Machine slow = two_sockets();
  slow.nics.front().ports.front().bandwidth = gigabytes_per_second(1);
  Cluster cluster = hosts_like(two_sockets(), 3);
  cluster.groups.push_back({slow, 1});
  EXPECT_DOUBLE_EQ(allreduce_bound(cluster, kPayload).time.value, 1.0);
}

}  // namespace
}  // namespace polyring

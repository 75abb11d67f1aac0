// The rings of known machines, and how evenly they use links and NICs.
#include "collectives/schedule/rings/host_rings.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>

#include "topology/path.hpp"
#include "topology/presets.hpp"
#include "topology/rank_nics.hpp"
#include "topology/resize.hpp"

namespace polyring {
namespace {

Machine machine_of(std::string_view name) { return preset(name, 1).host(0); }

Path path_of(const Machine& machine, int from, int to) {
  return *find_path(machine, machine.rank_device(from), machine.rank_device(to));
}

/// How many lanes each direction of each link carries.
std::map<std::pair<int, bool>, int> lanes_on_links(const Machine& machine, const HostRings& rings) {
  std::map<std::pair<int, bool>, int> lanes;
  for (const std::vector<int>& order : rings.orders) {
    for (std::size_t i = 0; i < order.size(); ++i) {
      for (const Hop hop : path_of(machine, order[i], order[(i + 1) % order.size()]).hops)
        ++lanes[{hop.link, hop.forward}];
    }
  }
  return lanes;
}

/// What all rings carry together where each lane has as much: as much as the fullest link leaves it.
double bandwidth_of(const Machine& machine, const HostRings& rings) {
  double lane = std::numeric_limits<double>::infinity();
  for (const auto& [direction, number] : lanes_on_links(machine, rings))
    lane = std::min(lane, machine.links[static_cast<std::size_t>(direction.first)].bandwidth.value / number);
  return lane * static_cast<double>(rings.orders.size());
}

/// GPUs that are joined each to each by NVLinks of this bandwidth, GB/s, and to one package.
Machine joined(int gpus, double bandwidth) {
  Machine machine;
  machine.name = "joined";
  machine.packages.resize(1);
  for (int gpu = 0; gpu < gpus; ++gpu) {
    machine.gpus.push_back({});
    const auto join = [&](DeviceId to, LinkKind kind, double width) {
      machine.links.push_back({{DeviceKind::gpu, gpu}, to, kind, gigabytes_per_second(width), {}});
    };
    for (int other = 0; other < gpu; ++other) join({DeviceKind::gpu, other}, LinkKind::nvlink, bandwidth);
    join({DeviceKind::package, 0}, LinkKind::pcie, 32);
  }
  return machine;
}

int lanes_on_bus(const Machine& machine, const HostRings& rings) {
  int lanes = 0;
  for (const auto& [direction, number] : lanes_on_links(machine, rings)) {
    if (machine.links[static_cast<std::size_t>(direction.first)].kind == LinkKind::socket_bus)
      lanes += number;
  }
  return lanes;
}

TEST(HostRings, OfACubeMeshFillEveryNvlink) {
  // A DGX-1 with P100 has 4 NVLinks a GPU and so at most 4 directed rings, with V100 6. NCCL finds as many: 4
  // and 6, or 12 of half the width.
  for (const auto& [name, lanes, width] :
       {std::tuple{"dgx1-p100", 4u, 20e9}, {"big-basin", 4u, 20e9}, {"dgx1-v100", 6u, 25e9}}) {
    const Machine machine = machine_of(name);
    const HostRings rings = host_rings(machine);
    EXPECT_EQ(rings.way, RingWay::nvlink) << name;
    EXPECT_EQ(rings.orders.size(), lanes) << name;
    EXPECT_FALSE(rings.follow_ranks()) << name;
    const auto used = lanes_on_links(machine, rings);
    for (int link = 0; link < static_cast<int>(machine.links.size()); ++link) {
      const Link& of = machine.links[static_cast<std::size_t>(link)];
      for (const bool forward : {false, true}) {
        const auto at = used.find({link, forward});
        const double taken = at == used.end() ? 0 : at->second * width;
        EXPECT_EQ(taken, of.kind == LinkKind::nvlink ? of.bandwidth.value : 0)
            << name << ' ' << machine.device_name(of.from) << '-' << machine.device_name(of.to);
      }
    }
  }
}

TEST(HostRings, BetweenHostsUseTheNicsEvenly) {
  for (const std::string_view name : preset_names()) {
    const Machine machine = machine_of(name);
    if (machine.ranks() < 2) continue;
    const std::vector<std::vector<int>> nics = rank_nics(machine);
    const auto orders = orders_between_hosts(host_rings(machine), machine);
    std::map<int, std::size_t> in;
    std::map<int, std::size_t> out;
    for (const std::vector<int>& order : orders) {
      for (const int nic : nics[static_cast<std::size_t>(order.front())]) ++in[nic];
      for (const int nic : nics[static_cast<std::size_t>(order.back())]) ++out[nic];
    }
    // The 7 rings of a MI300X leave one of 8 NICs out; a GPU's lane is striped over all of its own.
    const std::size_t lanes_by_nic = orders.size() * nics.front().size();
    const std::size_t used = std::min(machine.nics.size(), lanes_by_nic);
    EXPECT_EQ(in.size(), used) << name;
    EXPECT_EQ(out.size(), used) << name;
    for (const auto& lanes : {in, out}) {
      for (const auto& [nic, number] : lanes) EXPECT_EQ(number, lanes_by_nic / used) << name;
    }
  }
}

TEST(HostRings, BetweenHostsAreTurnedAndNothingElse) {
  for (const std::string_view name : preset_names()) {
    const Machine machine = machine_of(name);
    const HostRings rings = host_rings(machine);
    if (rings.orders.empty()) continue;  // one GPU
    const auto orders = orders_between_hosts(rings, machine);
    ASSERT_EQ(orders.size() % rings.orders.size(), 0u) << name;
    for (std::size_t lane = 0; lane < orders.size(); ++lane) {
      std::vector<int> turned = orders[lane];
      const std::vector<int>& ring = rings.orders[lane % rings.orders.size()];
      std::rotate(turned.begin(), std::find(turned.begin(), turned.end(), ring.front()), turned.end());
      EXPECT_EQ(turned, ring) << name;
    }
  }
}

TEST(HostRings, CrossTheBusTwiceWhereNvlinkDoesNot) {
  for (const char* name : {"minsky", "ac922", "summit", "ethernet"}) {
    const Machine machine = machine_of(name);
    const HostRings rings = host_rings(machine);
    EXPECT_EQ(rings.way, RingWay::mixed) << name;
    ASSERT_EQ(rings.orders.size(), 2u) << name;
    EXPECT_EQ(lanes_on_bus(machine, rings), 4) << name << ": twice each ring";
    EXPECT_TRUE(rings.follow_ranks()) << name << ": the ranks' order is as good";
    for (const std::vector<int>& order : orders_between_hosts(rings, machine)) {
      const Path last = path_of(machine, order.back(), order.front());
      EXPECT_EQ(last.type, PathType::sys) << name << ": going on to other hosts spares the crossing";
    }
  }
}

TEST(HostRings, TakeAnotherOrderWhereTheRanksOwnCrossesMore) {
  // Ranks that alternate between the sockets, as on boards that number their slots so.
  Machine machine = machine_of("minsky");
  for (Link& link : machine.links) {
    for (DeviceId* end : {&link.from, &link.to}) {
      if (end->kind == DeviceKind::gpu && (end->index == 1 || end->index == 2)) end->index = 3 - end->index;
    }
  }
  const HostRings rings = host_rings(machine);
  EXPECT_EQ(lanes_on_bus(machine, rings), 4);
  EXPECT_FALSE(rings.follow_ranks());
  EXPECT_EQ(host_part_size(machine), 0) << "no runs of ranks";
}

TEST(HostRings, OfNvswitchesAreAnyOrderTurnedFromNicToNic) {
  const Machine machine = machine_of("dgx-a100");
  const HostRings rings = host_rings(machine);
  EXPECT_EQ(rings.way, RingWay::switched);
  EXPECT_TRUE(rings.follow_ranks());
  EXPECT_EQ(orders_between_hosts(rings, machine).size(), 8u) << "a lane for each NIC";
}

TEST(HostRings, OfPartsOfAMeshFallBackWhereNoRingIsLeft) {
  const Machine whole = machine_of("dgx1-p100");
  // GPU 4 alone hangs on one link, to GPU 0: no ring of NVLinks passes it.
  const Machine five = with_gpus(whole, 5);
  EXPECT_EQ(host_rings(five).way, RingWay::mixed);
  EXPECT_EQ(host_rings(with_gpus(whole, 4)).way, RingWay::nvlink);
  EXPECT_EQ(host_rings(with_gpus(whole, 4)).orders.size(), 6u) << "of half a link";
  EXPECT_EQ(host_rings(with_gpus(whole, 2)).orders.size(), 1u);
  EXPECT_TRUE(host_rings(with_gpus(whole, 1)).orders.empty());
}

TEST(HostRings, AreTheWidestOnesAndThenTheFewest) {
  // Three GPUs, each two joined by a link.
  Machine machine = with_gpus(machine_of("summit"), 3);
  for (Link& link : machine.links) link.bandwidth = gigabytes_per_second(30);
  EXPECT_EQ(host_rings(machine).orders.size(), 2u);
  for (Link& link : machine.links) link.bandwidth = gigabytes_per_second(60);
  EXPECT_EQ(host_rings(machine).orders.size(), 2u) << "of 60, not four of 30";
  const auto between_gpus = std::find_if(machine.links.begin(), machine.links.end(), [](const Link& link) {
    return link.from.kind == DeviceKind::gpu && link.to.kind == DeviceKind::gpu;
  });
  between_gpus->bandwidth = gigabytes_per_second(30);
  EXPECT_EQ(host_rings(machine).orders.size(), 2u);
  EXPECT_EQ(bandwidth_of(machine, host_rings(machine)), 60e9) << "as wide as the narrowest";
  between_gpus->bandwidth = {};
  EXPECT_EQ(host_rings(machine).orders.size(), 2u) << "of unknown width";
}

TEST(HostRings, OfPartsOfALinkFillWhatWholeOnesCannot) {
  // Four GPUs have six directed rings. Two fit side by side; every link is in two each way. HGX A100
  // with four GPUs: 4 NVLinks of 25 GB/s between any two.
  Machine four = joined(4, 100);
  EXPECT_EQ(host_rings(four).orders.size(), 6u);
  EXPECT_DOUBLE_EQ(bandwidth_of(four, host_rings(four)), 300e9) << "all that a GPU's links carry";
  const Machine five = joined(5, 100);
  EXPECT_EQ(host_rings(five).orders.size(), 4u) << "of whole links";
  EXPECT_DOUBLE_EQ(bandwidth_of(five, host_rings(five)), 400e9);
  const Machine six = joined(6, 100);
  EXPECT_EQ(host_rings(six).orders.size(), 10u);
  EXPECT_DOUBLE_EQ(bandwidth_of(six, host_rings(six)), 500e9);
  // One of 4 NVLinks between two GPUs is lost: 8 lanes as wide as a third of the whole links. 11 of one
  // NVLink each, all that these GPUs have left, do not come out even: two of the rings would come 1.5 times.
  const auto lost = std::ranges::find(four.links, LinkKind::nvlink, &Link::kind);
  lost->bandwidth = gigabytes_per_second(75);
  EXPECT_EQ(host_rings(four).orders.size(), 8u);
  EXPECT_NEAR(bandwidth_of(four, host_rings(four)), 800e9 / 3, 1);
}

TEST(HostPartSize, IsOfNvlinkIslandsOrSockets) {
  const auto part = [](std::string_view name) { return host_part_size(machine_of(name)); };
  EXPECT_EQ(part("minsky"), 2);
  EXPECT_EQ(part("ac922"), 2);
  EXPECT_EQ(part("summit"), 3);
  EXPECT_EQ(part("ethernet"), 2);
  EXPECT_EQ(part("dgx1-p100"), 4) << "one mesh on two sockets";
  EXPECT_EQ(part("dgx-a100"), 4);
  EXPECT_EQ(host_part_size(with_gpus(machine_of("minsky"), 3)), 0) << "parts that are not equal";
}

}  // namespace
}  // namespace polyring

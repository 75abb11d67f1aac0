#include "topology/route.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "tests/topology/four_nics.hpp"
#include "tests/topology/route_names.hpp"
#include "tests/topology/support.hpp"
#include "topology/presets.hpp"
#include "topology/resize.hpp"

namespace polyring {
namespace {

using ::testing::ElementsAre;
using testing::four_nics_for_each;
using ::testing::HasSubstr;
using testing::route_names;
using testing::usage_sentence;

TEST(Router, TakesNvlinkInsideASocketAndTheBusAcross) {
  const Cluster cluster = preset("minsky", 1);
  const Router router(cluster);
  EXPECT_THAT(route_names(router, 0, 1), ElementsAre("host 0: gpu0 -> gpu1 (nvlink)"));
  EXPECT_THAT(route_names(router, 1, 0), ElementsAre("host 0: gpu1 -> gpu0 (nvlink)"));
  EXPECT_THAT(route_names(router, 1, 2),
              ElementsAre("host 0: gpu1 -> package0 (nvlink)", "host 0: package0 -> package1 (socket-bus)",
                          "host 0: package1 -> gpu2 (nvlink)"));
  EXPECT_THAT(route_names(router, 2, 2), ElementsAre());
}

TEST(Router, LeavesAHostByTheNearestNic) {
  const Cluster cluster = preset("minsky", 3);
  const Router router(cluster);
  EXPECT_THAT(route_names(router, 0, 9),
              ElementsAre("host 0: gpu0 -> package0 (nvlink)", "host 0: package0 -> mlx5_0 (pcie)",
                          "host 0: mlx5_0 out", "host 2: mlx5_0 in", "host 2: mlx5_0 -> package0 (pcie)",
                          "host 2: package0 -> gpu1 (nvlink)"));
  EXPECT_THAT(route_names(router, 2, 11), ::testing::Contains("host 0: mlx5_1 out"));
}

TEST(Router, LetsRanksTakeTurnsOnNicsThatAreEquallyNear) {
  const Cluster cluster = preset("summit", 2);
  const Router router(cluster);
  EXPECT_THAT(route_names(router, 0, 6), ::testing::Contains("host 0: mlx5_0 out"));
  EXPECT_THAT(route_names(router, 1, 7), ::testing::Contains("host 0: mlx5_1 out"));
}

TEST(Router, StripesOverAllNicsOfARank) {
  const Cluster cluster = four_nics_for_each(preset("dgx-h100", 2));
  const Router router(cluster);
  std::vector<Crossing> route;
  router.route(1, 8, route);
  std::map<std::string, double> shares;
  for (const Crossing& crossing : route) shares[router.name(crossing.resource)] += crossing.share;
  EXPECT_EQ(shares.size(), route.size()) << "each resource once";
  EXPECT_EQ(shares.at("host 0: gpu1 -> switch0 (pcie)"), 1);
  EXPECT_EQ(shares.at("host 1: switch0 -> gpu0 (pcie)"), 1);
  int out = 0;
  for (const auto& [name, share] : shares) {
    if (!name.ends_with(" out")) continue;
    ++out;
    EXPECT_EQ(share, 0.25) << name;
  }
  EXPECT_EQ(out, 4);
}

TEST(Router, SharesTheLinkOfADevicesFunctions) {
  const Cluster cluster = cluster_of(testing::two_port_machine(), 2);
  const Router router(cluster);
  EXPECT_THAT(route_names(router, 0, 2),
              ElementsAre("host 0: gpu0 -> package0 (pcie)", "host 0: package0 -> mlx5_0 + mlx5_1 (pcie)",
                          "host 0: mlx5_0 out", "host 1: mlx5_0 in",
                          "host 1: mlx5_0 + mlx5_1 -> package0 (pcie)", "host 1: package0 -> gpu0 (pcie)"));
  EXPECT_EQ(router.of_link(1, 2, true), router.of_link(1, 3, true));
  EXPECT_NE(router.of_link(1, 2, true), router.of_link(1, 2, false));
  EXPECT_NE(router.of_link(1, 2, true), router.of_link(0, 2, true));
}

TEST(Router, TakesOnceWhatOneRankSendsByTwoFunctions) {
  Cluster cluster = cluster_of(with_gpus(testing::two_port_machine(), 1), 2);
  const Router router(cluster);
  std::vector<Crossing> route;
  router.route(0, 1, route);
  const auto shared = std::ranges::find(route, router.of_link(0, 2, false), &Crossing::resource);
  ASSERT_NE(shared, route.end());
  EXPECT_EQ(shared->share, 1) << "half by each port";
  EXPECT_EQ(std::ranges::count(route, shared->resource, &Crossing::resource), 1);
}

TEST(Router, PassesOverSlowEthernetPorts) {
  Cluster cluster = preset("minsky", 2);
  Machine& machine = cluster.groups.front().machine;
  for (const int package : {0, 1}) {
    Nic ethernet;
    ethernet.name = "eth" + std::to_string(package);
    ethernet.ports = {{1, true, gigabits_per_second(1)}};
    machine.nics.insert(machine.nics.begin(), ethernet);
    for (Link& link : machine.links) {
      for (DeviceId* end : {&link.from, &link.to}) end->index += end->kind == DeviceKind::nic ? 1 : 0;
    }
    machine.links.push_back(
        {{DeviceKind::nic, 0}, {DeviceKind::package, package}, LinkKind::pcie, gigabytes_per_second(1), {}});
  }
  for (int rank = 0; rank < 4; ++rank) {
    const Router router(cluster);
    EXPECT_THAT(route_names(router, rank, 4 + rank), ::testing::Contains(HasSubstr("mlx5_"))) << rank;
  }
  for (Nic& nic : machine.nics) {
    nic.kind = NicKind::ethernet;
    if (nic.name == "mlx5_0") nic.ports.front().up = false;
  }
  const Router router(cluster);
  EXPECT_THAT(route_names(router, 2, 6), ::testing::Contains("host 0: mlx5_1 out"))
      << "the widest of the nearest";
  EXPECT_THAT(route_names(router, 0, 4), ::testing::Contains("host 0: mlx5_1 out"))
      << "eth0 is nearer, and there for management";
}

TEST(Router, CrossesTheUplinksOfAnotherLeafOnly) {
  Cluster cluster = preset("minsky", 4);
  cluster.fabric.hosts_per_leaf = 2;
  cluster.fabric.leaf_uplink = gigabytes_per_second(5);
  cluster.fabric.latency = microseconds(1);
  cluster.fabric.spine_latency = microseconds(10);
  const Router router(cluster);
  EXPECT_THAT(route_names(router, 0, 4), ::testing::Not(::testing::Contains(HasSubstr("leaf"))));
  const auto far = route_names(router, 0, 8);
  EXPECT_THAT(far, ::testing::Contains("leaf switch 0: uplinks up"));
  EXPECT_THAT(far, ::testing::Contains("leaf switch 1: uplinks down"));
  std::vector<Crossing> route;
  const Seconds near_latency = router.route(0, 4, route);
  const Seconds far_latency = router.route(0, 8, route);
  EXPECT_NEAR((far_latency - near_latency).value, 10e-6, 1e-12);
  EXPECT_EQ(router.bandwidth(route.back().resource).known(), true);
}

TEST(Router, CrossesThePodsThatItLeaves) {
  Cluster cluster = preset("minsky", 10);
  cluster.fabric.hosts_per_leaf = 2;
  cluster.fabric.leaf_uplink = gigabytes_per_second(5);
  cluster.fabric.pods = {{4, gigabytes_per_second(3)}, {8, gigabytes_per_second(2)}};
  const Router router(cluster);
  const auto pods = [&](int from_host, int to_host) {
    std::vector<std::string> names = route_names(router, 4 * from_host, 4 * to_host);
    std::erase_if(names, [](const std::string& name) { return name.starts_with("host"); });
    return names;
  };
  EXPECT_THAT(pods(0, 2), ElementsAre("leaf switch 0: uplinks up", "leaf switch 1: uplinks down"));
  EXPECT_THAT(pods(1, 7), ElementsAre("leaf switch 0: uplinks up", "leaf switch 3: uplinks down",
                                      "pod of 4 hosts 0: uplinks up", "pod of 4 hosts 1: uplinks down"));
  EXPECT_THAT(pods(9, 0), ElementsAre("leaf switch 4: uplinks up", "leaf switch 0: uplinks down",
                                      "pod of 4 hosts 2: uplinks up", "pod of 4 hosts 0: uplinks down",
                                      "pod of 8 hosts 1: uplinks up", "pod of 8 hosts 0: uplinks down"));
  std::vector<Crossing> route;
  router.route(36, 0, route);
  std::vector<double> uplinks;
  for (const Crossing& crossing : route)
    if (!router.name(crossing.resource).starts_with("host"))
      uplinks.push_back(router.bandwidth(crossing.resource).gigabytes_per_second());
  EXPECT_THAT(uplinks, ElementsAre(5, 5, 3, 3, 2, 2));
}

TEST(Router, KnowsTheBandwidthOfWhatItNames) {
  const Cluster cluster = preset("minsky", 2);
  const Router router(cluster);
  std::vector<Crossing> route;
  router.route(0, 1, route);
  EXPECT_DOUBLE_EQ(router.bandwidth(route.front().resource).gigabytes_per_second(), 40);
  for (ResourceId resource = 0; resource < router.resource_count(); ++resource) {
    EXPECT_FALSE(router.name(resource).empty());
  }
}

TEST(Router, OfUnlikeHostsKeepsThemApart) {
  Cluster cluster = preset("minsky", 2);
  cluster.groups.push_back({with_gpus(preset("minsky", 1).host(0), 2), 3});
  const Router router(cluster);
  EXPECT_EQ(cluster.ranks(), 14);
  EXPECT_THAT(route_names(router, 7, 13), ::testing::Contains("host 4: package0 -> gpu1 (nvlink)"));
  EXPECT_THAT(route_names(router, 8, 9), ElementsAre("host 2: gpu0 -> gpu1 (nvlink)"));
}

TEST(Router, RefusesHostsThatCannotReachEachOther) {
  Cluster cluster = preset("minsky", 2);
  for (Nic& nic : cluster.groups.front().machine.nics) nic.ports.front().up = false;
  EXPECT_THAT(usage_sentence([&] { Router{cluster}; }), HasSubstr("no network port that is up"));
  cluster.groups.front().count = 1;
  EXPECT_NO_THROW(Router{cluster});
}

TEST(Router, SaysWhyAHostIsAlone) {
  Machine machine = preset("minsky", 1).host(0);
  EXPECT_EQ(why_alone(machine), "");
  for (Nic& nic : machine.nics) nic.ports.front().up = false;
  EXPECT_EQ(why_alone(machine), "minsky has no network port that is up");
  for (Nic& nic : machine.nics) nic.ports.clear();
  EXPECT_EQ(why_alone(machine), "");
  machine.nics.clear();
  EXPECT_EQ(why_alone(machine), "of minsky no NIC is known");
}

TEST(Router, NamesAnUnknownSpeedOfWhatRoutesCrossAlone) {
  const auto link = [](Cluster& cluster, LinkKind kind) -> Link& {
    return *std::ranges::find(cluster.groups.front().machine.links, kind, &Link::kind);
  };
  Cluster dgx = preset("dgx-h100", 2);
  EXPECT_EQ(Router(dgx).unknown_speed(), "");
  link(dgx, LinkKind::socket_bus).bandwidth = {};
  EXPECT_EQ(Router(dgx).unknown_speed(), "") << "GPUs reach each other by NVSwitches, and NICs by PCIe";
  Nic ethernet;
  ethernet.name = "eth0";
  ethernet.ports = {{1, true, {}}};
  Machine& machine = dgx.groups.front().machine;
  machine.nics.push_back(ethernet);
  machine.links.push_back({{DeviceKind::nic, static_cast<int>(machine.nics.size()) - 1},
                           {DeviceKind::package, 0},
                           LinkKind::pcie,
                           {},
                           {}});
  EXPECT_EQ(Router(dgx).unknown_speed(), "") << "InfiniBand joins the hosts";
  for (Nic& nic : machine.nics) nic.ports.front().bandwidth = {};
  EXPECT_EQ(Router(dgx).unknown_speed(), "dgx-h100: the speed of mlx5_0 is unknown");
  EXPECT_EQ(Router(dgx).unknown_speed_in_hosts(), "");
  dgx.groups.front().count = 1;
  EXPECT_EQ(Router(dgx).unknown_speed(), "") << "one host needs no NIC";

  Cluster minsky = preset("minsky", 1);
  link(minsky, LinkKind::socket_bus).bandwidth = {};
  EXPECT_EQ(Router(minsky).unknown_speed(), "minsky: the speed of X-bus package0 - package1 is unknown");
  EXPECT_EQ(Router(minsky).unknown_speed_in_hosts(), Router(minsky).unknown_speed());
  EXPECT_EQ(Router(minsky).unknown_speed(0, 1), "");
  EXPECT_EQ(Router(minsky).unknown_speed(0, 2), Router(minsky).unknown_speed());

  Cluster pair = preset("minsky", 2);
  pair.groups.push_back({pair.host(0), 1});
  Machine& last = pair.groups.back().machine;
  last.name = "last";
  last.nics[0].ports[0].bandwidth = {};
  EXPECT_EQ(Router(pair).unknown_speed(0, 4), "");
  EXPECT_EQ(Router(pair).unknown_speed(0, 8), "last: the speed of mlx5_0 is unknown");
  EXPECT_EQ(Router(pair).unknown_speed(8, 0), "last: the speed of mlx5_0 is unknown");
  EXPECT_EQ(Router(pair).unknown_speed(10, 2), "") << "by the other NIC";
}

TEST(WithRanks, FillsHostsOrPartOfOne) {
  const Cluster one = preset("minsky", 1);
  EXPECT_EQ(with_ranks(one, 64).host_count(), 16);
  EXPECT_EQ(with_ranks(one, 4).host_count(), 1);
  const Cluster part = with_ranks(one, 2);
  EXPECT_EQ(part.ranks(), 2);
  EXPECT_NO_THROW(part.validate());
  EXPECT_THAT(usage_sentence([&] { with_ranks(one, 6); }), HasSubstr("6 ranks do not fill hosts of 4"));
  EXPECT_THAT(usage_sentence([&] { with_ranks(one, 0); }), HasSubstr("0 ranks"));
}

}  // namespace
}  // namespace polyring

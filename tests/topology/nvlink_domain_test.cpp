// Hosts whose GPUs hang on the same NVSwitches: how they are described, reached and resized.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/topology/route_names.hpp"
#include "tests/topology/support.hpp"
#include "topology/inventory/formats/probe_json.hpp"
#include "topology/inventory/formats/probe_text.hpp"
#include "topology/min_cut.hpp"
#include "topology/peer_access.hpp"
#include "topology/presets.hpp"
#include "topology/resize.hpp"
#include "topology/route.hpp"

namespace polyring {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::route_names;
using testing::usage_sentence;

TEST(NvlinkDomain, IsOfEighteenHostsInAGb200Nvl72) {
  const Cluster cluster = preset("gb200-nvl72", 36);
  EXPECT_EQ(cluster.hosts_per_domain(), 18);
  EXPECT_EQ(cluster.domain_count(), 2);
  EXPECT_EQ(cluster.ranks_per_domain(), 72);
  EXPECT_TRUE(cluster.domains_are_equal());
  EXPECT_TRUE(cluster.in_one_domain(0, 17));
  EXPECT_FALSE(cluster.in_one_domain(17, 18));
  EXPECT_FALSE(preset("gb200-nvl72", 20).domains_are_equal());
  EXPECT_EQ(preset("gb200-nvl72", 20).domain_count(), 2);
  EXPECT_EQ(preset("gb200-nvl72", 3).hosts_per_domain(), 3) << "a part of one";
  const Cluster dgx = preset("dgx-h100", 4);
  EXPECT_EQ(dgx.domain_count(), 4) << "each host has NVSwitches of its own";
  EXPECT_FALSE(dgx.in_one_domain(0, 1));
}

TEST(NvlinkDomain, IsCrossedByNvlinksAndLeftByNics) {
  const Cluster cluster = preset("gb200-nvl72", 36);
  const Router router(cluster);
  EXPECT_THAT(route_names(router, 1, 4 * 17 + 2),
              ElementsAre("host 0: gpu1 -> nvswitch0 (nvlink)", "host 17: nvswitch0 -> gpu2 (nvlink)"));
  EXPECT_THAT(route_names(router, 1, 4 * 18 + 2),
              ElementsAre("host 0: gpu1 -> package0 (c2c)", "host 0: package0 -> mlx5_1 (pcie)",
                          "host 0: mlx5_1 out", "host 18: mlx5_2 in", "host 18: mlx5_2 -> package1 (pcie)",
                          "host 18: package1 -> gpu2 (c2c)"));
  std::vector<Crossing> route;
  EXPECT_DOUBLE_EQ(router.route(1, 70, route).value, 0.6e-6) << "two links of 0.3 us";
}

TEST(NvlinkDomain, NeedsNoNicForAllOfItsHosts) {
  Cluster cluster = preset("gb200-nvl72", 18);
  cluster.groups.front().machine.nics.clear();
  std::erase_if(cluster.groups.front().machine.links,
                [](const Link& link) { return link.from.kind == DeviceKind::nic; });
  EXPECT_NO_THROW(Router{cluster});
  cluster.groups.front().count = 19;
  EXPECT_THAT(usage_sentence([&] { Router{cluster}; }), HasSubstr("no NIC is known"));
}

TEST(NvlinkDomain, IsReachedThroughTheNvswitchesInACut) {
  const Machine machine = preset("gb200-nvl72", 1).host(0);
  const auto gigabytes = [&](const std::vector<bool>& inside, bool several, bool domain) {
    return min_cut(machine, inside, several, domain).bandwidth.gigabytes_per_second();
  };
  const std::vector<bool> all(4, true);
  EXPECT_NEAR(gigabytes(all, false, true), 4 * 900, 1e-9);
  EXPECT_NEAR(gigabytes(all, true, true), 4 * 900 + 4 * 48.5, 1e-9);
  EXPECT_NEAR(gigabytes(all, true, false), 4 * 48.5, 1e-9);
  EXPECT_NEAR(gigabytes({true, false, false, false}, false, true), 900 + 225, 1e-9);
}

TEST(NvlinkDomain, LetsGpusReachEachOthersMemory) {
  const PeerAccess peers(preset("gb200-nvl72", 36));
  EXPECT_TRUE(peers(0, 71));
  EXPECT_TRUE(peers(71, 0));
  EXPECT_FALSE(peers(71, 72));
  EXPECT_TRUE(peers(72, 143));
  EXPECT_EQ(peers.text(), "all ranks of an NVLink domain");
}

TEST(NvlinkDomain, IsFilledEvenlyWhereThatNeedsNoMore) {
  const Cluster rack = preset("gb200-nvl72", 1);
  const auto domain = [&](int ranks) { return with_ranks(rack, ranks).fabric.hosts_per_nvlink_domain; };
  EXPECT_EQ(domain(144), 18);
  EXPECT_EQ(domain(256), 16) << "64 hosts on 4 domains";
  EXPECT_EQ(domain(80), 10) << "20 hosts on 2";
  EXPECT_EQ(domain(76), 18) << "19 hosts on no equal domains that are half full";
  EXPECT_EQ(domain(36), 18) << "one domain";
  Cluster leaves = rack;
  leaves.fabric.hosts_per_leaf = 36;
  EXPECT_EQ(with_ranks(leaves, 256).fabric.hosts_per_leaf, 32) << "two domains, as before";
}

TEST(NvlinkDomain, IsReadBackAndShown) {
  const Cluster cluster = preset("gb200-nvl72", 36);
  EXPECT_EQ(parse_probe_json(probe_json(cluster), "memory").fabric.hosts_per_nvlink_domain, 18);
  EXPECT_THAT(probe_text(cluster),
              HasSubstr("fabric: NVSwitches join 18 hosts to an NVLink domain; between"));
}

TEST(NvlinkDomain, ThatCannotBeIsRefused) {
  const auto said = [](auto change) {
    Cluster cluster = preset("gb200-nvl72", 36);
    change(cluster);
    return usage_sentence([&] { cluster.validate(); });
  };
  EXPECT_THAT(said([](Cluster& cluster) { cluster.fabric.hosts_per_nvlink_domain = -1; }),
              HasSubstr("-1 hosts in an NVLink domain; give 0 (none) or more"));
  EXPECT_THAT(said([](Cluster& cluster) { cluster.fabric.hosts_per_leaf = 16; }),
              HasSubstr("part the 18 hosts of an NVLink domain; give them whole domains"));
  EXPECT_THAT(said([](Cluster& cluster) {
                std::erase_if(cluster.groups.front().machine.links, [](const Link& link) {
                  return link.from == DeviceId{DeviceKind::gpu, 2};
                });
                cluster.groups.front().machine.links.push_back(
                    {{DeviceKind::gpu, 2}, {DeviceKind::package, 0}, LinkKind::pcie, {}, {}});
              }),
              HasSubstr("gpu2 of 'gb200-nvl72' has no NVLink to the NVSwitches of its domain; add it"));
  Cluster minsky = preset("minsky", 4);
  minsky.fabric.hosts_per_nvlink_domain = 2;
  EXPECT_THAT(usage_sentence([&] { minsky.validate(); }), HasSubstr("'minsky' has 4 GPUs and 0 NVSwitches"));
}

}  // namespace
}  // namespace polyring

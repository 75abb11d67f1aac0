// A job's hosts among those of a cluster.
#include "topology/inventory/job_hosts.hpp"

#include "tests/topology/support.hpp"
#include "topology/presets.hpp"
#include "topology/some_hosts.hpp"

namespace polyring {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::small_machine;
using testing::usage_sentence;

constexpr Bandwidth kUplink{12e9};

Fabric leaves_of(int hosts) {
  Fabric fabric;
  fabric.hosts_per_leaf = hosts;
  fabric.leaf_uplink = kUplink;
  return fabric;
}

TEST(FabricAmong, HostsUnderOneLeafNeedNoUplink) {
  Fabric fabric = leaves_of(4);
  fabric.pods = {{8, kUplink}};
  const Fabric one = fabric_among(fabric, std::vector{5, 4, 7});
  EXPECT_EQ(one.hosts_per_leaf, 0);
  EXPECT_TRUE(one.pods.empty());
}

TEST(FabricAmong, HostsOfALeafAreNeighbours) {
  const Fabric two = fabric_among(leaves_of(4), std::vector{0, 2, 9, 8});
  EXPECT_EQ(two.hosts_per_leaf, 2);
  EXPECT_EQ(two.leaf_uplink, kUplink);
  // Three and two.
  EXPECT_EQ(fabric_among(leaves_of(4), std::vector{0, 1, 2, 8, 9}).hosts_per_leaf, 3);
}

TEST(FabricAmong, HostsOfALeafThatAreApartShareItsUplink) {
  const Fabric apart = fabric_among(leaves_of(4), std::vector{0, 4, 1, 5, 8});
  EXPECT_EQ(apart.hosts_per_leaf, 1);
  EXPECT_EQ(apart.leaf_uplink.value, kUplink.value / 2);
}

TEST(FabricAmong, KeepsPodsWithMoreHostsThanALeaf) {
  Fabric fabric = leaves_of(2);
  fabric.pods = {{4, kUplink}, {8, kUplink}, {16, kUplink}};
  const Fabric some = fabric_among(fabric, std::vector{0, 1, 2, 3, 8, 9, 10, 11});
  EXPECT_EQ(some.hosts_per_leaf, 2);
  ASSERT_EQ(some.pods.size(), 1u) << "of 4 hosts; those of 8 have as many, and one of 16 holds all";
  EXPECT_EQ(some.pods.front().hosts, 4);
}

TEST(FabricAmong, DomainsArePartedWhereTheirHostsAreApartOrUneven) {
  Fabric fabric;
  fabric.hosts_per_nvlink_domain = 4;
  EXPECT_EQ(fabric_among(fabric, std::vector{0, 1, 4, 5}).hosts_per_nvlink_domain, 2);
  EXPECT_EQ(fabric_among(fabric, std::vector{0, 1, 4}).hosts_per_nvlink_domain, 0);
  EXPECT_EQ(fabric_among(fabric, std::vector{0, 4, 1, 5}).hosts_per_nvlink_domain, 0);
}

Machine named(const std::string& name, int cores = 0) {
  Machine machine = small_machine();
  machine.name = name;
  machine.packages.front().cores = cores;
  return machine;
}

/// n1 and n2 are equal, and n3 is not.
Inventory three() {
  return merged({inventory_of(named("n1")), inventory_of(named("n2")), inventory_of(named("n3", 77))});
}

std::vector<int> cores(const Cluster& cluster) {
  std::vector<int> all;
  for (int host = 0; host < cluster.host_count(); ++host)
    all.push_back(cluster.host(host).packages.front().cores);
  return all;
}

TEST(HostsOfJob, AreFoundByNameInTheOrderOfTheJob) {
  const std::vector<std::string> job{"n3", "n1"};
  EXPECT_THAT(cores(hosts_of_job(three(), job, "the file")), ElementsAre(77, 0));
  const std::vector<std::string> whole{"n2.cluster.example", "n3.cluster.example", "n1.cluster.example"};
  EXPECT_THAT(cores(hosts_of_job(three(), whole, "the file")), ElementsAre(0, 77, 0));
}

TEST(HostsOfJob, AreNotFoundByWhatSeveralShare) {
  const Inventory two = merged({inventory_of(named("n.a")), inventory_of(named("n.b", 77))});
  const Inventory addresses = merged({inventory_of(named("10.0.0.7")), inventory_of(named("node", 77))});
  const auto said = [](const Inventory& inventory, const std::string& name) {
    const std::vector<std::string> job{name};
    return usage_sentence([&] { hosts_of_job(inventory, job, "the file"); });
  };
  EXPECT_THAT(said(two, "n"), HasSubstr("has no host 'n'"));
  EXPECT_THAT(said(addresses, "10.0.0.1"), HasSubstr("has no host '10.0.0.1'"));
}

TEST(HostsOfJob, AreOnTheirLeaves) {
  Inventory inventory = three();
  inventory.cluster.fabric = leaves_of(2);
  const std::vector<std::string> neighbours{"n2", "n1"};
  EXPECT_EQ(hosts_of_job(inventory, neighbours, "the file").fabric.hosts_per_leaf, 0);
  const std::vector<std::string> apart{"n1", "n3"};
  EXPECT_EQ(hosts_of_job(inventory, apart, "the file").fabric.hosts_per_leaf, 1);
}

TEST(HostsOfJob, MayBeLikeAnEqualOnes) {
  const std::vector<std::string> job{"a", "b", "c"};
  EXPECT_EQ(hosts_of_job(inventory_of(named("n1")), job, "the file").host_count(), 3);
  EXPECT_EQ(hosts_of_job(inventory_of(cluster_of(named("n"), 8)), job, "the file").host_count(), 3);
}

TEST(HostsOfJob, AreRefusedWhereTheyAreNotThere) {
  const auto said = [](const Inventory& inventory, const std::vector<std::string>& job) {
    return usage_sentence([&] { hosts_of_job(inventory, job, "'c.json'"); });
  };
  EXPECT_THAT(said(three(), {"n1", "n4"}), HasSubstr("'c.json' has no host 'n4'; "));
  EXPECT_THAT(said(three(), {"m1"}), HasSubstr("has no host 'm1', and its hosts are not all equal; "));
  EXPECT_THAT(said(three(), {"n1", "n1.other"}),
              HasSubstr("one host for two of the job, such as 'n1.other'"));
  EXPECT_THAT(said(inventory_of(cluster_of(named("n"), 2)), {"a", "b", "c"}),
              HasSubstr("'c.json' has 2 hosts, and the job runs on 3"));
}

}  // namespace
}  // namespace polyring

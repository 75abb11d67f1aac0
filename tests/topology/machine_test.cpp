#include "topology/machine.hpp"

#include <cmath>
#include <limits>

#include "tests/topology/support.hpp"
#include "topology/cluster.hpp"

namespace polyring {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::small_machine;
using testing::usage_sentence;

std::string fault_of(const Machine& machine) {
  return usage_sentence([&] { machine.validate(); });
}

TEST(Machine, AGoodOneValidates) { EXPECT_NO_THROW(small_machine().validate()); }

TEST(Machine, NamesItsDevices) {
  Machine machine = small_machine();
  machine.nvswitches = 1;
  EXPECT_EQ(machine.device_name({DeviceKind::package, 1}), "package1");
  EXPECT_EQ(machine.device_name({DeviceKind::nic, 0}), "mlx5_0");
  EXPECT_EQ(machine.device_name({DeviceKind::nvswitch, 0}), "nvswitch0");
}

TEST(Machine, WithoutGpusCarriesOneRankOnItsFirstPackage) {
  Machine machine = small_machine();
  EXPECT_EQ(machine.ranks(), 2);
  EXPECT_EQ(machine.rank_device(1), (DeviceId{DeviceKind::gpu, 1}));
  machine.gpus.clear();
  machine.links.erase(machine.links.begin(), machine.links.begin() + 2);
  EXPECT_EQ(machine.ranks(), 1);
  EXPECT_EQ(machine.rank_device(0), (DeviceId{DeviceKind::package, 0}));
  EXPECT_NO_THROW(machine.validate());
}

TEST(Machine, RefusesALinkToNowhere) {
  Machine machine = small_machine();
  machine.links[0].to = {DeviceKind::package, 7};
  EXPECT_THAT(fault_of(machine), AllOf(HasSubstr("package 7"), HasSubstr("small")));
  machine.links[0].to = {DeviceKind::nvswitch, 0};
  EXPECT_THAT(fault_of(machine), HasSubstr("nvswitch 0"));
  machine.links[0].to = {DeviceKind::gpu, -1};
  EXPECT_THAT(fault_of(machine), HasSubstr("gpu -1"));
}

TEST(Machine, RefusesALinkToItself) {
  Machine machine = small_machine();
  machine.links[0].to = machine.links[0].from;
  EXPECT_THAT(fault_of(machine), AllOf(HasSubstr("gpu0"), HasSubstr("itself")));
}

TEST(Machine, RefusesNumbersThatAreNone) {
  for (const double bad : {-1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    Machine machine = small_machine();
    machine.links[0].bandwidth.value = bad;
    EXPECT_THAT(fault_of(machine), AllOf(HasSubstr("bandwidth"), HasSubstr("gpu0")));
    machine = small_machine();
    machine.links[0].latency.value = bad;
    EXPECT_THAT(fault_of(machine), HasSubstr("latency"));
    machine = small_machine();
    machine.gpus[1].memory_bandwidth.value = bad;
    EXPECT_THAT(fault_of(machine), HasSubstr("gpu1"));
    machine = small_machine();
    machine.nics[0].ports[0].bandwidth.value = bad;
    EXPECT_THAT(fault_of(machine), HasSubstr("mlx5_0 port 1"));
  }
}

TEST(Machine, RefusesTwoDevicesOfOneName) {
  Machine machine = small_machine();
  machine.gpus[1].name = "mlx5_0";
  EXPECT_THAT(fault_of(machine), HasSubstr("two devices are named 'mlx5_0'"));
}

TEST(Machine, RefusesToHaveNoPackage) {
  EXPECT_THAT(fault_of(Machine{}), HasSubstr("no package"));
  Machine machine = small_machine();
  machine.nvswitches = -1;
  EXPECT_THAT(fault_of(machine), HasSubstr("-1 NVSwitches"));
}

TEST(Machine, RefusesDevicesWithoutAPath) {
  Machine machine = small_machine();
  machine.links.pop_back();
  EXPECT_THAT(fault_of(machine), HasSubstr("no path from gpu0 to gpu1"));
  machine = small_machine();
  machine.links.erase(machine.links.begin() + 2);
  EXPECT_THAT(fault_of(machine), HasSubstr("no path from gpu0 to mlx5_0"));
}

TEST(Nic, BandwidthIsThatOfThePortsThatAreUp) {
  Nic nic = small_machine().nics[0];
  nic.ports = {{1, true, gigabytes_per_second(12)}, {2, false, gigabytes_per_second(12)}};
  EXPECT_DOUBLE_EQ(nic.bandwidth().value, 12e9);
  nic.ports[1].up = true;
  EXPECT_DOUBLE_EQ(nic.bandwidth().value, 24e9);
  nic.ports[1].bandwidth = {};
  EXPECT_FALSE(nic.bandwidth().known());
  EXPECT_TRUE(nic.up());
  nic.ports.clear();
  EXPECT_FALSE(nic.up());
}

Cluster mixed_cluster() {
  Cluster cluster = cluster_of(small_machine(), 3);
  Machine other = small_machine();
  other.gpus.clear();
  other.links.erase(other.links.begin(), other.links.begin() + 2);
  cluster.groups.push_back({other, 2});
  return cluster;
}

TEST(Cluster, PlacesRanksHostAfterHost) {
  const Cluster cluster = mixed_cluster();
  EXPECT_NO_THROW(cluster.validate());
  EXPECT_EQ(cluster.host_count(), 5);
  EXPECT_EQ(cluster.ranks(), 8);
  int rank = 0;
  for (int host = 0; host < cluster.host_count(); ++host) {
    for (int i = 0; i < cluster.host(host).ranks(); ++i, ++rank) {
      EXPECT_EQ(cluster.place(rank).host, host);
      EXPECT_EQ(cluster.place(rank).index_on_host, i);
    }
  }
  EXPECT_EQ(rank, cluster.ranks());
}

TEST(Cluster, RefusesWhatCannotBe) {
  Cluster cluster = mixed_cluster();
  const auto fault = [&] { return usage_sentence([&] { cluster.validate(); }); };
  cluster.groups[1].count = 0;
  EXPECT_THAT(fault(), HasSubstr("0 hosts"));
  cluster.groups[1].count = 1'000'000'000;
  EXPECT_THAT(fault(), HasSubstr("1000000006 ranks"));
  cluster = mixed_cluster();
  cluster.groups[0].machine.packages.clear();
  EXPECT_THAT(fault(), HasSubstr("no package"));
  cluster = mixed_cluster();
  cluster.fabric.latency.value = -1;
  EXPECT_THAT(fault(), HasSubstr("latency"));
  cluster.fabric = {};
  cluster.fabric.leaf_uplink.value = std::nan("");
  EXPECT_THAT(fault(), HasSubstr("uplink"));
  cluster.fabric = {};
  cluster.fabric.hosts_per_leaf = -1;
  EXPECT_THAT(fault(), HasSubstr("hosts per leaf"));
  cluster.fabric = {};
  cluster.fabric.pods = {{8, gigabytes_per_second(1)}};
  EXPECT_THAT(fault(), HasSubstr("pods of 8 hosts above leaves or pods of 0")) << "no leaves";
  cluster.fabric.hosts_per_leaf = 8;
  EXPECT_THAT(fault(), HasSubstr("pods of 8 hosts above leaves or pods of 8"));
  cluster.fabric.pods = {{16, {-1}}};
  EXPECT_THAT(fault(), HasSubstr("uplink of a pod"));
  cluster.groups.clear();
  EXPECT_THAT(fault(), HasSubstr("no hosts"));
  EXPECT_THAT(usage_sentence([] { cluster_of(small_machine(), 0); }), HasSubstr("0 hosts"));
}

}  // namespace
}  // namespace polyring

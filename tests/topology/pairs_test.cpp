#include "topology/pairs.hpp"

#include <nlohmann/json.hpp>

#include "tests/topology/support.hpp"
#include "topology/inventory/formats/probe_json.hpp"
#include "topology/inventory/formats/probe_matrix.hpp"
#include "topology/inventory/formats/probe_paths.hpp"
#include "topology/inventory/formats/read_cluster.hpp"
#include "topology/presets.hpp"
#include "topology/rank_nics.hpp"

namespace polyring {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::small_machine;
using Json = nlohmann::json;

constexpr DeviceId gpu(int i) { return {DeviceKind::gpu, i}; }
constexpr DeviceId nic(int i) { return {DeviceKind::nic, i}; }
constexpr DeviceId package(int i) { return {DeviceKind::package, i}; }

Pair pair(const Machine& machine, DeviceId from, DeviceId to) {
  for (const auto& pairs : {gpu_pairs(machine), nic_pairs(machine)}) {
    for (const Pair& found : pairs) {
      if (found.from == from && found.to == to) return found;
    }
  }
  ADD_FAILURE() << machine.device_name(from) << " and " << machine.device_name(to) << " are no pair";
  return {};
}

TEST(Pairs, OfADeviceWhosePackageIsUnknownSaySo) {
  Machine machine = small_machine();
  machine.nics[0].package_known = false;
  const Pair to_nic = pair(machine, gpu(1), nic(0));
  EXPECT_EQ(to_nic.type, PathType::unknown);
  EXPECT_FALSE(to_nic.bandwidth.known());
  EXPECT_EQ(
      to_nic.reason,
      "nothing tells which package mlx5_0 is near; routes here take gpu1 - package1 - package0 - mlx5_0");
  EXPECT_EQ(pair(machine, gpu(0), gpu(1)).type, PathType::sys);
  machine.gpus[1].package_known = false;
  EXPECT_THAT(pair(machine, gpu(1), nic(0)).reason, HasSubstr("which package gpu1 and mlx5_0 are near"));
  const Cluster cluster = cluster_of(machine, 1);
  EXPECT_THAT(probe_matrix(cluster), ::testing::ContainsRegex("\nmlx5_0 +\\? +\\? +X +\\? +0\n"));
  EXPECT_EQ(parse_probe_json(probe_json(cluster), "memory").host(0).gpus[1].package_known, false);
  EXPECT_EQ(parse_probe_json(probe_json(cluster), "memory").host(0).gpus[0].package_known, true);
}

TEST(Pairs, OnMinskySayWhyTheSocketsAreApart) {
  const Machine machine = preset("minsky", 1).host(0);
  const Pair near = pair(machine, gpu(0), gpu(1));
  EXPECT_EQ(near.type, PathType::nvl);
  EXPECT_EQ(near.reason, "direct 2 NVLinks of 20.0 GB/s");
  EXPECT_DOUBLE_EQ(near.bandwidth.gigabytes_per_second(), 40);
  const Pair far = pair(machine, gpu(0), gpu(2));
  EXPECT_EQ(far.type, PathType::sys);
  EXPECT_EQ(far.reason,
            "no NVLink between them; across the sockets, package0 and package1; narrowest: X-bus package0 - "
            "package1");
  EXPECT_DOUBLE_EQ(far.bandwidth.gigabytes_per_second(), 38.4);
  EXPECT_EQ(way_text(machine, far.way), "gpu0 - package0 - package1 - gpu2");
  EXPECT_EQ(pair(machine, gpu(0), nic(0)).reason,
            "under different host bridges of package0; narrowest: PCIe mlx5_0 - package0");
}

TEST(Pairs, OnDgx1TakeTheDetourThatNcclTakes) {
  // gpu0 has NVLinks to 1, 2, 3 and 4; gpu5 to 4, 6, 7 and 1: through 1 or 4.
  const Machine machine = preset("dgx1-p100", 1).host(0);
  const Pair far = pair(machine, gpu(0), gpu(5));
  EXPECT_EQ(far.type, PathType::nvb);
  EXPECT_EQ(far.way, (std::vector{gpu(0), gpu(1), gpu(5)}));
  EXPECT_DOUBLE_EQ(far.bandwidth.gigabytes_per_second(), 20);
  EXPECT_DOUBLE_EQ(far.latency.value, 1.2e-6);
  EXPECT_EQ(far.reason,
            "no NVLink between them, but two through gpu1; routes here take SYS, 15.8 GB/s: gpu0 - switch0 - "
            "package0 - package1 - switch2 - gpu5");
  EXPECT_EQ(pair(machine, gpu(0), gpu(4)).type, PathType::nvl);
  EXPECT_EQ(pair(machine, gpu(0), gpu(4)).reason, "direct 1 NVLink of 20.0 GB/s");
  EXPECT_EQ(pair(machine, gpu(0), nic(0)).type, PathType::pix);
  EXPECT_EQ(pair(machine, gpu(0), nic(0)).reason, "both under switch0; narrowest: PCIe gpu0 - switch0");
  EXPECT_EQ(pair(machine, gpu(0), nic(1)).type, PathType::node);
  EXPECT_NE(find_path(machine, gpu(0), gpu(5))->type, PathType::nvb) << "routes never pass through a GPU";
}

TEST(Pairs, HaveNoDetourThatIsNarrowerOrMissing) {
  Machine machine = small_machine();
  machine.gpus.push_back({"gpu2", "", "", 0, 0, {}, {}});
  machine.links.push_back({gpu(2), package(0), LinkKind::pcie, gigabytes_per_second(16), microseconds(1)});
  EXPECT_FALSE(find_detour(machine, 0, 2));
  machine.links.push_back({gpu(0), gpu(1), LinkKind::nvlink, gigabytes_per_second(50), microseconds(1)});
  machine.links.push_back({gpu(2), gpu(1), LinkKind::nvlink, gigabytes_per_second(16), microseconds(1)});
  EXPECT_FALSE(find_detour(machine, 0, 2)) << "16 GB/s over PCIe, in as many hops, is as wide";
  machine.links.back().bandwidth = gigabytes_per_second(25);
  ASSERT_TRUE(find_detour(machine, 0, 2));
  EXPECT_EQ(find_detour(machine, 0, 2)->gpu, 1);
  EXPECT_DOUBLE_EQ(find_detour(machine, 0, 2)->bandwidth.value, 25e9);
  EXPECT_FALSE(find_detour(machine, 0, 1)) << "they have an NVLink";
}

TEST(Pairs, TakeTheWidestDetour) {
  Machine machine = small_machine();
  for (int i = 2; i < 4; ++i) {
    machine.gpus.push_back({fmt::format("gpu{}", i), "", "", 0, 0, {}, {}});
    machine.links.push_back({gpu(i), package(0), LinkKind::pcie, gigabytes_per_second(16), microseconds(1)});
    for (const int end : {0, 1}) {
      machine.links.push_back(
          {gpu(i), gpu(end), LinkKind::xgmi, gigabytes_per_second(20 * i), microseconds(1)});
    }
  }
  EXPECT_EQ(find_detour(machine, 0, 1)->gpu, 3);
  EXPECT_DOUBLE_EQ(pair(machine, gpu(0), gpu(1)).bandwidth.value, 60e9);
  EXPECT_THAT(pair(machine, gpu(0), gpu(1)).reason, HasSubstr("no xGMI between them, but two through gpu3"));
  EXPECT_EQ(pair(machine, gpu(0), gpu(2)).reason, "direct xGMI");
}

/// Two packages with a GPU each on NVLink-C2C, and the NIC at the first.
Machine two_superchips() {
  Machine machine = small_machine();
  for (int i = 0; i < 2; ++i) {
    machine.links[static_cast<std::size_t>(i)].kind = LinkKind::c2c;
    machine.links[static_cast<std::size_t>(i)].bandwidth = gigabytes_per_second(450);
  }
  return machine;
}

TEST(Pairs, NameChipToChipLinks) {
  Machine machine = two_superchips();
  EXPECT_EQ(find_path(machine, gpu(0), package(0))->type, PathType::c2c);
  EXPECT_EQ(find_path(machine, gpu(0), package(1))->type, PathType::sys);
  const Pair to_nic = pair(machine, gpu(0), nic(0));
  EXPECT_EQ(to_nic.type, PathType::p2c);
  EXPECT_EQ(to_nic.reason, "NVLink-C2C to package0, then its PCIe; narrowest: PCIe mlx5_0 - package0");
  EXPECT_EQ(pair(machine, gpu(0), gpu(1)).type, PathType::sys);
  machine.links[1].to = package(0);
  machine.gpus[1].numa = 0;
  EXPECT_EQ(pair(machine, gpu(0), gpu(1)).type, PathType::c2c);
  EXPECT_THAT(probe_matrix(cluster_of(machine, 1)), AllOf(HasSubstr("P2C"), HasSubstr("NVLink-C2C")));
  EXPECT_THAT(probe_matrix(cluster_of(small_machine(), 1)), Not(HasSubstr("C2C")));
}

TEST(Pairs, SayWhatIsUnknown) {
  Machine machine = small_machine();
  machine.links.back().bandwidth = {};
  const Pair across = pair(machine, gpu(0), gpu(1));
  EXPECT_FALSE(across.bandwidth.known());
  EXPECT_THAT(across.reason, HasSubstr("of unknown speed: socket bus package0 - package1"));
  EXPECT_THAT(probe_paths(cluster_of(machine, 1)), HasSubstr("SYS   ?"));
  const Json hosts = Json::parse(probe_paths_json(cluster_of(machine, 1)));
  EXPECT_TRUE(hosts.at(0).at("gpus").at(0).at("GBps").is_null());
}

using Nics = std::vector<std::vector<int>>;  // by rank

TEST(Pairs, MarkTheNicThatRoutesTake) {
  const Machine machine = preset("minsky", 1).host(0);
  EXPECT_EQ(rank_nics(machine), (Nics{{0}, {0}, {1}, {1}}));
  for (const Pair& found : nic_pairs(machine))
    EXPECT_EQ(found.nearest, found.from.index / 2 == found.to.index) << found.from.index << found.to.index;
  Machine down = machine;
  down.nics[1].ports[0].up = false;
  EXPECT_EQ(rank_nics(down), (Nics{{0}, {0}, {0}, {0}}));
  down.nics[0].ports[0].up = false;
  EXPECT_TRUE(rank_nics(down).empty());
  for (const Pair& found : nic_pairs(down)) EXPECT_FALSE(found.nearest);
}

/// A GPU at each of two sockets, and 100 Gb/s of RoCE at the first.
Machine machine_with_roce() {
  Machine machine = small_machine();
  machine.nics[0].kind = NicKind::ethernet;
  machine.nics[0].host_bridge = -1;
  machine.nics[0].ports = {{1, true, gigabits_per_second(100)}};
  return machine;
}

void add_nic(Machine& machine, const std::string& name, DeviceId above, Bandwidth speed) {
  const DeviceId id{DeviceKind::nic, static_cast<int>(machine.nics.size())};
  machine.nics.push_back({name, "NIC", "", above.index, -1, NicKind::ethernet, {{1, true, speed}}});
  machine.links.push_back({id, above, LinkKind::pcie, gigabytes_per_second(8), {}});
}

TEST(RankNics, AreNoManagementPorts) {
  Machine machine = machine_with_roce();
  add_nic(machine, "eno1", package(1), gigabits_per_second(1));
  add_nic(machine, "eno2", package(1), {});
  EXPECT_EQ(usable_nics(machine), std::vector{0});
  EXPECT_EQ(rank_nics(machine), (Nics{{0}, {0}}));
  // Without the fast one they are all that there is: unknown is less than known.
  machine.nics[0].ports[0].up = false;
  EXPECT_EQ(usable_nics(machine), std::vector{1});
  machine.nics[1].ports[0].up = false;
  EXPECT_EQ(usable_nics(machine), std::vector{2});
}

TEST(RankNics, OfUnknownSpeedComeAfterEqualsAndBeforeFartherOnes) {
  Machine machine = machine_with_roce();
  for (Nic& nic : machine.nics) nic.kind = NicKind::infiniband;
  add_nic(machine, "mlx5_1", package(0), {});
  add_nic(machine, "mlx5_2", package(1), {});
  for (Nic& nic : machine.nics) nic.kind = NicKind::infiniband;
  EXPECT_EQ(rank_nics(machine), (Nics{{0}, {2}}));
  machine.nics[0].ports[0].bandwidth = {};
  EXPECT_EQ(rank_nics(machine), (Nics{{0, 1}, {2}})) << "equals, whose speeds are unknown";
}

// As in a matrix of nvidia-smi's.
TEST(RankNics, MayAllBeUpWhereNoPortIsKnown) {
  Machine machine = machine_with_roce();
  add_nic(machine, "eno1", package(1), {});
  for (Nic& nic : machine.nics) nic.ports.clear();
  EXPECT_EQ(usable_nics(machine), (std::vector{0, 1}));
  EXPECT_EQ(rank_nics(machine), (Nics{{0}, {1}}));
  machine.nics[0].kind = NicKind::infiniband;
  EXPECT_EQ(rank_nics(machine), (Nics{{0}, {0}}));
  machine.nics[0].ports = {{1, false, {}}};
  EXPECT_TRUE(usable_nics(machine).empty()) << "of one it is known, and it is down";
}

/// As in a copy of /sys without class/infiniband: what the ports carry is unknown, and not nothing.
TEST(RankNics, OfInfinibandMayBeUpWhereNoneOfItsPortsIsKnown) {
  Machine machine = machine_with_roce();
  add_nic(machine, "mlx5_0", package(0), {});
  add_nic(machine, "mlx5_1", package(1), {});
  for (const std::size_t at : {1U, 2U}) {
    machine.nics[at].kind = NicKind::infiniband;
    machine.nics[at].ports.clear();
  }
  EXPECT_EQ(usable_nics(machine), (std::vector{1, 2})) << "the Ethernet port is not all there is";
  machine.nics[1].ports = {{1, true, gigabytes_per_second(12)}};
  EXPECT_EQ(usable_nics(machine), std::vector{1}) << "of the other one it is known that it has none";
}

TEST(RankNics, MayBeOfTwoSpeeds) {
  Machine machine = machine_with_roce();
  add_nic(machine, "mlx5_1", package(1), gigabits_per_second(50));
  EXPECT_EQ(rank_nics(machine), (Nics{{0}, {1}}));
}

// Three hops lead to either.
TEST(RankNics, AreOnTheRanksSocketAlsoBehindASwitch) {
  Machine machine = machine_with_roce();
  machine.switches = {{"switch0", "0000:01:00.0"}};
  constexpr DeviceId kSwitch{DeviceKind::pci_switch, 0};
  machine.links.push_back({kSwitch, package(1), LinkKind::pcie, gigabytes_per_second(16), {}});
  add_nic(machine, "mlx5_1", kSwitch, gigabits_per_second(100));
  machine.nics[1].numa = 1;
  EXPECT_EQ(rank_nics(machine), (Nics{{0}, {1}}));
  // Of one type the widest: hops decide last.
  add_nic(machine, "mlx5_2", package(1), gigabits_per_second(100));
  EXPECT_EQ(rank_nics(machine), (Nics{{0}, {2}}));
  machine.nics[1].ports[0].bandwidth = gigabits_per_second(200);
  EXPECT_EQ(rank_nics(machine), (Nics{{0}, {1}}));
}

TEST(RankNics, AreSeveralWhereThereAreFewerRanksThanEquals) {
  Machine machine = machine_with_roce();
  for (const char* name : {"mlx5_1", "mlx5_2", "mlx5_3"})
    add_nic(machine, name, package(0), gigabits_per_second(100));
  EXPECT_EQ(rank_nics(machine), (Nics{{0, 2}, {1, 3}}));
  for (const Pair& found : nic_pairs(machine))
    EXPECT_EQ(found.nearest, found.from.index == found.to.index % 2) << found.from.index << found.to.index;
  machine.nics[3].ports[0].up = false;
  EXPECT_EQ(rank_nics(machine), (Nics{{0, 2}, {1}}));
  add_nic(machine, "mlx5_4", package(1), gigabits_per_second(100));
  EXPECT_EQ(rank_nics(machine), (Nics{{0, 1, 2}, {4}})) << "each rank has its own";
}

TEST(Pairs, AreBesideTheClusterInItsJson) {
  const Cluster cluster = preset("minsky", 2);
  const JsonPart parts[] = {{"paths", probe_paths_json(cluster)}};
  const std::string json = probe_json(cluster, parts);
  EXPECT_EQ(probe_json(parse_probe_json(json, "memory")), probe_json(cluster))
      << "the reader passes over them";
  const Json host = Json::parse(json).at("paths").at(0);
  EXPECT_EQ(host.at("host"), "minsky");
  EXPECT_EQ(host.at("gpus").size(), 6u);
  EXPECT_EQ(host.at("nics").size(), 8u);
  EXPECT_EQ(host.at("gpus").at(0).at("type"), "NVL");
  EXPECT_EQ(host.at("gpus").at(0).at("GBps"), 40);
  EXPECT_EQ(host.at("gpus").at(1).at("way"), Json({"gpu0", "package0", "package1", "gpu2"}));
  EXPECT_EQ(host.at("nics").at(0).at("nearest"), true);
}

TEST(Pairs, OfTheXe8640AreThoseOfItsFile) {
  POLYRING_NEEDS_TOPOLOGIES();
  const Machine machine = read_cluster(testing::topologies() / "hwloc/flux-core-ipa20.xml").host(0);
  for (const Pair& found : gpu_pairs(machine)) {
    EXPECT_EQ(found.type, PathType::nvl);
    EXPECT_EQ(found.reason, "direct 6 NVLinks of 25.0 GB/s");
    EXPECT_DOUBLE_EQ(found.bandwidth.gigabytes_per_second(), 150);
  }
  EXPECT_THAT(probe_paths(cluster_of(machine, 1)), HasSubstr("mlx5_0 *"));
}

}  // namespace
}  // namespace polyring

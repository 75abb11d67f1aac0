// What the known machines should reach, calculated by hand from their links.
#include "bench/predict/expected.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "collectives/schedule/catalogue.hpp"
#include "tests/topology/support.hpp"
#include "topology/inventory/formats/read_cluster.hpp"
#include "topology/presets.hpp"

namespace polyring {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

const ExpectedBound& bound(const Expectation& expectation, const std::string& where) {
  for (const ExpectedBound& row : expectation.bounds) {
    if (row.where == where) return row;
  }
  throw std::out_of_range(where);
}

const ExpectedAlgorithm& algorithm(const Expectation& expectation, const std::string& name) {
  for (const ExpectedAlgorithm& row : expectation.algorithms) {
    if (row.algorithm == name) return row;
  }
  throw std::out_of_range(name);
}

struct Known {
  const char* machine;
  double inside;  // GB/s of bus bandwidth
  const char* inside_cut;
  double between;
  const char* between_cut;
};

void PrintTo(const Known& known, std::ostream* out) { *out << known.machine; }

class ExpectedBounds : public ::testing::TestWithParam<Known> {};

TEST_P(ExpectedBounds, AreThoseCalculatedByHand) {
  const Expectation result = expected_bounds(preset(GetParam().machine, 1));
  const ExpectedBound& inside = bound(result, std::string("inside ") + GetParam().machine);
  EXPECT_NEAR(inside.busbw.gigabytes_per_second(), GetParam().inside, 1e-6);
  EXPECT_EQ(inside.limit, GetParam().inside_cut);
  const ExpectedBound& between = bound(result, "between many hosts");
  EXPECT_NEAR(between.busbw.gigabytes_per_second(), GetParam().between, 1e-6);
  EXPECT_EQ(between.limit, GetParam().between_cut);
  EXPECT_TRUE(result.algorithms.empty());
}

INSTANTIATE_TEST_SUITE_P(
    Machines, ExpectedBounds,
    ::testing::Values(
        // Each half's payload must cross 38.4 GB/s of X-bus once: S / 38.4, as busbw times 2·3/4.
        Known{"minsky", 57.6,
              "2 GPUs of package0 reach the others only over X-bus package0 - package1: 38.4 GB/s", 24.2,
              "4 GPUs of a host share 2 x EDR InfiniBand: 24.2 GB/s"},
        // Each GPU has 4 NVLinks of 20 GB/s, which rings use without its PCIe: 2·7/8·S must leave it.
        Known{"dgx1-p100", 80, "each GPU reaches the others only over 4 x NVLink of 20.0 GB/s: 80.0 GB/s",
              48.4, "8 GPUs of a host share 4 x EDR InfiniBand: 48.4 GB/s"},
        // 12 NVLinks of 25 GB/s; 18.
        Known{"dgx-a100", 300, "each GPU reaches the others only over 12 x NVLink of 25.0 GB/s: 300 GB/s",
              193.6, "8 GPUs of a host share 8 x HDR InfiniBand: 194 GB/s"},
        Known{"dgx-h100", 450, "each GPU reaches the others only over 18 x NVLink of 25.0 GB/s: 450 GB/s",
              388, "8 GPUs of a host share 8 x NDR InfiniBand: 388 GB/s"}),
    [](const auto& row) {
      std::string name = row.param.machine;
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

TEST(Expected, ReachesOnAnNvswitchWhatItsLinksCarry) {
  // Rings use NVLink alone.
  const Expectation result = expected(preset("dgx-a100", 1));
  EXPECT_NEAR(algorithm(result, "multi-ring").busbw.gigabytes_per_second(), 300, 3);
  EXPECT_NEAR(algorithm(result, "multi-ring").bound_fraction.value(), 1, 0.01);
  EXPECT_EQ(result.algorithms.size(), algorithms().size());
}

TEST(Expected, OfSeveralHostsIsNoSumThatNobodyUses) {
  // The ports of two hosts would carry 728, and NVLink and PCIe at once 513. 2·7/8·S stays inside the host.
  const Expectation result = expected(preset("dgx-h100", 2));
  EXPECT_NEAR(bound(result, "together").busbw.gigabytes_per_second(), 450 * (15.0 / 16) / (7.0 / 8), 1e-6);
  EXPECT_NEAR(bound(result, "in the switches of dgx-h100").busbw.gigabytes_per_second(), 700, 1e-6);
  for (const ExpectedAlgorithm& row : result.algorithms)
    EXPECT_LE(row.bound_fraction.value(), 1 + 1e-9) << row.algorithm;
  EXPECT_GT(algorithm(result, "multi-ring").bound_fraction.value(), 0.95);
}

TEST(Expected, OfARingOnMinskyIsTheXBus) {
  // A ring crosses the X-bus once in each direction, with 2·3/4·S: busbw is the bus's bandwidth.
  const Expectation result = expected(preset("minsky", 1));
  EXPECT_NEAR(algorithm(result, "ring").busbw.gigabytes_per_second(), 38.4, 0.4);
  EXPECT_THAT(algorithm(result, "ring").busiest, HasSubstr("package0 -> package1 (socket-bus), busy"));
  for (const ExpectedAlgorithm& row : result.algorithms) {
    EXPECT_GT(row.bound_fraction.value(), 0) << row.algorithm;
    EXPECT_LE(row.bound_fraction.value(), 1 + 1e-9) << row.algorithm;
    EXPECT_LE(row.busbw, result.algorithms.front().busbw) << "the best comes first";
  }
}

TEST(Expected, OfSeveralHostsIsThatOfTheirNics) {
  // 2·63/64·S through 24.2 GB/s; as busbw of 256 ranks times 255/256 · 64/63.
  const Expectation result = expected(preset("minsky", 64));
  const double between = 24.2 * 255 / 256 * 64 / 63;
  EXPECT_NEAR(bound(result, "between hosts").busbw.gigabytes_per_second(), between, 1e-6);
  EXPECT_NEAR(bound(result, "together").busbw.gigabytes_per_second(), between, 1e-6);
  EXPECT_NEAR(bound(result, "inside minsky").busbw.gigabytes_per_second(), 57.6, 1e-6);
  EXPECT_EQ(bound(result, "inside minsky").ranks, 4);
  EXPECT_GT(algorithm(result, "multi-ring").bound_fraction.value(), 0.9);
}

TEST(Expected, OfAnNvlinkDomainIsThatOfAHostAndOfAllItsNics) {
  const Expectation tray = expected_bounds(preset("gb200-nvl72", 1));
  const auto gigabytes = [](const Expectation& of, const char* where) {
    return bound(of, where).busbw.gigabytes_per_second();
  };
  EXPECT_NEAR(gigabytes(tray, "inside gb200-nvl72"), 900, 1e-6);
  EXPECT_NEAR(gigabytes(tray, "inside a domain of gb200-nvl72"), 900, 1e-6);
  EXPECT_EQ(bound(tray, "inside a domain of gb200-nvl72").ranks, 72);
  // Each GPU sends its payload once, and a 72nd of the sum comes back to be spread: 2·71/72 / (1 + 1/72).
  EXPECT_NEAR(gigabytes(tray, "in the switches of gb200-nvl72"), 900 * 2 * 71 / 73.0, 1e-6);
  EXPECT_NEAR(gigabytes(tray, "between many NVLink domains"), 72 * 48.5, 1e-6);
  const Expectation two = expected_bounds(preset("gb200-nvl72", 36));
  EXPECT_NEAR(gigabytes(two, "between NVLink domains"), 72 * 48.5 * 2 * 143 / 144, 1e-6);
  // 2·71/72·S over 900 GB/s stays inside the domains, as busbw of 144 ranks.
  EXPECT_NEAR(gigabytes(two, "together"), 900 * (143.0 / 144) / (71.0 / 72), 1e-6);
}

TEST(Expected, LeavesOutWhatTakesLong) {
  const Expectation result = expected(preset("minsky", 256));
  EXPECT_GT(algorithm(result, "multi-ring").bound_fraction.value(), 0.9);
  EXPECT_EQ(result.algorithms.size(), 2u);
  EXPECT_THAT(result.not_simulated, HasSubstr("recursive-doubling, direct, pairwise, one-shot, "));
  EXPECT_THAT(to_text(result), HasSubstr("not simulated: ring, "));
}

TEST(Expected, SaysWhatIsUnknown) {
  Cluster cluster = preset("minsky", 1);
  for (Link& link : cluster.groups.front().machine.links) link.bandwidth = {};
  const Expectation result = expected(cluster);
  EXPECT_FALSE(bound(result, "inside minsky").busbw.known());
  EXPECT_EQ(bound(result, "inside minsky").limit, "unknown: minsky: the speed of NVLink gpu2 - package1");
  EXPECT_DOUBLE_EQ(bound(result, "between many hosts").busbw.gigabytes_per_second(), 24.2)
      << "the ports' speed is known";
  EXPECT_TRUE(result.algorithms.empty());
  EXPECT_THAT(to_text(result),
              HasSubstr("not simulated: minsky: the speed of NVLink gpu0 - gpu1 is unknown"));
  const Json json = Json::parse(to_json(result));
  EXPECT_TRUE(json.at("bounds").at(0).at("busbw_GBps").is_null());
  EXPECT_EQ(json.at("not_simulated"), result.not_simulated);
  cluster.groups.front().machine.nics[1].ports[0].bandwidth = {};
  EXPECT_EQ(bound(expected_bounds(cluster), "between many hosts").limit,
            "unknown: minsky: the speed of mlx5_1");
}

TEST(Expected, NeedsNoSpeedOfWhatIsNotUsed) {
  // Nothing says how fast the bus between sockets is, and NVSwitches spare it.
  Cluster cluster = preset("dgx-h100", 1);
  for (Link& link : cluster.groups.front().machine.links) {
    if (link.kind == LinkKind::socket_bus) link.bandwidth = {};
  }
  const Expectation result = expected(cluster);
  EXPECT_EQ(result.not_simulated, "");
  EXPECT_NEAR(algorithm(result, "multi-ring").busbw.gigabytes_per_second(), 450, 5);
}

TEST(Expected, LeavesOutThePlansThatCrossALinkOfUnknownSpeed) {
  // A DGX-1's rings are of NVLinks; trees and the like cross the bus between the sockets.
  const Cluster whole = preset("dgx1-v100", 1);
  Cluster cluster = whole;
  for (Link& link : cluster.groups.front().machine.links) {
    if (link.kind == LinkKind::socket_bus) link.bandwidth = {};
  }
  const Expectation result = expected(cluster);
  for (const char* name : {"multi-ring", "ring"}) {
    EXPECT_EQ(algorithm(result, name).plan, algorithm(expected(whole), name).plan);
    EXPECT_EQ(algorithm(result, name).busbw.value, algorithm(expected(whole), name).busbw.value);
  }
  EXPECT_LT(result.algorithms.size(), algorithms().size());
  for (const ExpectedAlgorithm& row : result.algorithms) {
    EXPECT_THAT(row.busiest, Not(HasSubstr("package0 -> package1"))) << row.algorithm;
    EXPECT_THAT(result.not_simulated, Not(HasSubstr(": " + row.algorithm)));
  }
  EXPECT_THAT(result.not_simulated, AllOf(HasSubstr("dgx1-v100: the speed of "), HasSubstr("direct"),
                                          HasSubstr("is unknown, and all plans of these cross it: ")));
}

TEST(Expected, NamesTheHostWithoutAPort) {
  Cluster cluster = preset("minsky", 3);
  cluster.groups.push_back(cluster.groups.front());
  Machine& other = cluster.groups.back().machine;
  other.name = "node3";
  for (Nic& nic : other.nics) nic.ports.front().up = false;
  const Expectation result = expected(cluster);
  for (const char* where : {"between hosts", "together"}) {
    EXPECT_FALSE(bound(result, where).busbw.known()) << where;
    EXPECT_EQ(bound(result, where).limit, "node3 has no network port that is up") << where;
  }
  EXPECT_TRUE(bound(result, "inside node3").busbw.known());
  EXPECT_EQ(result.not_simulated, "node3 has no network port that is up");
  EXPECT_TRUE(Json::parse(to_json(result)).at("bounds").at(2).at("busbw_GBps").is_null());
  cluster.groups.front().count = 8;
  cluster.fabric.hosts_per_leaf = 4;
  EXPECT_EQ(bound(expected(cluster), "between hosts").limit, "node3 has no network port that is up");
}

TEST(Expected, BoundsLeavesByTheHostsThatHangOnThem) {
  // Two hosts on each leaf, and a fast one alone on the last, which has all of its 5 GB/s of uplinks. Were
  // like hosts neighbours, the slow one would hang there.
  const auto host = [](const char* name, double bandwidth) {
    Machine machine = preset("minsky", 1).host(0);
    machine.name = name;
    machine.nics[0].ports[0].bandwidth = gigabytes_per_second(bandwidth);
    machine.nics[1].ports[0].up = false;
    return machine;
  };
  Cluster cluster;
  cluster.groups = {{host("fast", 12), 2}, {host("slow", 4), 1}, {host("fast", 12), 2}};
  cluster.fabric.hosts_per_leaf = 2;
  cluster.fabric.leaf_uplink = gigabytes_per_second(5);
  const Expectation result = expected_bounds(cluster);
  // 2 · 2/3 · S through 5 GB/s, as busbw of 20 ranks.
  EXPECT_NEAR(bound(result, "between hosts").busbw.gigabytes_per_second(), 3.75 * 2 * 19 / 20, 1e-9);
  EXPECT_EQ(bound(result, "between hosts").hosts, 5);
  EXPECT_EQ(result.bounds.size(), 4u) << "a row for each of two kinds";
}

TEST(Expected, OfOneRankIsNothing) {
  Cluster cluster = preset("minsky", 1);
  cluster.groups.front().machine = Machine{};
  cluster.groups.front().machine.packages.resize(1);
  const Expectation result = expected(cluster);
  ASSERT_EQ(result.bounds.size(), 1u);
  EXPECT_EQ(result.bounds.front().limit, "one rank has nobody to reduce with");
  EXPECT_EQ(result.not_simulated, "one rank has nobody to reduce with");
}

TEST(Expected, IsJsonToo) {
  const Json json = Json::parse(to_json(expected(preset("minsky", 2))));
  EXPECT_EQ(json.at("payload_bytes"), std::uint64_t{1} << 30);
  EXPECT_EQ(json.at("bounds").size(), 3u);
  EXPECT_EQ(json.at("bounds").at(0).at("source"), "modelled");
  const Json& best = json.at("algorithms").at(0);
  EXPECT_GT(best.at("busbw_GBps"), 0);
  EXPECT_GT(best.at("time_us"), 0);
  EXPECT_LE(best.at("bound_fraction"), 1);
  EXPECT_EQ(best.at("source"), "modelled");
}

Cluster real_machine(const char* file) { return read_cluster(testing::topologies() / "hwloc" / file); }

TEST(ExpectedOfRealMachines, IsUnknownWhereTheFileHasNoSpeeds) {
  POLYRING_NEEDS_TOPOLOGIES();
  const Expectation result = expected_bounds(real_machine("32em64t-2n8c2t-pci-normalio.v2.xml"));
  for (const ExpectedBound& row : result.bounds) EXPECT_FALSE(row.busbw.known()) << row.where;
  EXPECT_THAT(result.bounds.at(0).limit, HasSubstr("unknown: conan: the speed of PCIe gpu"));
  EXPECT_EQ(result.bounds.at(1).limit, "unknown: conan: the speed of mlx5_0");
}

TEST(ExpectedOfRealMachines, OfTheS822lcIsItsBus) {
  POLYRING_NEEDS_TOPOLOGIES();
  // The file has the NVLinks, not the bus: its 38.4 GB/s are published.
  const Expectation result = expected_bounds(real_machine("power8gpudistances.v2.xml"));
  EXPECT_NEAR(result.bounds.at(0).busbw.gigabytes_per_second(), 38.4 * 2 * 3 / 4, 1e-3);
  EXPECT_EQ(result.bounds.at(0).limit,
            "2 GPUs of package0 reach the others only over X-bus package0 - package1: 38.4 GB/s");
}

TEST(ExpectedOfRealMachines, RingsOfTheXe8640FillItsNvlinks) {
  POLYRING_NEEDS_TOPOLOGIES();
  // Six rings of half of each pair's 150 GB/s; two whole ones reach 300.
  const Expectation result = expected(real_machine("flux-core-ipa20.xml"));
  EXPECT_NEAR(algorithm(result, "ring").busbw.gigabytes_per_second(), 450, 5);
  EXPECT_THAT(algorithm(result, "ring").plan, HasSubstr("6 lanes"));
  // All pairs at once fill them, too.
  EXPECT_NEAR(algorithm(result, "multi-ring").busbw.gigabytes_per_second(), 450, 5);
}

TEST(ExpectedOfRealMachines, OfTheXe8640IsItsNvlinksAlone) {
  POLYRING_NEEDS_TOPOLOGIES();
  // Three NVLink pairs of 150 GB/s leave each H100. One port is up; the file has no speed
  // of it, and that of its PCIe link would be no expectation.
  const Expectation result = expected_bounds(real_machine("flux-core-ipa20.xml"));
  EXPECT_NEAR(result.bounds.at(0).busbw.gigabytes_per_second(), 450, 1e-3);
  EXPECT_EQ(result.bounds.at(0).limit,
            "each GPU reaches the others only over 18 x NVLink of 25.0 GB/s: 450 GB/s");
  EXPECT_EQ(result.bounds.at(1).where, "between many hosts");
  EXPECT_FALSE(result.bounds.at(1).busbw.known());
  EXPECT_EQ(result.bounds.at(1).limit, "unknown: testhost-nvidia: the speed of mlx5_0");
}

}  // namespace
}  // namespace polyring

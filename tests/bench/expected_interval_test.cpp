// What good implementations reach on the known machines.
#include "bench/predict/expected_interval.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "bench/predict/expected.hpp"
#include "bench/predict/usable_rates.hpp"
#include "topology/presets.hpp"
#include "topology/processes.hpp"

namespace polyring {
namespace {

using ::testing::HasSubstr;

constexpr Bytes kSize{std::uint64_t{8} << 30};

std::optional<ExpectedInterval> of(const Cluster& cluster, std::string_view algorithm, Bytes size = kSize) {
  return expected_interval(cluster, Collective::allreduce, algorithm, size);
}

struct Reached {
  const char* machine;
  int hosts;
  const char* algorithm;
  double busbw;  // GB/s, published of such a machine or by its maker
  const char* link;
};

void PrintTo(const Reached& reached, std::ostream* out) { *out << reached.machine << reached.algorithm; }

class ExpectedIntervals : public ::testing::TestWithParam<Reached> {};

TEST_P(ExpectedIntervals, HaveWhatSuchMachinesReach) {
  const Reached& reached = GetParam();
  const auto interval = of(preset(reached.machine, reached.hosts), reached.algorithm);
  ASSERT_TRUE(interval);
  EXPECT_LE(interval->low.gigabytes_per_second(), reached.busbw) << interval->rests_on;
  EXPECT_GE(interval->high.gigabytes_per_second(), reached.busbw) << interval->rests_on;
  EXPECT_EQ(interval->link, reached.link);
  EXPECT_TRUE(interval->from_data);
  EXPECT_FALSE(interval->limit.empty());
}

INSTANTIATE_TEST_SUITE_P(Machines, ExpectedIntervals,
                         ::testing::Values(Reached{"dgx-h100", 1, "nccl:ring", 370, "NVLink 4"},
                                           Reached{"dgx-h100", 1, "multi-ring", 366, "NVLink 4"},
                                           Reached{"dgx-h100", 1, "nccl:nvls", 480, "NVLink 4"},
                                           Reached{"dgx-h100", 1, "nccl", 480, "NVLink 4"},
                                           Reached{"dgx-h100", 2, "nccl", 470, "NVLink 4"},
                                           Reached{"dgx-h100", 4, "nccl", 365.8, "InfiniBand NDR"},
                                           Reached{"dgx-a100", 1, "nccl", 232, "NVLink 3"},
                                           Reached{"dgx-a100", 4, "nccl", 192, "InfiniBand HDR"},
                                           Reached{"dgx-a100", 2, "nccl", 238, "NVLink 3"},
                                           Reached{"dgx1-v100", 4, "nccl", 47, "InfiniBand EDR"},
                                           Reached{"dgx1-v100", 1, "ring", 120, "NVLink 2"}),
                         [](const auto& row) {
                           std::string name = fmt::format("{}_{}_{}", row.param.machine, row.param.hosts,
                                                          row.param.algorithm);
                           for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
                           return name;
                         });

TEST(ExpectedInterval, OfInSwitchReductionMayExceedTheLinks) {
  const auto interval = of(preset("dgx-h100", 1), "nccl:nvls");
  EXPECT_DOUBLE_EQ(interval->rate.gigabytes_per_second(), 700) << "450 GB/s times 2(n - 1)/(n + 1)";
  EXPECT_GT(interval->low.gigabytes_per_second(), 450);
  EXPECT_FALSE(of(preset("dgx-a100", 1), "nccl:nvls")) << "its switches do not reduce";
  EXPECT_FALSE(switches_reduce(preset("dgx1-v100", 1).host(0)));
}

TEST(ExpectedInterval, OfADgx2IsThatOfItsSwitches) {
  Cluster cluster = preset("dgx-a100", 1);
  Machine& machine = cluster.groups.front().machine;
  for (Gpu& gpu : machine.gpus) gpu.model = "Tesla V100-SXM3-32GB";
  for (Link& link : machine.links) {
    if (link.kind == LinkKind::nvlink) link.bandwidth = gigabytes_per_second(150);
  }
  const auto interval = of(cluster, "nccl");
  EXPECT_EQ(interval->link, "NVLink 2");
  EXPECT_DOUBLE_EQ(interval->rate.gigabytes_per_second(), 150);
}

TEST(ExpectedInterval, OfAP5IsThatOfItsEfa) {
  Cluster cluster = preset("dgx-h100", 4);
  int number = 0;
  for (Nic& nic : cluster.groups.front().machine.nics) {
    nic.kind = NicKind::ethernet;
    nic.name = fmt::format("rdmap{}s0", number++);
    nic.ports.front().bandwidth = gigabits_per_second(400);
  }
  const auto network = [&] {
    return usable_ways(cluster, Collective::allreduce, "nccl").front().back().link;
  };
  EXPECT_EQ(network(), "EFA");
  const auto interval = of(cluster, "nccl");
  EXPECT_LT(interval->low.gigabytes_per_second(), 365) << "published of 4 and 16 hosts";
  EXPECT_GT(interval->high.gigabytes_per_second(), 370);
  for (Nic& nic : cluster.groups.front().machine.nics) nic.name = "mlx5_" + nic.name;
  EXPECT_EQ(network(), "RoCE");
  EXPECT_FALSE(of(cluster, "nccl")->from_data);
  for (Nic& nic : cluster.groups.front().machine.nics) nic.name = "ens" + nic.name;
  EXPECT_EQ(network(), "TCP above 40 Gb/s");
}

TEST(ExpectedInterval, IsWideWhereNobodyPublished) {
  const auto minsky = of(preset("minsky", 1), "ring");
  EXPECT_FALSE(minsky->from_data);
  EXPECT_DOUBLE_EQ(minsky->low.gigabytes_per_second(), 19.2);
  EXPECT_DOUBLE_EQ(minsky->high.gigabytes_per_second(), 38.4) << "a ring crosses the X-bus once each way";
  EXPECT_DOUBLE_EQ(of(preset("minsky", 1), "multi-ring")->high.gigabytes_per_second(), 57.6);
  EXPECT_THAT(minsky->rests_on, HasSubstr("no figure of rings over X-bus is published"));
  EXPECT_THAT(minsky->limit, HasSubstr("X-bus package0 - package1"));
  const auto p100 = of(preset("dgx1-p100", 1), "nccl");
  EXPECT_FALSE(p100->from_data);
  EXPECT_LT(p100->high.gigabytes_per_second(), 80);
  EXPECT_GT(p100->low.gigabytes_per_second(), 40);
}

/// A host without GPUs, and one port.
Cluster cpu_hosts(int hosts, int processes, double gigabits) {
  Machine machine = without_gpus(preset("ethernet", 1).host(0));
  machine.nics.front().ports.front().bandwidth = gigabits_per_second(gigabits);
  if (processes > 1) machine = with_processes(std::move(machine), processes);
  return cluster_of(std::move(machine), hosts);
}

TEST(ExpectedInterval, OfHostsOnEthernetIsWhatTcpCarries) {
  const Cluster cluster = cpu_hosts(4, 4, 0.2);
  const Bytes size{16u << 20};
  const auto ours = of(cluster, "multi-ring", size);
  // 25 MB/s leave each host, times 15/16 over 3/4.
  EXPECT_NEAR(ours->rate.gigabytes_per_second(), 0.03125, 1e-9);
  EXPECT_LT(ours->low, Bandwidth{0.03125e9 / 1.12}) << "time / bound 1.10 to 1.12: docs/performance.md";
  EXPECT_GT(ours->high, Bandwidth{0.03125e9 / 1.10});
  EXPECT_LE(ours->high, Bandwidth{0.9901 * 0.03125e9}) << "headers of frames of 9000 bytes";
  EXPECT_TRUE(ours->from_data);
  EXPECT_EQ(ours->link, "TCP up to 40 Gb/s");
  EXPECT_LT(of(cluster, "mpi", size)->high, ours->low);
  EXPECT_FALSE(of(cluster, "gloo:ring", kSize)->from_data);
  EXPECT_FALSE(of(cluster, "nccl")) << "there is no GPU";
  EXPECT_FALSE(of(cluster, "multi-ring", Bytes{1u << 10})) << "nobody published so small ones";
  EXPECT_EQ(of(cpu_hosts(4, 1, 100), "ring")->link, "TCP above 40 Gb/s");
}

TEST(ExpectedInterval, LeavesOutWhatCannotLimit) {
  // Of the X-bus nothing is published, and it carries 38.4 GB/s where the ports carry 24.2.
  const auto interval = of(preset("minsky", 16), "ring");
  EXPECT_EQ(interval->link, "InfiniBand EDR");
  EXPECT_TRUE(interval->from_data);
  EXPECT_GT(interval->low.gigabytes_per_second(), 20);
}

TEST(ExpectedInterval, IsNothingWhereNothingIsKnown) {
  EXPECT_FALSE(of(cpu_hosts(1, 4, 1), "multi-ring")) << "shared memory";
  EXPECT_FALSE(of(cpu_hosts(1, 1, 1), "multi-ring")) << "one rank";
  EXPECT_FALSE(of(preset("dgx-h100", 1), "parameter-server"));
  EXPECT_FALSE(expected_interval(preset("dgx-h100", 1), Collective::alltoall, "nccl", kSize));
  Cluster cluster = preset("dgx-h100", 2);
  cluster.groups.front().machine.nics.front().ports.front().bandwidth = {};
  EXPECT_FALSE(of(cluster, "nccl"));
  for (Link& link : cluster.groups.front().machine.links) link.bandwidth = {};
  cluster.groups.front().count = 1;
  EXPECT_FALSE(of(cluster, "nccl"));
}

TEST(ExpectedInterval, OfHalvesOfAnAllreduceIsARings) {
  const Cluster cluster = preset("dgx-h100", 1);
  const auto half = expected_interval(cluster, Collective::allgather, "nccl", kSize);
  EXPECT_EQ(half->low, of(cluster, "nccl:ring")->low);  // published: 361 and 363 of 450 GB/s
  EXPECT_LT(half->low.gigabytes_per_second(), 361);
}

TEST(ExpectedInterval, LiesBelowWhatTheLinksCarry) {
  for (const char* machine : {"minsky", "ac922", "summit", "dgx1-p100", "dgx1-v100", "dgx-a100", "dgx-h100",
                              "big-basin", "ethernet"}) {
    for (const int hosts : {1, 2, 3, 16}) {
      const Cluster cluster = preset(machine, hosts);
      const Bandwidth bound = expected_bounds(cluster).bounds.back().busbw;
      for (const char* algorithm : {"multi-ring", "ring", "halving-doubling", "mpi", "nccl", "nccl:ring",
                                    "nccl:tree", "nccl:nvls", "gloo"}) {
        for (const Bytes size : {Bytes{16u << 20}, Bytes{std::uint64_t{16} << 30}}) {
          const auto interval = of(cluster, algorithm, size);
          if (!interval) continue;
          const std::string what = fmt::format("{} {} {}", machine, hosts, algorithm);
          EXPECT_GT(interval->low.value, 0) << what;
          EXPECT_LE(interval->low, interval->high) << what;
          EXPECT_LE(interval->high.value, 1.03 * interval->rate.value) << what;
          const bool reduced_by_ranks = std::string_view(algorithm).find("nccl") != 0;
          EXPECT_TRUE(hosts == 1 || !reduced_by_ranks || interval->high.value <= 1.03 * bound.value) << what;
        }
      }
    }
  }
}

TEST(ExpectedInterval, StandsBesideOthersFloors) {
  const Expectation result = expected(preset("dgx-h100", 1));
  ASSERT_EQ(result.floors.size(), 1u);
  EXPECT_EQ(result.floors.front().who, "Azure");
  EXPECT_DOUBLE_EQ(result.floors.front().busbw.gigabytes_per_second(), 460);
  const std::string text = to_text(result);
  EXPECT_THAT(text, HasSubstr("in the switches of dgx-h100"));
  EXPECT_THAT(text, HasSubstr("multi-ring, ring, nccl:ring"));
  EXPECT_THAT(text, HasSubstr("rings reach 8"));
  EXPECT_THAT(text, HasSubstr("azurehpc-health-checks"));
  const auto json = nlohmann::json::parse(to_json(result));
  EXPECT_EQ(json.at("floors").at(0).at("busbw_GBps"), 460);
  EXPECT_EQ(json.at("intervals").at(0).at("algorithm"), "multi-ring");
  EXPECT_LT(json.at("intervals").at(0).at("busbw_low_GBps"),
            json.at("intervals").at(0).at("busbw_high_GBps"));
  EXPECT_EQ(json.at("intervals").at(0).at("source"), "published");
  EXPECT_TRUE(expected_bounds(preset("dgx-h100", 1)).intervals.empty()) << "when it is not asked for";
  EXPECT_TRUE(expected(preset("minsky", 1)).floors.empty());
}

}  // namespace
}  // namespace polyring

#include "simulation/price_planner.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "base/error.hpp"
#include "collectives/schedule/catalogue.hpp"
#include "tests/sanitized.hpp"
#include "tests/simulation/clusters.hpp"

namespace polyring {
namespace {

using namespace testing;

constexpr Bytes kUnlimited{};

Bytes payload_of(Count count) { return {static_cast<std::uint64_t>(count * kSize)}; }

double price_of(const Plan& plan, const Cluster& cluster, Count count) {
  const Router router(cluster);
  return price(make_schedule(plan, cluster.ranks(), count, kSize), cluster, router, kSize).time.value;
}

/// As for a real machine, in the ranks' own grid. A chunk's messages between hosts are a 16th of it.
Plan cut(const Cluster& cluster, Count count, Bytes longest_chunk, PlanConstraints constraints = {}) {
  constraints.dims = {cluster.host(0).ranks(), cluster.host_count()};
  constraints.patterns = {"direct", "ring"};
  Problem problem = modelled_problem("multi-ring", cluster, count, kSize);
  problem.longest_message = {longest_chunk.value / 16};
  const PlanChoice choice = PricePlanner(cluster, PricePlanner::Trust::machine).choose(problem, constraints);
  EXPECT_EQ(choice.source, PlanSource::price);
  return choice.plan;
}

std::uint64_t chunks(const Plan& plan, Count count) {
  std::uint64_t sum = 0;
  for (const Lane& lane : make_schedule(plan, plan.ranks(), count, kSize).lanes)
    sum += static_cast<std::uint64_t>(lane.chunks);
  return sum;
}

/// Hosts of 4 ranks whose links inside are as fast as said, with no latency anywhere.
Cluster hosts(double in_host) {
  Cluster cluster = uniform(4, 4);
  cluster.fabric.latency = {};
  for (Link& link : cluster.groups.front().machine.links) {
    link.latency = {};
    if (link.bandwidth.known()) link.bandwidth = Bandwidth{in_host};
  }
  return cluster;
}

/// Hosts of 128 GPUs under an NVSwitch: an exchange among them is many transfers.
Cluster large_hosts(int hosts) {
  constexpr int kGpus = 128;
  Machine machine;
  machine.packages.resize(1);
  machine.gpus.resize(kGpus);
  machine.nvswitches = 1;
  machine.nics.resize(1);
  machine.nics.front().ports = {{1, true, {kNic}}};
  const DeviceId package{DeviceKind::package, 0};
  const auto link = [&](DeviceId from, DeviceId to, LinkKind kind, double bandwidth) {
    machine.links.push_back({from, to, kind, {bandwidth}, {}});
  };
  for (int gpu = 0; gpu < kGpus; ++gpu) {
    link({DeviceKind::gpu, gpu}, {DeviceKind::nvswitch, 0}, LinkKind::nvlink, 1e11);
    link({DeviceKind::gpu, gpu}, package, LinkKind::pcie, 1e10);
  }
  link({DeviceKind::nic, 0}, package, LinkKind::pcie, 1e11);
  return cluster_of(std::move(machine), hosts);
}

TEST(Plans, WithTooManyTransfersAreLeftAside) {
  if (kSanitized) GTEST_SKIP() << "takes minutes under a sanitizer; the plain build runs it";
  // Of 51,200 ranks an exchange inside hosts has 6.5 million transfers, which can be priced. There and back
  // they are 13 million, which cannot be simulated, and with two lanes not even priced.
  Cluster cluster = large_hosts(399);
  cluster.groups.push_back(large_hosts(1).groups.front());  // two groups have no equal ranks
  const Router router(cluster);
  const Problem problem = modelled_problem("multi-ring", cluster, Count{1} << 28, kSize);
  PlanConstraints constraints;
  constraints.dims = {128, 400};
  constraints.chunk = {64 << 20};
  const auto priced = price_plans(problem, cluster, router, constraints);
  const auto has_exchanges = [&](int lanes) {
    return std::ranges::any_of(
        priced, [&](const PricedPlan& p) { return !is_all_rings(p.plan) && p.plan.lanes == lanes; });
  };
  EXPECT_TRUE(has_exchanges(1));
  EXPECT_FALSE(has_exchanges(2));
  EXPECT_TRUE(is_all_rings(choose_plan(problem, cluster, router, constraints).plan));
  constraints.patterns = {"direct", "ring"};
  EXPECT_THROW(choose_plan(problem, cluster, router, constraints), Error);
}

TEST(PlansForMachines, AreWholeWhereNothingOverlaps) {
  constexpr Count kCount = 16 << 20;
  const Plan plan = cut(hosts(1e15), kCount, kUnlimited);
  EXPECT_EQ(plan.lanes, 1);
  EXPECT_EQ(plan.chunk, Bytes{});
}

TEST(PlansForMachines, AreInChunksWhereStagesOverlap) {
  constexpr Count kCount = 16 << 20;
  const Cluster cluster = hosts(kNic / 4);  // a host's ranks take as long as its NIC
  const Plan plan = cut(cluster, kCount, kUnlimited);
  Plan whole = plan;
  whole.lanes = 1;
  whole.chunk = {};
  EXPECT_GT(chunks(plan, kCount), 4U);
  EXPECT_LT(price_of(plan, cluster, kCount), 0.7 * price_of(whole, cluster, kCount));
}

TEST(PlansForMachines, AreAtMostFivePercentDearerThanAnyOther) {
  for (const double in_host : {kNic / 16, kNic / 4, kNic, 16 * kNic}) {
    for (const double latency : {0.0, 1e-6, 1e-4}) {
      for (const Count count : {Count{1} << 16, Count{1} << 20, Count{1} << 24}) {
        Cluster cluster = hosts(in_host);
        cluster.fabric.latency = {latency};
        const Plan chosen = cut(cluster, count, kUnlimited);
        const double price = price_of(chosen, cluster, count);
        for (const int lanes : {1, 2, 4}) {
          for (std::uint64_t lane = payload_of(count).value / static_cast<std::uint64_t>(lanes), chunk = lane;
               chunk >= 65536; chunk /= 4) {
            Plan other = chosen;
            other.lanes = lanes;
            other.chunk = {chunk};
            EXPECT_LE(price, 1.05 * price_of(other, cluster, count) * (1 + 1e-9))
                << to_text(chosen) << " and " << to_text(other) << " of " << count;
            if (price_of(other, cluster, count) <= price) {
              EXPECT_LE(chunks(chosen, count), chunks(other, count)) << to_text(other) << " of " << count;
            }
          }
        }
      }
    }
  }
}

TEST(PlansForMachines, HaveFewMessagesWhereEachTakesLong) {
  constexpr Count kCount = 16 << 20;
  Cluster cluster = hosts(kNic / 4);
  cluster.fabric.latency = {1.0};
  const Plan plan = cut(cluster, kCount, kUnlimited);
  EXPECT_EQ(chunks(plan, kCount), 1U) << to_text(plan);
}

TEST(PlansForMachines, PassNoLimit) {
  constexpr Bytes kLongest{300'000};
  for (const double in_host : {kNic / 4, 1e15}) {
    for (const Count count : {Count{10}, Count{50'000}, Count{1} << 20, Count{1} << 24}) {
      const Plan plan = cut(hosts(in_host), count, kLongest);
      const std::uint64_t longest = plan.chunk.value > 0 ? plan.chunk.value : payload_of(count).value;
      EXPECT_LE(longest, kLongest.value) << to_text(plan) << " of " << count;
    }
  }
  EXPECT_EQ(cut(hosts(1e15), 1 << 20, kLongest).chunk, kLongest) << "of equals, the fewest messages";
}

TEST(PlansForMachines, KeepTheConstraints) {
  constexpr Count kCount = 1 << 20;
  PlanConstraints constraints;
  constraints.lanes = 3;
  constraints.chunk = {1 << 20};
  const Plan both = cut(hosts(kNic / 4), kCount, Bytes{300'000}, constraints);
  EXPECT_EQ(both.lanes, 3);
  EXPECT_EQ(both.chunk, Bytes{1 << 20});
  constraints.chunk = {};
  EXPECT_EQ(cut(hosts(kNic / 4), kCount, kUnlimited, constraints).lanes, 3);
  constraints = {};
  constraints.chunk = {70'000};
  EXPECT_EQ(cut(hosts(kNic / 4), kCount, kUnlimited, constraints).chunk, Bytes{70'000});
  EXPECT_EQ(cut(hosts(kNic / 4), kCount, kUnlimited).patterns, (std::vector<std::string>{"direct", "ring"}));
}

TEST(PlansForMachines, CutNothingIntoOne) {
  EXPECT_EQ(chunks(cut(hosts(kNic / 4), 0, kUnlimited), 0), 1U);
  EXPECT_EQ(chunks(cut(hosts(kNic / 4), 1, Bytes{300'000}), 1), 1U);
}

}  // namespace
}  // namespace polyring

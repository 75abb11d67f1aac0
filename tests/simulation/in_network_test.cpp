#include "simulation/in_network.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collectives/schedule/bound.hpp"
#include "collectives/schedule/candidates.hpp"
#include "collectives/schedule/catalogue.hpp"
#include "tests/simulation/clusters.hpp"
#include "tests/topology/support.hpp"
#include "topology/presets.hpp"
#include "topology/processes.hpp"
#include "topology/resize.hpp"

namespace polyring {
namespace {

using namespace testing;
using ::testing::HasSubstr;

constexpr double kSpineLatency = 6e-6;

/// Leaves of `per_leaf` hosts each.
Cluster with_leaves(Cluster cluster, int per_leaf, double uplink) {
  cluster.fabric.hosts_per_leaf = per_leaf;
  cluster.fabric.leaf_uplink = {uplink};
  cluster.fabric.spine_latency = {kSpineLatency};
  return cluster;
}

/// A plan of so many chunks that are all of one size.
Plan in_host(int gpus, Count count = 0, int chunks = 1) {
  Plan plan{"multi-ring", {gpus}};
  if (chunks > 1) plan.chunk = {static_cast<std::uint64_t>(count / chunks * kSize)};
  return plan;
}

Simulation simulation_of(const Plan& plan, const Cluster& cluster, Count count,
                         const SimulationOptions& options = {}) {
  return simulate_in_network(plan, cluster, Router(cluster), count, kSize, options);
}

double time_of(const Plan& plan, const Cluster& cluster, Count count) {
  return simulation_of(plan, cluster, count).time.value;
}

void expect_same(double simulated, double closed_form, const std::string& what) {
  EXPECT_NEAR(simulated / closed_form, 1, 1e-9) << what;
}

double seconds(Count count, double bandwidth) { return static_cast<double>(count) * kSize / bandwidth; }

TEST(InNetwork, GoesUpOnceAndDownOnce) {
  const Count count = 1'000'003;
  for (const int hosts : {2, 3, 16}) {
    expect_same(time_of(in_host(1), uniform(hosts, 1), count), kLatency + 2 * seconds(count, kNic), "1 GPU");
    for (const int gpus : {2, 4}) {
      const double local = (gpus - 1) * (kLocalLatency + seconds(count, kLink) / gpus);
      // The GPUs of a host share its NIC, and have the payload once between them.
      expect_same(time_of(in_host(gpus), uniform(hosts, gpus), count),
                  2 * local + kLatency + 2 * seconds(count, kNic), "several GPUs");
    }
  }
}

TEST(InNetwork, SendsAndReceivesAtTheSameTime) {
  const Count count = 1 << 24;
  for (const int chunks : {4, 16, 64}) {
    // While a chunk comes down, the next goes up.
    const double chunk = seconds(count, kNic) / chunks;
    expect_same(time_of(in_host(1, count, chunks), uniform(8, 1), count), kLatency + (chunks + 1) * chunk,
                "chunks");
  }
}

TEST(InNetwork, CrossesUplinksOnceForAWholeLeaf) {
  const Count count = 1 << 24;
  const double uplink = kNic / 2;
  // Thin for host-based algorithms: four hosts behind half a NIC's bandwidth.
  const Cluster cluster = with_leaves(uniform(8, 1), 4, uplink);
  const double latency = kLatency + kSpineLatency;
  expect_same(time_of(in_host(1), cluster, count),
              latency + 2 * seconds(count, kNic) + 2 * seconds(count, uplink), "whole");
  for (const int chunks : {4, 16}) {
    expect_same(time_of(in_host(1, count, chunks), cluster, count),
                latency + (2 * seconds(count, kNic) + (chunks + 1) * seconds(count, uplink)) / chunks,
                "chunks");
  }
  // A leaf that is not full, and uplinks that are too wide to matter.
  const Cluster wide = with_leaves(uniform(6, 1), 4, 0);
  expect_same(time_of(in_host(1), wide, count), latency + 2 * seconds(count, kNic), "wide");
}

TEST(InNetwork, PaysTheLatencyOfEachLevelOnce) {
  const double bytes = kSize / kNic;
  expect_same(time_of(in_host(1), uniform(64, 1), 1), kLatency + 2 * bytes, "one switch");
  expect_same(time_of(in_host(1), with_leaves(uniform(64, 1), 8, 0), 1), kLatency + kSpineLatency + 2 * bytes,
              "two levels");
  // One element: one GPU of a host holds it.
  const double local = 2 * 3 * (kLocalLatency + kSize / kLink);
  expect_same(time_of(in_host(4), uniform(2, 4), 1), local + kLatency + 2 * bytes, "four GPUs");
  EXPECT_EQ(time_of(in_host(4), uniform(2, 4), 0), 0);
}

TEST(InNetwork, MessagesAndReductionsOfRanksCostWhatIsSaid) {
  const Count count = 1 << 20;
  SimulationOptions options;
  options.costs.message_in_host = {1e-6};
  options.costs.message_between_hosts = {3e-6};
  options.costs.reduction = {2e9};
  const double step = kLocalLatency + 1e-6 + seconds(count, kLink) / 2;
  expect_same(
      simulation_of(in_host(2), with_leaves(uniform(4, 2), 2, kNic), count, options).time.value,
      2 * step + seconds(count, 2e9) / 2 + 2 * 3e-6 + kLatency + kSpineLatency + 4 * seconds(count, kNic),
      "switches reduce for nothing");
}

/// Hosts of two kinds, the last leaf not full.
Cluster uneven() {
  Cluster cluster = uniform(3, 2);
  cluster.groups.push_back(uniform(2, 2).groups.front());
  cluster.groups.back().machine.nics.front().ports.front().bandwidth = {kNic / 3};
  cluster.groups.push_back(cluster.groups.front());
  return with_leaves(cluster, 3, 1.5 * kNic);
}

TEST(InNetwork, ClassesAndSkippedPeriodsChangeNothing) {
  for (const Cluster& cluster : {uniform(6, 4), with_leaves(uniform(12, 2), 3, kNic), uneven()}) {
    for (const int lanes : {1, 2}) {
      for (const std::uint64_t chunk : {0u, 100'000u}) {
        const Plan plan{"multi-ring", {cluster.host(0).ranks()}, {}, lanes, {chunk}};
        SimulationOptions every;
        every.classes = false;
        every.skip = false;
        const Count count = 250'000;
        const double time = simulation_of(plan, cluster, count, every).time.value;
        SimulationOptions classes = every;
        classes.classes = true;
        expect_same(simulation_of(plan, cluster, count, classes).time.value, time, to_text(plan));
        expect_same(time_of(plan, cluster, count), time, to_text(plan));
      }
    }
  }
}

TEST(InNetwork, WaitsForTheSlowestHost) {
  const Count count = 1 << 20;
  const Cluster cluster = uneven();
  EXPECT_GT(time_of(in_host(2), cluster, count), 2 * 3 * seconds(count, kNic));
}

TEST(InNetwork, IsFasterThanTheBoundOfReductionsAtTheRanksAndSlowerThanTheWire) {
  const Count count = 1 << 24;
  const Bytes payload{static_cast<std::uint64_t>(count * kSize)};
  for (const Cluster& cluster : {uniform(64, 4), with_leaves(uniform(64, 4), 16, 16 * kNic)}) {
    const SimulatedPlan best = choose_in_network(cluster, Router(cluster), count, kSize);
    EXPECT_LT(best.simulation.time, allreduce_bound(cluster, payload).time);
    EXPECT_GT(best.simulation.time.value, seconds(count, kNic));
    EXPECT_LT(best.simulation.time.value, 1.1 * seconds(count, kNic)) << to_text(best.plan);
    EXPECT_THAT(Router(cluster).name(best.simulation.bottleneck), HasSubstr("nic0"));
    EXPECT_LE(best.simulation.busy, 1 + 1e-9);
  }
}

/// Plans inside the first host that leave each rank a share.
std::vector<Plan> candidates_in_host(const Cluster& cluster, Count count) {
  const Cluster host = cluster_of(cluster.host(0), 1);
  std::vector<Plan> plans = candidate_plans(modelled_problem("multi-ring", host, count, kSize), host);
  std::erase_if(plans, [](const Plan& plan) {
    return std::ranges::any_of(plan.patterns, [](const std::string& pattern) {
      return find_pattern(pattern)->outcome() != Outcome::scattered;
    });
  });
  return plans;
}

TEST(InNetwork, ChoosesTheFastestOfItsPlans) {
  const Cluster cluster = with_ranks(preset("minsky", 1), 64);
  const Router router(cluster);
  for (const Count count : {Count{1000}, Count{250'000}, Count{25'557'032}}) {
    const SimulatedPlan best = choose_in_network(cluster, router, count, kSize);
    for (const Plan& plan : candidates_in_host(cluster, count)) {
      EXPECT_LE(best.simulation.time.value, time_of(plan, cluster, count) * (1 + 1e-3)) << to_text(plan);
    }
  }
  const SimulatedPlan given = choose_in_network(cluster, router, 1 << 20, kSize, {{}, {}, 3, {65536}});
  EXPECT_EQ(given.plan, (Plan{"multi-ring", {2, 2}, {"ring", "ring"}, 3, {65536}}));
}

TEST(InNetwork, OfOneHostIsTheMultiRing) {
  for (const char* name : {"minsky", "dgx-h100"}) {
    const Cluster cluster = preset(name, 1);
    const Router router(cluster);
    const SimulatedPlan ours = choose_in_network(cluster, router, 1 << 24, kSize);
    const SimulatedPlan multi_ring =
        choose_plan(modelled_problem("multi-ring", cluster, 1 << 24, kSize), cluster, router);
    EXPECT_EQ(ours.plan, multi_ring.plan);
    EXPECT_EQ(ours.simulation.time.value, multi_ring.simulation.time.value);
    EXPECT_EQ(in_network_inputs(cluster).size(), 1u);
  }
}

TEST(InNetwork, ReducesTinyPayloadsToo) {
  // What one host alone would reduce in one shot would leave each rank the whole sum.
  Cluster processes = preset("dgx-h100", 4);
  Machine& host = processes.groups.front().machine;
  host = with_processes(std::move(host), 4);
  for (const Cluster& cluster : {preset("dgx-h100", 4), processes}) {
    const SimulatedPlan chosen = choose_in_network(cluster, Router(cluster), 64, kSize);
    ASSERT_FALSE(chosen.plan.patterns.empty());
    for (const std::string& pattern : chosen.plan.patterns)
      EXPECT_EQ(find_pattern(pattern)->outcome(), Outcome::scattered);
  }
}

TEST(InNetwork, LargeClustersTakeFewEvents) {
  const Cluster summit = with_ranks(preset("summit", 1), 27648);
  const Count count = 25'557'032;
  const Simulation simulation = simulation_of(in_host(6, count, 64), summit, count);
  EXPECT_LT(simulation.actors, 20);
  EXPECT_LT(simulation.events, 100'000u);
  EXPECT_GT(simulation.busy, 0.8);
}

TEST(InNetwork, RefusesHostsThatDifferInGpusAndHostsWithoutANetwork) {
  Cluster unlike = uniform(2, 4);
  unlike.groups.push_back(uniform(1, 2).groups.front());
  EXPECT_THAT(usage_sentence([&] { choose_in_network(unlike, Router(unlike), 1024, kSize); }),
              HasSubstr("equally many GPUs"));
  EXPECT_THAT(usage_sentence([&] { simulation_of(in_host(4), unlike, 1024); }), HasSubstr("equally many"));
  Cluster pods = with_leaves(uniform(8, 4), 2, kNic);
  pods.fabric.pods = {{4, {kNic}}};
  EXPECT_THAT(usage_sentence([&] { simulation_of(in_host(4), pods, 1024); }), HasSubstr("under one spine"));

  Cluster offline = uniform(2, 4);
  offline.groups.front().machine.nics.front().ports.front().up = false;
  EXPECT_THAT(usage_sentence([&] { simulation_of(in_host(4), offline, 1024); }),
              HasSubstr("no network port that is up"));
}

TEST(InNetwork, ChoosesTheFastestOfAllLanesAndChunks) {
  const Cluster cluster = preset("dgx-a100", 2);
  const Router router(cluster);
  const Count count = 25'557'032;
  const SimulatedPlan chosen = choose_in_network(cluster, router, count, kSize);
  for (const Plan& plan : candidates_in_host(cluster, count)) {
    if (plan.dims != chosen.plan.dims || plan.patterns != chosen.plan.patterns ||
        plan.orders != chosen.plan.orders)
      continue;
    EXPECT_LE(chosen.simulation.time.value,
              simulate_in_network(plan, cluster, router, count, kSize).time.value * (1 + 1e-9))
        << to_text(plan);
  }
}

}  // namespace
}  // namespace polyring

#include "simulation/equal_ranks.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "collectives/schedule/catalogue.hpp"
#include "simulation/engine.hpp"
#include "simulation/price_planner.hpp"
#include "tests/simulation/clusters.hpp"
#include "tests/topology/four_nics.hpp"
#include "topology/presets.hpp"
#include "topology/what_if.hpp"

namespace polyring {
namespace {

using namespace testing;

constexpr Costs kCosts{{1e-6}, {3e-6}, {200e9}};

double seconds(const Schedule& schedule, const Cluster& cluster, ElementSizes sizes, bool classes) {
  const Router router(cluster);
  const Workload workload = make_workload(schedule, cluster, router, sizes, kCosts, classes);
  return run(workload, {.window = 2})->seconds;
}

void expect_same(double by_classes, double every, const std::string& what) {
  EXPECT_NEAR(by_classes, every, 1e-11 * every) << what;
}

/// Prices and times with one of each class, and with all ranks.
void expect_nothing_changes(const Schedule& schedule, const Cluster& cluster, ElementSizes sizes,
                            const std::string& what) {
  const Router router(cluster);
  const Price by_classes = price(schedule, cluster, router, sizes, 2, true);
  const Price every = price(schedule, cluster, router, sizes, 2, false);
  expect_same(by_classes.time.value, every.time.value, what);
  ASSERT_EQ(by_classes.stages.size(), every.stages.size()) << what;
  for (std::size_t i = 0; i < every.stages.size(); ++i)
    expect_same(by_classes.stages[i].time.value, every.stages[i].time.value, what + ", a stage");
  const EqualRanks equal = equal_ranks(schedule, divided(schedule), cluster, router, true);
  const auto first = [&](ResourceId resource) { return resource < 0 ? -1 : equal.met(resource).first; };
  EXPECT_EQ(by_classes.bottleneck, first(every.bottleneck)) << what;
  expect_same(seconds(schedule, cluster, sizes, true), seconds(schedule, cluster, sizes, false), what);
}

Cluster with_leaves(Cluster cluster, int hosts, double uplink_in_nics) {
  cluster.fabric.hosts_per_leaf = hosts;
  cluster.fabric.leaf_uplink = uplink_in_nics * network_bandwidth(cluster.host(0));
  cluster.fabric.spine_latency = {4e-6};
  return cluster;
}

Cluster in_pods(Cluster cluster) {
  cluster = with_leaves(std::move(cluster), 2, 1.5);
  cluster.fabric.pods = {{6, 3 * network_bandwidth(cluster.host(0))}};
  return cluster;
}

Cluster without_part(Cluster cluster, const std::string& part) {
  cluster.groups.front().machine = without(cluster.host(0), part);
  return cluster;
}

/// Hosts of two kinds, which have no classes.
Cluster uneven() {
  Cluster cluster = uniform(9, 2);
  cluster.groups.push_back(uniform(3, 2).groups.front());
  cluster.groups.back().machine.nics.front().ports.front().bandwidth = {kNic / 3};
  return cluster;
}

/// All of 12 hosts.
std::vector<Cluster> clusters() {
  Cluster short_domain = preset("gb200-nvl72", 12);
  short_domain.fabric.hosts_per_nvlink_domain = 5;
  Cluster domains = preset("gb200-nvl72", 12);
  domains.fabric.hosts_per_nvlink_domain = 3;
  return {uniform(12, 1),
          uniform(12, 4),
          uneven(),
          with_leaves(uniform(12, 2), 4, 1),
          with_leaves(uniform(12, 2), 5, 0.5),
          in_pods(uniform(12, 2)),
          preset("minsky", 12),
          preset("summit", 12),
          preset("p100-roce", 12),
          with_leaves(preset("dgx-h100", 12), 3, 0.25),
          with_leaves(preset("dgx-a100", 12), 7, 0.5),
          four_nics_for_each(preset("dgx-h100", 12)),
          without_part(preset("dgx-h100", 12), "mlx5_3"),
          without_part(with_leaves(preset("dgx1-v100", 12), 4, 1), "gpu5"),
          short_domain,
          domains};
}

/// Grids of 12 hosts of so many ranks.
std::vector<std::vector<int>> grids(int in_host) {
  std::vector<std::vector<int>> grids{{12 * in_host}, {in_host, 12}, {in_host, 3, 4}, {3 * in_host, 4}};
  if (in_host % 2 == 0) grids.push_back({in_host / 2, 2, 2, 6});
  if (in_host == 1) grids = {{12}, {3, 4}};
  return grids;
}

TEST(EqualRanks, ChangeNoPriceAndNoTimeOfAMultiRing) {
  int cluster_number = 0;
  for (const Cluster& cluster : clusters()) {
    const int in_host = cluster.host(0).ranks();
    for (const std::vector<int>& dims : grids(in_host)) {
      const std::vector<std::string> rings(dims.size(), "ring");
      std::vector<std::vector<std::string>> all_patterns{rings};
      for (const char* first : {"direct", "pairwise", "halving"}) {
        if (dims.front() > 24) continue;
        all_patterns.push_back(rings);
        all_patterns.back().front() = first;
        all_patterns.back().back() = dims.size() > 2 ? "doubling" : "ring";
      }
      for (const auto& patterns : all_patterns) {
        for (const int lanes : {1, 2}) {
          const Plan plan{"multi-ring", dims, patterns, lanes, {lanes == 1 ? 0u : 1'000'000u}};
          const Schedule schedule = make_schedule(plan, cluster.ranks(), 1'000'003, kSize);
          expect_nothing_changes(schedule, cluster, ElementSizes(ElementKind::float16, ReduceOp::sum),
                                 std::to_string(cluster_number) + ": " + cluster.name + ", " + to_text(plan));
        }
      }
    }
    ++cluster_number;
  }
}

TEST(EqualRanks, ChangeNoPriceAndNoTimeOfOtherAlgorithms) {
  for (const Cluster& cluster : {with_leaves(uniform(12, 2), 4, 1), preset("minsky", 12), uniform(13, 3)}) {
    const int ranks = cluster.ranks();
    const int in_host = cluster.host(0).ranks();
    for (const Algorithm& algorithm : algorithms()) {
      // With fewer elements than ranks no two do the same.
      for (const Count count : {Count{1'000'003}, Count{7}}) {
        const Plan plan{std::string(algorithm.name),
                        algorithm.has_dims ? std::vector{in_host, ranks / in_host} : std::vector{ranks}};
        expect_nothing_changes(make_schedule(plan, ranks, count, kSize), cluster, kSize,
                               cluster.name + ", " + to_text(plan) + ", " + std::to_string(count));
      }
    }
  }
}

TEST(EqualRanks, ChangeNothingForOtherCollectivesOrdersAndGroups) {
  const Cluster cluster = preset("minsky", 12);
  const Count count = 480'000;
  for (const Collective collective :
       {Collective::reduce_scatter, Collective::allgather, Collective::alltoall}) {
    const Plan plan{"multi-ring", {4, 12}, {"direct", "pairwise"}};
    expect_nothing_changes(make_schedule(plan, 48, count, kSize, collective), cluster, kSize,
                           to_text(collective));
  }
  for (const std::vector<std::vector<int>>& orders : {std::vector<std::vector<int>>{{0, 2, 1, 3}},
                                                      {{0, 1, 2, 3}, {3, 2, 1, 0}},
                                                      {{1, 0, 2, 3}, {0, 1, 2, 3}}}) {
    const Plan plan{"multi-ring", {4, 12}, {}, 2, {}, orders};
    expect_nothing_changes(make_schedule(plan, 48, count, kSize), cluster, kSize, to_text(plan));
  }
  const Schedule near = make_schedule({"ring", {6}}, 6, count, kSize);
  for (const int stride : {1, 2, 4, 8})
    expect_nothing_changes(in_groups(near, stride, 48), cluster, kSize, "groups " + std::to_string(stride));
}

std::size_t classes_of(const Cluster& cluster, const std::vector<int>& dims) {
  const Router router(cluster);
  const Plan plan{"multi-ring", dims};
  return EqualRanks(make_schedule(plan, cluster.ranks(), 100'000'000, kSize), cluster, router)
      .firsts()
      .size();
}

TEST(EqualRanks, AreAsManyAsTheMachineAllows) {
  EXPECT_EQ(classes_of(uniform(12, 1), {12}), 1u);
  EXPECT_EQ(classes_of(uniform(12, 4), {4, 12}), 1u);
  EXPECT_EQ(classes_of(uniform(12, 4), {48}), 4u) << "a flat ring leaves a host from one of its ranks";
  EXPECT_EQ(classes_of(uneven(), {2, 12}), 24u);
  EXPECT_EQ(classes_of(preset("minsky", 1 << 18), {4, 512, 512}), 2u) << "one for each GPU of a socket";
  EXPECT_EQ(classes_of(preset("dgx-h100", 1 << 17), {8, 512, 256}), 32u) << "a near ring passes leaves of 32";
  EXPECT_EQ(classes_of(preset("dgx-h100", 125'000), {8, 250, 500}), 125'000u)
      << "250 hosts are no whole leaves";
  EXPECT_EQ(classes_of(preset("gb200-nvl72", 18 << 12), {72, 64, 64}), 4u) << "one for each GPU of a host";
}

TEST(EqualRanks, LetAMillionRanksBePlanned) {
  for (const char* name : {"p100-roce", "dgx-b200"}) {
    const Cluster cluster = preset(name, (1 << 20) / preset(name, 1).ranks());
    const Router router(cluster);
    const Count count = 25'557'032;
    const SimulatedPlan chosen =
        choose_plan(modelled_problem("multi-ring", cluster, count, kSize), cluster, router);
    EXPECT_GT(chosen.simulation.time.value, 0) << name;
    EXPECT_LT(chosen.simulation.actors, 100) << name;
  }
}

}  // namespace
}  // namespace polyring

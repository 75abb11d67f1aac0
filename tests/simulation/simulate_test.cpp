#include "simulation/simulate.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "collectives/schedule/bound.hpp"
#include "collectives/schedule/catalogue.hpp"
#include "simulation/price_planner.hpp"
#include "tests/simulation/clusters.hpp"
#include "tests/topology/four_nics.hpp"
#include "tests/topology/support.hpp"
#include "topology/presets.hpp"

namespace polyring {
namespace {

using namespace testing;

Simulation simulation_of(const Plan& plan, const Cluster& cluster, Count count,
                         const SimulationOptions& options = {}) {
  const Router router(cluster);
  return simulate(make_schedule(plan, cluster.ranks(), count, kSize), cluster, router, kSize, options);
}

double time_of(const Plan& plan, const Cluster& cluster, Count count, const SimulationOptions& options = {}) {
  return simulation_of(plan, cluster, count, options).time.value;
}

void expect_same(double simulated, double closed_form, const std::string& what) {
  EXPECT_NEAR(simulated / closed_form, 1, 1e-9) << what;
}

TEST(Simulate, OfFlatAlgorithmsEqualsTheirClosedForms) {
  for (const int n : {2, 3, 4, 7, 8, 16, 64}) {
    const Cluster cluster = uniform(n, 1);
    const Count count = 1'000'003;
    const double bytes = static_cast<double>(count) * kSize;
    const double whole = bytes / kNic;
    const double steps = std::ceil(std::log2(n));
    const double share = whole * (n - 1) / n;
    expect_same(time_of({"ring", {n}}, cluster, count), 2 * ((n - 1) * kLatency + share), "ring");
    expect_same(time_of({"halving-doubling", {n}}, cluster, count), 2 * (steps * kLatency + share),
                "halving");
    expect_same(time_of({"direct", {n}}, cluster, count), 2 * (kLatency + share), "direct");
    expect_same(time_of({"one-shot", {n}}, cluster, count), kLatency + (n - 1) * whole, "one-shot");
    expect_same(time_of({"parameter-server", {n}}, cluster, count), 2 * (kLatency + (n - 1) * whole), "star");
  }
}

TEST(Simulate, OfHierarchiesEqualsTheirClosedForms) {
  for (const auto& [hosts, gpus] : {std::pair{2, 2}, {3, 4}, {8, 4}, {16, 2}}) {
    const Cluster cluster = uniform(hosts, gpus);
    const Count count = 12'000'007;
    const double bytes = static_cast<double>(count) * kSize;
    const double local = (gpus - 1) * (kLocalLatency + bytes / gpus / kLink);
    // All GPUs of a host send at once, over its one NIC.
    const double far = (hosts - 1) * (kLatency + bytes / hosts / kNic);
    expect_same(time_of({"multi-ring", {gpus, hosts}}, cluster, count), 2 * (local + far), "multi-ring");
  }
}

TEST(Simulate, ChunksFollowEachOtherOnAConnection) {
  // One step each way: while a chunk travels, the next is reduced, and the link is never idle but at first.
  const Cluster cluster = uniform(2, 1);
  const Count count = 1 << 20;
  const double chunk = static_cast<double>(count) * kSize / 16 / 2 / kNic;
  SimulationOptions options;
  for (const int window : {2, 4, 8}) {
    options.window = window;
    // A stream has two steps, each half a chunk on the wire: with two or more in flight one of them moves.
    EXPECT_NEAR(time_of({"ring", {2}, {}, 1, {static_cast<std::uint64_t>(count) * kSize / 16}}, cluster,
                        count, options),
                2 * 16 * chunk + 2 * kLatency, 2 * kLatency)
        << window;
  }
  options.window = 1;
  expect_same(time_of({"ring", {2}, {}, 1, {static_cast<std::uint64_t>(count) * kSize / 16}}, cluster, count,
                      options),
              2 * 16 * (chunk + kLatency), "one in flight");
}

TEST(Simulate, MessagesAndReductionsCostWhatIsSaid) {
  const Count count = 1 << 20;
  const double bytes = static_cast<double>(count) * kSize;
  for (const int n : {2, 5, 8}) {
    SimulationOptions options;
    options.costs.message_between_hosts = {3e-6};
    options.costs.message_in_host = {1};  // there are none
    options.costs.reduction = {2e9};
    const double steps = (n - 1) * (kLatency + 3e-6 + bytes / n / kNic);
    expect_same(time_of({"ring", {n}}, uniform(n, 1), count, options), 2 * steps + (n - 1) * bytes / n / 2e9,
                "ring");
    expect_same(time_of({"direct", {n}}, uniform(n, 1), count, options),
                2 * (kLatency + 3e-6 + (n - 1) * bytes / n / kNic) + (n - 1) * bytes / n / 2e9, "direct");
  }
}

/// A cluster whose hosts differ, and hang under leaves with narrow uplinks.
Cluster uneven() {
  Cluster cluster = uniform(3, 2);
  cluster.groups.push_back(uniform(2, 2).groups.front());
  cluster.groups.back().machine.nics.front().ports.front().bandwidth = {kNic / 3};
  cluster.groups.push_back(cluster.groups.front());
  cluster.fabric.hosts_per_leaf = 4;
  cluster.fabric.leaf_uplink = {1.5 * kNic};
  cluster.fabric.spine_latency = {5e-6};
  return cluster;
}

TEST(Simulate, ClassesAndSkippedPeriodsChangeNothing) {
  for (const Cluster& cluster : {uniform(16, 1), uniform(6, 4), uneven()}) {
    const int ranks = cluster.ranks();
    for (const Algorithm& algorithm : algorithms()) {
      for (const int lanes : {1, 2}) {
        for (const std::uint64_t chunk : {0u, 400'000u}) {
          const Plan plan{std::string(algorithm.name),
                          algorithm.has_dims ? std::vector{2, ranks / 2} : std::vector{ranks},
                          {},
                          lanes,
                          {chunk}};
          SimulationOptions every;
          every.classes = false;
          every.skip = false;
          SimulationOptions classes = every;
          classes.classes = true;
          SimulationOptions skip = every;
          skip.skip = true;
          const Count count = 250'000;
          const double time = time_of(plan, cluster, count, every);
          expect_same(time_of(plan, cluster, count, classes), time, to_text(plan) + ", classes");
          expect_same(time_of(plan, cluster, count, skip), time, to_text(plan) + ", skip");
          expect_same(time_of(plan, cluster, count), time, to_text(plan) + ", both");
        }
      }
    }
  }
}

/// With all chunks of a lane in flight, classes on and off.
void expect_exchanged(const Cluster& cluster, const Plan& plan, Count count, int window, int actors) {
  SimulationOptions options;
  options.window = window;
  const Simulation by_classes = simulation_of(plan, cluster, count, options);
  options.classes = false;
  const Simulation every = simulation_of(plan, cluster, count, options);
  expect_same(by_classes.time.value, every.time.value, to_text(plan));
  EXPECT_NEAR(by_classes.busy, every.busy, 1e-9) << to_text(plan);
  EXPECT_EQ(every.actors, cluster.ranks()) << to_text(plan);
  EXPECT_EQ(by_classes.actors, actors) << to_text(plan);
  // As many fewer events as there are ranks in a class.
  EXPECT_EQ(by_classes.events * static_cast<std::uint64_t>(every.actors),
            every.events * static_cast<std::uint64_t>(actors))
      << to_text(plan);
}

TEST(Simulate, RanksAreAlikeThatChangePlacesWithTheirLanes) {
  // In a double binary tree over 16 hosts no two are equal; but host 15 − i does in the one tree what host i
  // does in the other, and GPU 2 in its host's second chain what GPU 0 does in the first.
  const Count count = 250'000;
  const Plan tree{"tree", {16}, {}, 1, {100'000}};
  const Plan chains{"chain-tree", {4, 16}, {}, 2, {50'000}};
  expect_exchanged(uniform(16, 1), tree, count, 5, 8);
  expect_exchanged(uniform(16, 4), chains, count, 5, 16);
  expect_exchanged(uniform(16, 4), {"chain-tree", {4, 16}, {}, 1, {100'000}}, count, 5, 32);
  // Five chunks, four of them in flight: the lane that is done first goes on first, whichever it is.
  expect_exchanged(uniform(16, 1), tree, count, 4, 16);
  expect_exchanged(uniform(16, 4), chains, count, 4, 64);
  // Lanes that are not equally long, and hosts that are not equally fast.
  expect_exchanged(uniform(16, 4), chains, count + 1, 5, 64);
  Cluster uneven = uniform(15, 1);
  uneven.groups.push_back({uneven.groups.front().machine, 1});
  uneven.groups.back().machine.nics.front().ports.front().bandwidth = {kNic / 3};
  expect_exchanged(uneven, tree, count, 5, 16);
}

TEST(Simulate, RanksThatReduceForSeveralLanesKeepTheirPlaces) {
  // Where chunks of two lanes arrive together, that of the first is reduced first.
  SimulationOptions options;
  options.window = 5;
  options.costs.reduction = {2e9};
  const Plan chains{"chain-tree", {4, 16}, {}, 2, {50'000}};
  EXPECT_EQ(simulation_of(chains, uniform(16, 4), 250'000, options).actors, 64);
}

TEST(Simulate, LanesThatDoTheSameInTurnAreOne) {
  // Each lane's ring enters a host at a GPU of its own.
  const Plan rings{"ring", {4, 4}, {}, 4, {}, {{0, 1, 2, 3}, {1, 2, 3, 0}, {2, 3, 0, 1}, {3, 0, 1, 2}}};
  SimulationOptions options;
  const Simulation one = simulation_of(rings, uniform(4, 4), 250'000, options);
  options.classes = false;
  expect_same(one.time.value, simulation_of(rings, uniform(4, 4), 250'000, options).time.value, "rings");
  EXPECT_EQ(one.actors, 1);
}

TEST(Simulate, LargeClustersTakeFewEvents) {
  const Count count = 25'557'032;
  const auto chunk = [&](int chunks) {
    return Bytes{static_cast<std::uint64_t>(count * kSize / chunks + kSize)};
  };
  const Simulation ring = simulation_of({"ring", {256}, {}, 1, chunk(64)}, uniform(256, 1), count);
  EXPECT_EQ(ring.actors, 1);
  EXPECT_LT(ring.events, 10'000u);
  // 64 chunks, 4 of them in flight, are bound by the wire, except the first and the last.
  EXPECT_GT(ring.busy, 0.85);
  const Simulation grid =
      simulation_of({"multi-ring", {4, 64, 64}, {}, 1, chunk(16)}, uniform(4096, 4), count);
  EXPECT_LT(grid.actors, 5);
  EXPECT_LT(grid.events, 1'000'000u);
}

TEST(ConsiderPlans, PutsTheFastestFirstAndKeepsTheOthers) {
  const Cluster cluster = preset("dgx1-p100", 1);
  const Router router(cluster);
  const Count count = 64'000'000;
  const auto considered =
      consider_plans(modelled_problem("multi-ring", cluster, count, kSize), cluster, router);
  EXPECT_EQ(considered.size(),
            price_plans(modelled_problem("multi-ring", cluster, count, kSize), cluster, router).size());
  ASSERT_TRUE(considered.front().simulation);
  bool simulated = true;
  for (std::size_t i = 1; i < considered.size(); ++i) {
    const ConsideredPlan& before = considered[i - 1];
    simulated = simulated && considered[i].simulation.has_value();
    EXPECT_EQ(considered[i].simulation.has_value(), simulated) << "those simulated come first";
    if (simulated) {
      EXPECT_LE(before.simulation->time, considered[i].simulation->time);
    } else if (!before.simulation) {
      EXPECT_LE(before.price.time, considered[i].price.time);
    }
  }
  const SimulatedPlan chosen =
      choose_plan(modelled_problem("multi-ring", cluster, count, kSize), cluster, router);
  EXPECT_EQ(chosen.plan, considered.front().plan);
  EXPECT_EQ(chosen.plan.orders.size(), 4u) << to_text(chosen.plan);
  // As predicted by hand: four lanes of 20 GB/s, 14 steps of an eighth of a lane and 0.6 us.
  EXPECT_NEAR(chosen.simulation.time.value / (14 * (0.6e-6 + 256e6 / 4 / 8 / 20e9)), 1, 0.01);
}

TEST(ConsiderPlans, TakesFewerChunksWhereTooManyRanksAreDifferent) {
  // The last leaf is not full, so that no two ranks are equal; 64 chunks would spare next to nothing by
  // price.
  const Cluster cluster = preset("dgx-a100", 1090);
  const Router router(cluster);
  const Count count = 25'557'032;
  const auto considered =
      consider_plans(modelled_problem("halving-doubling", cluster, count, kSize), cluster, router);
  ASSERT_EQ(considered.size(), 4u);
  ASSERT_TRUE(considered.front().simulation);
  EXPECT_EQ(considered.front().plan.chunk, Bytes{});
  EXPECT_EQ(considered.front().simulation->actors, cluster.ranks());
  EXPECT_LT(considered.front().simulation->events, 1'000'000u);
  for (std::size_t i = 1; i < considered.size(); ++i) {
    EXPECT_FALSE(considered[i].simulation);
    EXPECT_LE(considered[1].price.time, considered[i].price.time);
  }
  EXPECT_LE(considered.front().price.time.value, 1.05 * considered[1].price.time.value);
}

TEST(Simulate, NothingIsFasterThanTheBound) {
  for (const Cluster& cluster : {uniform(6, 4), uneven()}) {
    const Router router(cluster);
    for (const Algorithm& algorithm : algorithms()) {
      const SimulatedPlan best =
          choose_plan(modelled_problem(algorithm.name, cluster, 1 << 22, kSize), cluster, router);
      EXPECT_GE(best.simulation.time.value, allreduce_bound(cluster, {kSize << 22}).time.value * (1 - 1e-9))
          << to_text(best.plan);
      EXPECT_GE(best.simulation.busy, 0) << to_text(best.plan);
      EXPECT_LE(best.simulation.busy, 1 + 1e-9) << to_text(best.plan);
    }
  }
}

TEST(Simulate, FourNicsOfARankAreAsGoodAsOneOfTheirSpeed) {
  Cluster wide = preset("dgx-h100", 3);
  Cluster narrow = wide;  // so that a GPU's own link limits it, and not its NICs
  for (Link& link : narrow.groups.front().machine.links) {
    if (link.from.kind == DeviceKind::gpu && link.kind == LinkKind::pcie)
      link.bandwidth = gigabytes_per_second(30);
  }
  for (const Cluster& cluster : {wide, narrow}) {
    const Cluster four = testing::four_nics_for_each(cluster);
    for (const Algorithm& algorithm : algorithms()) {
      const Plan plan{std::string(algorithm.name),
                      algorithm.has_dims ? std::vector{8, 3} : std::vector{24},
                      {},
                      algorithm.lanes_differ ? 2 : 1,
                      {4'000'000}};
      const Count count = 4'000'000;
      const double time = time_of(plan, cluster, count);
      expect_same(time_of(plan, four, count), time, to_text(plan));
      SimulationOptions every;
      every.classes = false;
      expect_same(time_of(plan, four, count, every), time, to_text(plan) + ", every rank");
      const auto priced = [&](const Cluster& of) {
        return price(make_schedule(plan, of.ranks(), count, kSize), of, Router(of), kSize).time.value;
      };
      EXPECT_NEAR(priced(four) / priced(cluster), 1, 1e-9) << to_text(plan);
    }
  }
}

TEST(Simulate, PayloadsOfFewElementsHaveTheirOwnTransfers) {
  // One element over 4 ranks: it goes around the ring once and back, whatever the empty blocks.
  const Cluster cluster = uniform(4, 1);
  const double step = kLatency + kSize / kNic;
  expect_same(time_of({"ring", {4}}, cluster, 1), 6 * step, "one element");
  EXPECT_EQ(time_of({"ring", {4}}, cluster, 0), 0);
  EXPECT_EQ(time_of({"ring", {1}}, uniform(1, 1), 1000), 0);
}

TEST(Simulate, RefusesAClusterOfAnotherSize) {
  const Cluster cluster = uniform(4, 1);
  const Router router(cluster);
  const std::string sentence = usage_sentence([&] {
    simulate(make_schedule({"ring", {3}}, 3, 10, kSize), cluster, router, kSize);
  });
  EXPECT_THAT(sentence, ::testing::HasSubstr("3 ranks cannot run on a cluster of 4"));
}

}  // namespace
}  // namespace polyring

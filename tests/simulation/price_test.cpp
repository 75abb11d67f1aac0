#include "simulation/price.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.hpp"
#include "collectives/schedule/bound.hpp"
#include "collectives/schedule/catalogue.hpp"
#include "simulation/price_planner.hpp"
#include "tests/simulation/clusters.hpp"
#include "topology/presets.hpp"

namespace polyring {
namespace {

using namespace testing;

double price_of(const Plan& plan, const Cluster& cluster, Count count) {
  const Router router(cluster);
  return price(make_schedule(plan, cluster.ranks(), count, kSize), cluster, router, kSize).time.value;
}

void expect_same(double price, double closed_form, const std::string& what) {
  EXPECT_NEAR(price / closed_form, 1, 1e-12) << what;
}

TEST(Price, OfFlatAlgorithmsEqualsTheirClosedForms) {
  for (const int n : {2, 3, 4, 7, 8, 16, 64}) {
    const Cluster cluster = uniform(n, 1);
    const Count count = 1000 * n;
    const double bytes = static_cast<double>(count) * kSize;
    const double moved = 2.0 * (n - 1) / n * bytes / kNic;
    const int log = static_cast<int>(std::ceil(std::log2(n)));
    const std::string ranks = std::to_string(n);
    expect_same(price_of({"ring", {n}}, cluster, count), 2 * (n - 1) * kLatency + moved, "ring " + ranks);
    expect_same(price_of({"multi-ring", {n}}, cluster, count), 2 * (n - 1) * kLatency + moved,
                "multi-ring " + ranks);
    expect_same(price_of({"halving-doubling", {n}}, cluster, count), 2 * log * kLatency + moved,
                "halving " + ranks);
    expect_same(price_of({"direct", {n}}, cluster, count), 2 * kLatency + moved, "direct " + ranks);
    expect_same(price_of({"parameter-server", {n}}, cluster, count), 2 * (kLatency + (n - 1) * bytes / kNic),
                "parameter server " + ranks);
  }
}

TEST(Price, OfSmallTreesEqualsTheSumOverTheirLevels) {
  const double bytes = 4000 * kSize;
  // Two ranks: half the payload each way at once. Four: at the first level the middle ranks receive two
  // halves.
  expect_same(price_of({"tree", {2}}, uniform(2, 1), 4000), 2 * (kLatency + bytes / 2 / kNic), "2");
  expect_same(price_of({"tree", {4}}, uniform(4, 1), 4000),
              2 * (2 * kLatency + bytes / kNic + bytes / 2 / kNic), "4");
}

TEST(Price, OfTheMultiRingSharesAHostsNicAmongItsRanks) {
  for (const int hosts : {2, 8}) {
    for (const int gpus : {2, 4}) {
      const Count count = 1000 * hosts * gpus;
      const double bytes = static_cast<double>(count) * kSize;
      const double inside = 2 * (gpus - 1) * (kLocalLatency + bytes / gpus / kLink);
      const double between = 2 * (hosts - 1) * (kLatency + bytes / hosts / kNic);
      expect_same(price_of({"multi-ring", {gpus, hosts}}, uniform(hosts, gpus), count), inside + between,
                  "two dims");
    }
  }
}

TEST(Price, OfHalvesHasPartialSumsOfTwiceTheirSize) {
  const ElementSizes halves(ElementKind::float16, ReduceOp::sum);
  for (const int n : {2, 3, 8}) {
    const Cluster cluster = uniform(n, 1);
    const Router router(cluster);
    const Count count = 1000 * n;
    // Inputs in the first step, partial sums in n - 2, what is complete in n - 1, of 1000 elements each.
    const double moved = 1000.0 * (2 + 4 * (n - 2) + 2 * (n - 1)) / kNic;
    const Schedule ring = make_schedule({"ring", {n}}, n, count, 2);
    expect_same(price(ring, cluster, router, halves).time.value, 2 * (n - 1) * kLatency + moved, "ring");
    EXPECT_NEAR(simulate(ring, cluster, router, halves).time.value, 2 * (n - 1) * kLatency + moved, 1e-12);
    const Schedule direct = make_schedule({"direct", {n}}, n, count, 2);
    expect_same(price(direct, cluster, router, halves).time.value,
                price(direct, cluster, router, 2).time.value, "one step sums inputs only");
  }
}

TEST(Price, OfChunksIsAPipeline) {
  // Bandwidth decides: every chunk but the first adds the NIC's time.
  const int n = 8;
  const Count count = 1 << 24;
  const double bytes = static_cast<double>(count) * kSize;
  Plan plan{"ring", {n}, {}, 1, {static_cast<std::uint64_t>(bytes / 16)}};
  const double chunk_moved = 2.0 * (n - 1) / n * bytes / 16 / kNic;
  const double one = 2 * (n - 1) * kLatency + chunk_moved;
  expect_same(price_of(plan, uniform(n, 1), count), one + 15 * chunk_moved, "bandwidth");
  // Latency decides: chunks are too small to keep four in flight busy.
  plan.chunk = {n * kSize};
  const double tiny = 2 * (n - 1) * (kLatency + kSize / kNic);
  expect_same(price_of(plan, uniform(n, 1), 100 * n), tiny + 99 * tiny / kDefaultWindow, "latency");
}

TEST(Price, OfOverlappedDimensionsIsTheSlowest) {
  const Count count = 1 << 24;
  const double bytes = static_cast<double>(count) * kSize;
  const Plan plan{"multi-ring", {4, 8}, {}, 1, {static_cast<std::uint64_t>(bytes / 64)}};
  const double nic = 2.0 * 7 / 8 * bytes / kNic;
  const double got = price_of(plan, uniform(8, 4), count);
  EXPECT_GT(got, nic);
  EXPECT_LT(got, 1.05 * nic) << "the rings inside a host should hide behind the network";
}

TEST(Price, NeverBeatsTheBound) {
  for (const Algorithm& algorithm : algorithms()) {
    for (const int hosts : {1, 2, 3, 8}) {
      for (const int gpus : {1, 2, 4}) {
        if (hosts * gpus == 1) continue;
        const Cluster cluster = uniform(hosts, gpus);
        const Router router(cluster);
        const Count count = 1 << 20;
        const double bound = allreduce_bound(cluster, {count * kSize}).time.value;
        for (const PricedPlan& priced :
             price_plans(modelled_problem(algorithm.name, cluster, count, kSize), cluster, router)) {
          EXPECT_GE(priced.price.time.value, bound * (1 - 1e-9))
              << to_text(priced.plan) << ", " << hosts << " hosts";
        }
      }
    }
  }
}

TEST(Price, NeverBeatsTheBoundOfAKnownMachine) {
  for (const std::string_view name : preset_names()) {
    for (const int hosts : {1, 3, 8}) {
      const Cluster cluster = preset(name, hosts);
      const Router router(cluster);
      for (const Algorithm& algorithm : algorithms()) {
        for (const Count count : {Count{1}, Count{1000}, Count{1} << 22}) {
          const double bound =
              allreduce_bound(cluster, {static_cast<std::uint64_t>(count * kSize)}).time.value;
          const auto plans =
              price_plans(modelled_problem(algorithm.name, cluster, count, kSize), cluster, router);
          EXPECT_GE(plans.front().price.time.value, bound * (1 - 1e-9))
              << name << ", " << hosts << " hosts, " << to_text(plans.front().plan);
        }
      }
    }
  }
}

TEST(Price, OfAPayloadSmallerThanTheRingIsTheSameBothWays) {
  // Most blocks are empty: the steps differ, and what is reduced over slow links is spread over them
  // too.
  const Cluster cluster = preset("minsky", 8);
  const Router router(cluster);
  for (const Count count : {1, 5, 31}) {
    const Price result = price(make_schedule({"ring", {4, 8}}, 32, count, kSize), cluster, router, kSize);
    ASSERT_EQ(result.stages.size(), 2u);
    EXPECT_NEAR(result.stages[0].time.value / result.stages[1].time.value, 1, 1e-9) << count << " elements";
  }
}

TEST(PricePlans, ChooseWhatIsLeftFreeForGivenDimensions) {
  // One flat ring as a multi-ring is no worse than the ring, whose lanes and chunks are chosen too, by more
  // than the ring's better use of the hosts' ranks.
  const Cluster cluster = preset("minsky", 64);
  const Router router(cluster);
  const auto flat = price_plans(modelled_problem("multi-ring", cluster, 25'000'000, kSize), cluster, router,
                                {{256}, {}, 0, {}});
  EXPECT_EQ(flat.front().plan.dims, std::vector<int>{256});
  Plan tuned_for_another =
      price_plans(modelled_problem("multi-ring", cluster, 25'000'000, kSize), cluster, router).front().plan;
  tuned_for_another.dims = {256};
  tuned_for_another.patterns = {};
  const Price mixed = price(make_schedule(tuned_for_another, 256, 25'000'000, kSize), cluster, router, kSize);
  EXPECT_LT(flat.front().price.time.value, 0.6 * mixed.time.value);
}

TEST(PricePlans, ReachTheBoundOfOneHostAsFarAsItsLinksCan) {
  // The bound counts a GPU's PCIe beside its NVLinks: rings of NVLinks alone reach at most 80 of 95.75 GB/s
  // with P100, 150 of 165.75 with V100. Between sockets the bus is all that there is, in pairs of one GPU
  // from each.
  for (const auto& [name, least, most] : {std::tuple{"dgx1-p100", 0.83, 80 / 95.75},
                                          {"big-basin", 0.83, 80 / 95.75},
                                          {"dgx1-v100", 0.90, 150 / 165.75},
                                          {"minsky", 0.95, 1.0},
                                          {"ac922", 0.95, 1.0},
                                          {"summit", 0.95, 1.0}}) {
    const Cluster cluster = preset(name, 1);
    const Router router(cluster);
    const Count count = 64'000'000;
    const Bytes payload{256'000'000};
    const PricedPlan best =
        price_plans(modelled_problem("multi-ring", cluster, count, kSize), cluster, router).front();
    const double reached = allreduce_bound(cluster, payload).time.value / best.price.time.value;
    EXPECT_GE(reached, least) << name << ' ' << to_text(best.plan);
    EXPECT_LE(reached, most + 1e-9) << name << ' ' << to_text(best.plan);
  }
}

TEST(PricePlans, AreThePricesOfTheirSchedules) {
  for (const char* name : {"minsky", "dgx1-p100"}) {
    const Cluster cluster = preset(name, 4);
    const Router router(cluster);
    // A multiple of all that it is cut into, so that no chunk is an element longer than another.
    const Count count = Count{32} * 4 * 64 * 1000;
    for (const std::string_view algorithm : {"multi-ring", "ring", "chain-tree"}) {
      for (const PricedPlan& priced :
           price_plans(modelled_problem(algorithm, cluster, count, kSize), cluster, router)) {
        const Schedule schedule = make_schedule(priced.plan, cluster.ranks(), count, kSize);
        expect_same(priced.price.time.value, price(schedule, cluster, router, kSize).time.value,
                    to_text(priced.plan));
      }
    }
  }
}

TEST(BusyTimes, AreWhatTheSchedulesBytesTake) {
  // In rank order the ring over a Minsky's four GPUs crosses the bus twice: both directions carry 3/4 of the
  // payload down and as much up. In pairs across it they carry a quarter for each GPU of a socket.
  const Cluster cluster = preset("minsky", 1);
  const Router router(cluster);
  const Count count = 1'200'000;
  const double payload = static_cast<double>(count) * kSize;
  const auto on_bus = [&](const Plan& plan) {
    const auto busy = busy_times(make_schedule(plan, 4, count, kSize), cluster, router, kSize);
    const Machine& machine = cluster.host(0);
    for (int link = 0; link < static_cast<int>(machine.links.size()); ++link) {
      const Link& of = machine.links[static_cast<std::size_t>(link)];
      if (of.kind != LinkKind::socket_bus) continue;
      const double forward = busy[static_cast<std::size_t>(router.of_link(0, link, true))].value;
      EXPECT_NEAR(busy[static_cast<std::size_t>(router.of_link(0, link, false))].value / forward, 1, 1e-9);
      return forward * of.bandwidth.value / payload;
    }
    return 0.0;
  };
  EXPECT_NEAR(on_bus({"multi-ring", {4}}), 1.5, 1e-9);
  EXPECT_NEAR(on_bus({"multi-ring", {2, 2}}), 1.0, 1e-9);
  EXPECT_NEAR(on_bus({"multi-ring", {2, 2}, {}, 1, {480'000}}), 1.0, 1e-9) << "in chunks";
  EXPECT_NEAR(on_bus({"multi-ring", {4}, {}, 1, {}, {{0, 2, 1, 3}}}), 3.0, 1e-9) << "four times across";
}

TEST(Rails, CarryTheSameInPlansBetweenHosts) {
  for (const std::string_view name : preset_names()) {
    Cluster cluster = preset(name, 4);
    // NICs join NVLink domains only: two of two hosts.
    if (cluster.hosts_per_domain() > 1) cluster.fabric.hosts_per_nvlink_domain = 2;
    const Router router(cluster);
    const Machine& machine = cluster.host(0);
    const Count count = Count{cluster.ranks()} * 16 * 1000;
    for (const char* algorithm : {"multi-ring", "ring"}) {
      const PricedPlan best =
          price_plans(modelled_problem(algorithm, cluster, count, kSize), cluster, router).front();
      if (best.plan.orders.size() == 7) continue;  // of a MI300X's mesh, on 8 NICs
      const auto busy =
          busy_times(make_schedule(best.plan, cluster.ranks(), count, kSize), cluster, router, kSize);
      for (int nic = 0; nic < static_cast<int>(machine.nics.size()); ++nic) {
        for (const bool out : {true, false}) {
          const double first = busy[static_cast<std::size_t>(router.of_nic(0, 0, out))].value;
          EXPECT_GT(first, 0) << name;
          EXPECT_NEAR(busy[static_cast<std::size_t>(router.of_nic(0, nic, out))].value / first, 1, 1e-3)
              << name << ' ' << to_text(best.plan) << ' ' << machine.nics[static_cast<std::size_t>(nic)].name;
        }
      }
    }
  }
}

TEST(Price, NamesTheBottleneck) {
  const Cluster cluster = uniform(4, 2);
  const Router router(cluster);
  const Price result = price(make_schedule({"multi-ring", {2, 4}}, 8, 8000, kSize), cluster, router, kSize);
  EXPECT_THAT(router.name(result.bottleneck), ::testing::HasSubstr("nic0"));
  ASSERT_EQ(result.stages.size(), 4u);
  EXPECT_THAT(router.name(result.stages[0].bottleneck), ::testing::HasSubstr("nvlink"));
  EXPECT_THAT(router.name(result.stages[1].bottleneck), ::testing::HasSubstr("nic0"));
}

TEST(PricePlans, PutTheCheapestFirst) {
  const Cluster cluster = uniform(8, 4);
  const Router router(cluster);
  const auto plans = price_plans(modelled_problem("multi-ring", cluster, 25557032, kSize), cluster, router);
  for (std::size_t i = 1; i < plans.size(); ++i) EXPECT_LE(plans[i - 1].price.time, plans[i].price.time);
  EXPECT_GT(plans.front().plan.dims.size(), 1u) << "one flat ring should not win over hosts of four GPUs";
}

TEST(Price, OfAnotherClusterIsRefused) {
  const Cluster cluster = uniform(4, 1);
  const Router router(cluster);
  EXPECT_THROW(price(make_schedule({"ring", {8}}, 8, 100, kSize), cluster, router, kSize), Error);
}

TEST(Price, OfNoWindowIsRefused) {
  const Cluster cluster = uniform(4, 1);
  const Schedule schedule = make_schedule({"ring", {4}}, 4, 100, kSize);
  EXPECT_THROW(price(schedule, cluster, Router(cluster), kSize, 0), Error);
}

TEST(Price, OfManyRanksStaysAffordable) {
  const Cluster cluster = uniform(4608, 6);
  const Router router(cluster);
  EXPECT_GT(price_plans(modelled_problem("multi-ring", cluster, 25557032, kSize), cluster, router)
                .front()
                .price.time.value,
            0);
  const Schedule direct = make_schedule({"direct", {27648}}, 27648, 1 << 20, kSize);
  EXPECT_GT(price(direct, cluster, router, kSize).time.value, 0) << "six of its ranks are looked at";
  EXPECT_THROW(price(direct, cluster, router, kSize, 1, false), Error);
}

}  // namespace
}  // namespace polyring

#include "simulation/simulate.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "collectives/catalogue.hpp"
#include "tests/simulation/clusters.hpp"

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

}  // namespace
}  // namespace polyring

// No algorithm is simulated faster than the bound of the known machines, whatever the size.
#include <gtest/gtest.h>

#include "collectives/schedule/bound.hpp"
#include "collectives/schedule/catalogue.hpp"
#include "simulation/price_planner.hpp"
#include "topology/presets.hpp"

namespace polyring {
namespace {

constexpr int kSize = 4;

class BoundHolds : public ::testing::TestWithParam<std::string_view> {};

TEST_P(BoundHolds, ForEveryAlgorithmAndSize) {
  for (const int hosts : {1, 2, 5}) {
    const Cluster cluster = preset(GetParam(), hosts);
    if (cluster.ranks() < 2) continue;  // nobody to reduce with
    const Router router(cluster);
    for (const Count count : {Count{1}, Count{1000}, Count{1} << 18, Count{1} << 26}) {
      const Bytes payload{static_cast<std::uint64_t>(count * kSize)};
      const Bound bound = allreduce_bound(cluster, payload);
      ASSERT_GT(bound.time.value, 0);
      for (const Algorithm& algorithm : algorithms()) {
        const SimulatedPlan best =
            choose_plan(modelled_problem(algorithm.name, cluster, count, kSize), cluster, router);
        EXPECT_GE(best.simulation.time.value, bound.time.value * (1 - 1e-9))
            << hosts << " hosts, " << to_text(payload) << ", " << to_text(best.plan) << "; " << bound.cut;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Presets, BoundHolds, ::testing::ValuesIn(preset_names()), [](const auto& row) {
  std::string name(row.param);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
}  // namespace polyring

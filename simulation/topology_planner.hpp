// TopologyPlanner: plans for ranks that run, on links whose speeds are known or typical.
#pragma once

#include <optional>
#include <string>

#include "collectives/schedule/planner.hpp"
#include "simulation/calibration.hpp"
#include "simulation/price_planner.hpp"
#include "topology/cluster.hpp"

namespace polyring {

/// The ranks' cluster with typical speeds for the links that have none; only the choice of a plan may follow
/// from them. Nothing where links cannot be told apart, or it is not known how fast one of them is: `why`.
/// `on_gpus`: where the ranks' data are.
std::optional<Cluster> with_typical_speeds(const Cluster& cluster, bool on_gpus, std::string& why);

/// The classes of links that `known` has no speeds for get typical ones.
Cluster with_typical_speeds_beside(const Calibration& known, Cluster cluster, bool on_gpus);

/// The most ranks for which all algorithms are priced; of more, multi-ring alone.
inline constexpr int kMostPricedRanks = 1024;

/// Plans allreduces by price, and everything else by rules. Ranks with the same cluster get the same plans.
class TopologyPlanner final : public Planner {
 public:
  /// The ranks' cluster, without links of unknown speed. `on_gpus`: where their data are.
  TopologyPlanner(Cluster cluster, bool on_gpus)
      : prices_(std::move(cluster), PricePlanner::Trust::machine), on_gpus_(on_gpus) {}

  PlanChoice choose(const Problem& problem, const PlanConstraints& constraints) const override;

 private:
  PricePlanner prices_;
  RulePlanner rules_;
  bool on_gpus_;
};

}  // namespace polyring

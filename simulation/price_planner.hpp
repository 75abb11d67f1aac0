// Chooses plans by what they cost on a cluster: the price of each candidate, and a simulation of the few that
// might be the fastest.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collectives/schedule/planner.hpp"
#include "simulation/price.hpp"
#include "simulation/simulate.hpp"

namespace polyring {

struct SimulatedPlan {
  Plan plan;
  Simulation simulation;
};

struct ConsideredPlan {
  Plan plan;
  Price price;
  std::optional<Simulation> simulation;  // of the few that might be the fastest
  std::string unknown{};                 // unknown_speed() of it: where there is one, times mean nothing
};

/// The candidates for a problem; all keep the constraints. Those with the lowest prices are simulated and
/// come first, the fastest at the front; the others follow, by price. A simulation stops when it takes too
/// long or turns out slower than another one. At least one plan is simulated. A plan that crosses links of
/// unknown speed is not, if another one does not. If the cheapest plan has too many messages, as with
/// thousands of ranks that are all different, the one with the fewest chunks among those within 5 % of its
/// price is simulated instead. Plans
/// with too many transfers to be priced or simulated are left aside; throws as price() and make_workload() do
/// where all have.
std::vector<ConsideredPlan> consider_plans(const Problem& problem, const Cluster& cluster,
                                           const Router& router, const PlanConstraints& constraints = {},
                                           const SimulationOptions& options = {});

/// The first of them.
SimulatedPlan choose_plan(const Problem& problem, const Cluster& cluster, const Router& router,
                          const PlanConstraints& constraints = {}, const SimulationOptions& options = {});

/// Plans for one cluster.
class PricePlanner final : public Planner {
 public:
  enum class Trust {
    /// The links' speeds are exact, and messages cost nothing else: a simulation decides.
    model,
    /// The links' speeds are typical or fitted, and each message also costs a core some time: prices within
    /// 5 % count as equal, and the plan with the fewest chunks is taken.
    machine
  };

  /// Keeps no reference.
  PricePlanner(Cluster cluster, Trust trust)
      : cluster_(std::move(cluster)), router_(cluster_), trust_(trust) {}
  PricePlanner(const PricePlanner&) = delete;
  PricePlanner& operator=(const PricePlanner&) = delete;

  /// The problem's grid must be the cluster's. Throws a usage Error where all plans for a model cross links
  /// of unknown speed.
  PlanChoice choose(const Problem& problem, const PlanConstraints& constraints) const override;

 private:
  Cluster cluster_;
  Router router_;
  Trust trust_;
};

}  // namespace polyring

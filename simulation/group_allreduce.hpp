// The allreduces of groups of ranks, all at the same time: of gradients among the replicas of a split model,
// of activations among the parts of a split layer.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "collectives/schedule/plan.hpp"
#include "collectives/schedule/schedule.hpp"
#include "simulation/simulate.hpp"
#include "topology/route.hpp"

namespace polyring {

class GroupAllreduce {
 public:
  /// Groups of `members` ranks that are `stride` apart; together they are all ranks of the cluster. Their
  /// plan is for `largest` elements: where each group fills hosts, the one that choose_plan() has for such
  /// hosts alone, else the one of lowest price in all groups at once. Keeps references to cluster and router.
  /// Throws as make_schedule() and price() do.
  GroupAllreduce(const Cluster& cluster, const Router& router, const std::string& algorithm,
                 const PlanConstraints& constraints, ElementSizes sizes, int members, int stride,
                 Count largest, const SimulationOptions& options = {});

  /// All groups reduce `count` elements each. Groups of one have nothing to do.
  const Simulation& run(Count count);
  Seconds time(Count count) { return run(count).time; }

  const Plan& plan() const { return plan_; }

 private:
  bool fills_hosts() const;
  Plan cheapest(const std::string& algorithm, const PlanConstraints& constraints, Count largest) const;
  Schedule schedule(const Plan& plan, Count count) const;
  std::vector<Plan> candidates(const std::string& algorithm, const PlanConstraints& constraints,
                               Count largest) const;

  const Cluster& cluster_;
  const Router& router_;
  ElementSizes sizes_;
  int members_;
  int stride_;
  SimulationOptions options_;
  Plan plan_{.algorithm = ""};
  std::map<Count, Simulation> runs_;  // of those that were asked for
};

}  // namespace polyring

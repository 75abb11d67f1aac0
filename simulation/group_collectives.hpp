// Collectives of groups of ranks, all groups at the same time: gradients and weights among the replicas of a
// split model, activations among the parts of a split layer, tokens among the holders of experts.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collectives/schedule/plan.hpp"
#include "collectives/schedule/schedule.hpp"
#include "simulation/simulate.hpp"
#include "simulation/vendors/vendor_run.hpp"
#include "topology/route.hpp"

namespace polyring {

class GroupCollectives {
 public:
  /// Groups of `members` ranks that are `stride` apart; together they are all ranks of the cluster. `nccl`
  /// and `mpi` choose for each payload as vendor_run() says; alltoalls of other algorithms are sends to all
  /// others, at once or one partner after another. Keeps references to cluster and router.
  GroupCollectives(const Cluster& cluster, const Router& router, std::string algorithm,
                   PlanConstraints constraints, ElementSizes sizes, int members, int stride,
                   const SimulationOptions& options = {});

  /// Each group makes the collective; `count` elements is that of the longer of a rank's two buffers, rounded
  /// up to whole blocks. Groups of one, and counts of 0, have nothing to do. Throws as make_schedule(),
  /// price() and vendor_run() do.
  const Simulation& run(Collective collective, Count count);
  /// With what a vendor's library takes once for each call.
  Seconds time(Collective collective, Count count);

  /// Plans the collective for so many elements, where it is not planned yet. Without it run() does so for the
  /// first count that it is asked for. Where each group fills hosts, the plan is that of choose_plan() for
  /// such hosts alone, if it can make the collective; else that of the lowest price in all groups at once.
  const Plan& plan(Collective collective, Count largest);

  /// What is busy longest, and what a vendor would choose, in words.
  std::string bottleneck(Collective collective, Count count);

  int members() const { return members_; }

 private:
  struct Ran {
    Simulation simulation;
    Seconds once;
    std::string choice;  // a vendor's
    std::string bottleneck;
  };

  Count whole_blocks(Collective collective, Count count) const;
  const Ran& ran(Collective collective, Count count);
  Ran run_vendor(Collective collective, Count count) const;
  bool fills_hosts() const;
  Plan choose(Collective collective, Count largest) const;
  Plan cheapest(Collective collective, Count largest) const;
  Schedule schedule(const Plan& plan, Collective collective, Count count) const;
  std::vector<Plan> candidates(Collective collective, Count largest) const;

  const Cluster& cluster_;
  const Router& router_;
  std::string algorithm_;
  PlanConstraints constraints_;
  ElementSizes sizes_;
  int members_;
  int stride_;
  SimulationOptions options_;
  std::map<Collective, Plan> plans_;
  std::map<std::pair<Collective, Count>, Ran> runs_;  // that were asked for
};

}  // namespace polyring

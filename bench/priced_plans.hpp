// Plans of multi-ring by the price of their schedules on the machine that this job runs on, its links as a
// calibration has them.
#pragma once

#include <optional>
#include <string>

#include "collectives/mpi/world.hpp"
#include "collectives/plan.hpp"
#include "topology/cluster.hpp"

namespace polyring {

class PricedPlans {
 public:
  /// Collective: rank 0's file of `polyring calibrate`. Throws a usage Error for a file that cannot be read,
  /// and where what it says does not tell how fast messages between these ranks are.
  PricedPlans(const std::string& file, const MpiWorld& world);

  /// Collective. What is fastest when simulated of the plans that have what is wished for.
  Plan plan_for(const PlanWishes& wishes, Count count, ElementSizes sizes) const;

  const std::string& file() const { return file_; }

 private:
  const MpiWorld& world_;
  std::string file_;
  std::optional<Cluster> cluster_;  // on rank 0
};

}  // namespace polyring

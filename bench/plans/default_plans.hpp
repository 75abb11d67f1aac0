// The plan of a schedule that nobody has chosen another one for, on the ranks of this job.
//
// Which ranks meet in memory says which dimensions and patterns suit; how to cut the payload, into lanes and
// chunks, says the price of multi-ring's schedule on the machine's topology.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "collectives/runtime/mpi/world.hpp"
#include "collectives/runtime/transports/world.hpp"
#include "collectives/schedule/plan.hpp"
#include "topology/cluster.hpp"

namespace polyring {

/// The algorithm whose plan `polyring tune` chooses, and a price.
inline constexpr std::string_view kTunedAlgorithm = "multi-ring";

/// Ranks of a host as the first dimension, hosts as the second, unless the constraints say so; one lane and
/// chunk, and no patterns but those that are wished for.
Plan plain_plan(const std::string& algorithm, const PlanConstraints& constraints, const MpiWorld& world);

class DefaultPlans {
 public:
  /// Collective. Links are as rank 0's file of `polyring calibrate` has them; without one (empty) as the
  /// topology has them, between hosts only, and where it does not say how fast they are, nothing is priced.
  /// Throws a usage Error for a file that cannot be read, and where what it says does not tell how fast
  /// messages between these ranks are.
  DefaultPlans(const std::string& calibration, const MpiWorld& world);

  /// Collective. For `count` elements over this transport, with all that is wished for. Throws as
  /// check_plan() does.
  Plan plan_for(const std::string& algorithm, const PlanConstraints& constraints,
                const WorldTransport& transport, Count count, ElementSizes sizes) const;

  /// The file that plans are priced by; empty: none.
  const std::string& calibration() const { return calibration_; }

 private:
  Plan cut(Plan plan, const PlanConstraints& constraints, Bytes longest_chunk, Count count,
           ElementSizes sizes) const;

  const MpiWorld& world_;
  std::string calibration_;
  std::optional<Cluster> cluster_;  // on rank 0, if all links' speed is known
  bool priced_ = false;             // whether there is one
};

}  // namespace polyring

// The choices of an earlier `polyring tune` that hold for the ranks of this run.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collectives/mpi/world.hpp"
#include "collectives/tuning.hpp"

namespace polyring {

/// Where this job runs, but for the transport. On rank 0, whose machine stands for all.
TuningPlace place_of(const MpiWorld& world);

class TunedPlans {
 public:
  /// None.
  TunedPlans() = default;

  /// Collective: rank 0's file, on all ranks. `option` names it; when empty it is the default one, which need
  /// not be there and of which a fault is only told. Throws a usage Error for a file of the option's that
  /// cannot be read.
  TunedPlans(const std::string& option, const MpiWorld& world);

  /// For a payload over this transport; nothing when no choice is near, or it is the default plan.
  std::optional<Plan> plan_for(const std::string& transport, Bytes payload) const;

  /// On rank 0.
  const std::string& file() const { return file_; }

 private:
  std::vector<TunedPlan> choices_;  // of one place each, but for the transport
  std::string file_;
};

}  // namespace polyring

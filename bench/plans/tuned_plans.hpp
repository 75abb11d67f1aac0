// The choices of an earlier `polyring tune` that hold for the ranks of this run.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "collectives/runtime/world.hpp"
#include "collectives/schedule/tuning.hpp"
#include "topology/machine.hpp"

namespace polyring {

/// Tells the network of such hosts from others: the number, kinds and rates of the ports that are up, and the
/// settings that choose among them. Empty where nothing is known.
std::string network_text(const Machine& machine, const std::map<std::string, std::string>& settings);

/// Where this job runs, without its transport. On rank 0, whose machine stands for all.
TuningPlace place_of(const World& world, DataDevice device);

/// Collective: rank 0's, on all ranks.
std::vector<TunedPlan> roots_choices(std::span<const TunedPlan> choices, const World& world);

class TunedPlans {
 public:
  /// None.
  TunedPlans() = default;

  /// Collective: rank 0's file, on all ranks. `option` names it. When empty it is the default file: that need
  /// not exist, and a fault in it is a warning. Throws a usage Error when the option's file cannot be read.
  TunedPlans(const std::string& option, const World& world, DataDevice device);

  /// Of one place, over any transports.
  const std::vector<TunedPlan>& choices() const { return choices_; }

  /// On rank 0.
  const std::string& file() const { return file_; }

 private:
  std::vector<TunedPlan> choices_;
  std::string file_;
};

}  // namespace polyring

// The planner of a job's ranks: rank 0 chooses, and all have its choice.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "bench/plans/job_hosts.hpp"
#include "collectives/runtime/communicator.hpp"
#include "collectives/runtime/world.hpp"
#include "collectives/schedule/planner.hpp"
#include "topology/cluster.hpp"

namespace polyring {

class JobPlanner final : public Planner {
 public:
  /// Collective. Plans by price where the speeds of all links between the ranks are known, else by rules.
  /// `gpus`: the ranks whose data are on GPUs; nothing: these are in the hosts' memory. Rank 0's file of
  /// `polyring calibrate` has the speeds. Without a file (empty) ranks of several hosts and those on GPUs are
  /// priced by the topology's speeds, and by typical ones where it has none. Throws a usage Error for a file
  /// that cannot be read or holds for data elsewhere, and where what it says does not tell how fast messages
  /// between these ranks are.
  JobPlanner(const std::string& calibration, const World& world,
             const std::optional<JobHosts>& gpus = std::nullopt);

  /// Collective. Plans for this machine, a preset or a file that `polyring probe --from` reads, with as many
  /// ranks as this job has, as `polyring plan` does. Throws a usage Error where it cannot have so many.
  static JobPlanner for_machine(const std::string& machine, const World& world);

  /// What these ranks ask; the communicator is theirs.
  Problem problem(const std::string& algorithm, const Communicator& communicator,
                  const CollectiveOf& what) const;

  /// Collective. The problem must be problem()'s.
  PlanChoice choose(const Problem& problem, const PlanConstraints& constraints) const override;

  /// The file of `polyring calibrate` that decides; empty: none.
  const std::string& calibration() const { return calibration_; }

  /// Why plans have no prices although links are not equal, on rank 0; empty where they have.
  const std::string& why_no_prices() const { return why_no_prices_; }

 private:
  explicit JobPlanner(const World& world) : world_(&world) {}

  const World* world_;
  std::string calibration_;
  std::string why_no_prices_;
  std::optional<Cluster> machine_;  // another one that is planned for, on rank 0
  std::unique_ptr<Planner> planner_ = std::make_unique<RulePlanner>();  // asked on rank 0 alone
};

}  // namespace polyring

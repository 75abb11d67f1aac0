// How long what a strategy sends takes: collectives of its groups of ranks, and messages between stages.
#pragma once

#include <map>
#include <string>
#include <tuple>

#include "bench/predict/scaling.hpp"
#include "bench/predict/step_model.hpp"
#include "models/strategy.hpp"
#include "simulation/group_collectives.hpp"

namespace polyring {

/// What is sent.
enum class SentData { gradients, activations };

/// A collective of a strategy.
struct GroupCall {
  RankGroups groups;
  SentData payload = SentData::gradients;
  Collective collective = Collective::allreduce;
  auto operator<=>(const GroupCall&) const = default;
};

class StrategyTimes {
 public:
  enum class Detail {
    simulated,  // each count by itself, by the plan for the largest
    rough       // between two counts that are simulated, 64-fold apart, in proportion: for many strategies
  };

  /// Keeps references. `constraints` ask for the plan of gradients. Collectives of activations ignore their
  /// dimensions and patterns.
  StrategyTimes(const ScalingCase& scaling, const std::string& algorithm, const PlanConstraints& constraints,
                const Cluster& cluster, const Router& router, Detail detail);

  /// What the call is planned for from now on: no fewer elements than any that its time is asked for.
  void plan(const GroupCall& call, Count largest);
  /// The plan for that.
  Plan plan_of(const GroupCall& call);
  Seconds time(const GroupCall& call, Count count);
  std::string bottleneck(const GroupCall& call, Count count);

  /// What is not exactly known of such steps.
  const std::vector<CostRange>& ranges() const { return known_.ranges; }
  /// How many times as long as simulated large collectives of these groups take, 1 or more: what the costs
  /// leave of the links' rate.
  double stretch(const RankGroups& groups, const StepCosts& costs);

  /// `bytes` from every rank of a virtual stage to its counterpart in the next, or back, in all replicas at
  /// once. `boundary` 0 lies between virtual stages 0 and 1.
  Simulation send(const Strategy& strategy, int boundary, bool forward, double bytes);
  Seconds send_time(const Strategy& strategy, int boundary, bool forward, double bytes);

 private:
  GroupCollectives& of(const GroupCall& call, Count largest);
  GroupCollectives& planned(const GroupCall& call);
  Seconds large_allreduce(int ranks);

  const ScalingCase& scaling_;
  std::string algorithm_;
  PlanConstraints constraints_;
  const Cluster& cluster_;
  const Router& router_;
  Detail detail_;
  StepRanges known_;
  std::map<std::tuple<GroupCall, Count>, GroupCollectives> groups_;  // by what they are planned for
  std::map<GroupCall, Count> largest_;
  std::map<int, Seconds> large_;  // by the ranks that take part
  std::map<std::tuple<RankGroups, int, int, int, bool, double>, Seconds> sends_;
};

}  // namespace polyring

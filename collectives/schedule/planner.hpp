// Planner: chooses the plan for a collective. What is measured, what is predicted and what is shown ask one
// of these, with the same kind of Problem; see price_planner.hpp for the one that compares prices.
#pragma once

#include <algorithm>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "collectives/schedule/plan.hpp"
#include "collectives/schedule/schedule.hpp"
#include "collectives/schedule/tuning.hpp"
#include "topology/cluster.hpp"

namespace polyring {

/// The algorithm whose patterns are chosen, and which `polyring tune` tunes.
inline constexpr std::string_view kTunedAlgorithm = "multi-ring";

/// How ranks lie on hosts. An NVLink domain counts as one host: its ranks need no NIC.
struct RankGrid {
  int ranks = 1;
  int per_host = 1;  // 0: hosts have unequally many, or do not number theirs one after another
  int hosts = 1;

  bool operator==(const RankGrid&) const = default;
};

RankGrid grid_of(const Cluster& cluster);

/// Whether two ranks of a host reach each other's memory, so that they can exchange in one pass.
using Reach = std::function<bool(Rank, Rank)>;

/// What a plan is wanted for.
struct Problem {
  std::string algorithm{kTunedAlgorithm};
  RankGrid grid{};
  Reach reach{};  // empty: nobody's
  Count count = 0;
  ElementSizes sizes{4};
  /// The longest message between hosts that should be sent in one piece; 0: any.
  Bytes longest_message{};
  Collective collective = Collective::allreduce;

  Bytes payload() const { return {static_cast<std::uint64_t>(count * sizes.payload)}; }
};

/// What a model asks: the cluster's grid, and reach by PeerAccess. Copies what it needs of the cluster.
Problem modelled_problem(std::string_view algorithm, const Cluster& cluster, Count count, ElementSizes sizes);

/// The smaller one of two limits; 0 is none.
constexpr Bytes shorter_of(Bytes limit, Bytes other) {
  if (limit.value == 0 || other.value == 0) return std::max(limit, other);
  return std::min(limit, other);
}

/// What decided.
enum class PlanSource { rules, tuned, price, simulation };

struct PlanChoice {
  Plan plan;
  PlanSource source = PlanSource::rules;
};

class Planner {
 public:
  virtual ~Planner() = default;
  /// A plan that keeps the constraints. Throws a usage Error as check_plan() does.
  virtual PlanChoice choose(const Problem& problem, const PlanConstraints& constraints) const = 0;
};

/// By rules that were measured between the processes of one host and of emulated hosts (docs/performance.md),
/// where nothing is known of the links.
class RulePlanner final : public Planner {
 public:
  PlanChoice choose(const Problem& problem, const PlanConstraints& constraints) const override;
};

/// Takes the nearest tuned choice for multi-ring without constraints, and else asks another planner.
class TunedPlanner final : public Planner {
 public:
  /// Keeps the reference. Of `choices`, which are of one place, those over `transport` count.
  TunedPlanner(std::vector<TunedPlan> choices, std::string transport, const Planner& otherwise);
  PlanChoice choose(const Problem& problem, const PlanConstraints& constraints) const override;

 private:
  std::vector<TunedPlan> choices_;
  std::string transport_;
  const Planner& otherwise_;
};

/// Ranks of a host as the first dimension, hosts as the second, unless constrained; one lane, one chunk, and
/// no patterns but those of the constraints.
Plan plain_plan(const Problem& problem, const PlanConstraints& constraints);

/// The rule for multi-ring's patterns: of each dimension, what suits the memory or the network that its
/// groups communicate over. Empty for any other algorithm.
std::vector<std::string> patterns_by_rule(const Problem& problem, const std::vector<int>& dims);

/// The longest chunk of a lane by which no message between hosts is longer than the problem allows, but at
/// least as long as makes kMostUsefulChunks of the payload; 0 where any chunk will do.
Bytes longest_chunk(const Plan& plan, const Problem& problem);

}  // namespace polyring

#include "simulation/group_allreduce.hpp"

#include <cstdint>

#include "collectives/schedule/candidates.hpp"
#include "collectives/schedule/catalogue.hpp"
#include "collectives/schedule/pattern.hpp"
#include "simulation/price_planner.hpp"
#include "topology/peer_access.hpp"
#include "topology/resize.hpp"

namespace polyring {

GroupAllreduce::GroupAllreduce(const Cluster& cluster, const Router& router, const std::string& algorithm,
                               const PlanConstraints& constraints, ElementSizes sizes, int members,
                               int stride, Count largest, const SimulationOptions& options)
    : cluster_(cluster),
      router_(router),
      sizes_(sizes),
      members_(members),
      stride_(stride),
      options_(options) {
  if (fills_hosts()) {
    const Cluster group = with_ranks(cluster, members);
    plan_ = choose_plan(modelled_problem(algorithm, group, largest, sizes), group, Router(group), constraints,
                        options)
                .plan;
  } else {
    plan_ = cheapest(algorithm, constraints, largest);
  }
}

bool GroupAllreduce::fills_hosts() const {
  return members_ > 1 && stride_ == 1 && cluster_.groups.size() == 1 &&
         members_ % cluster_.host(0).ranks() == 0;
}

Plan GroupAllreduce::cheapest(const std::string& algorithm, const PlanConstraints& constraints,
                              Count largest) const {
  Plan best;
  std::optional<Seconds> least;
  for (const Plan& plan : candidates(algorithm, constraints, largest)) {
    check_plan(plan, members_);
    const Seconds time = price(schedule(plan, largest), cluster_, router_, sizes_).time;
    if (least && !(time < *least)) continue;
    best = plan;
    least = time;
  }
  return best;
}

const Simulation& GroupAllreduce::run(Count count) {
  const auto [at, added] = runs_.try_emplace(count);
  if (added && members_ > 1 && count > 0)
    at->second = simulate(schedule(plan_, count), cluster_, router_, sizes_, options_);
  return at->second;
}

Schedule GroupAllreduce::schedule(const Plan& plan, Count count) const {
  return in_groups(make_schedule(plan, members_, count, sizes_.payload), stride_, cluster_.ranks());
}

std::vector<Plan> GroupAllreduce::candidates(const std::string& algorithm, const PlanConstraints& constraints,
                                             Count largest) const {
  // A domain is a host, or the hosts that NVSwitches join.
  const int domain = cluster_.domains_are_equal() ? cluster_.ranks_per_domain() : cluster_.host(0).ranks();
  const int in_host = domain / stride_;
  const bool hosts_filled = in_host > 1 && domain % stride_ == 0 && members_ % in_host == 0;
  const int of_a_host = hosts_filled ? in_host : 1;
  const std::vector<std::vector<int>> grids = find_algorithm(algorithm).has_dims
                                                  ? rank_grids(members_, of_a_host, members_ / of_a_host)
                                                  : std::vector<std::vector<int>>{{members_}};
  const auto bytes = static_cast<std::uint64_t>(largest) * static_cast<std::uint64_t>(sizes_.payload);
  const bool in_one_host = domain % (members_ * stride_) == 0;
  const RankGrid grid =
      in_one_host ? RankGrid{members_, members_, 1} : RankGrid{members_, of_a_host, members_ / of_a_host};
  const auto reach = [stride = stride_, peers = PeerAccess(cluster_)](Rank a, Rank b) {
    return peers(a * stride, b * stride);
  };
  const Problem problem{algorithm, grid, reach, largest, sizes_};
  std::vector<Plan> plans;
  for (const std::vector<int>& grid_dims : grids) {
    const std::vector<int>& dims = constraints.dims.empty() ? grid_dims : constraints.dims;
    const auto by_rule = patterns_by_rule(problem, dims);
    const std::vector rings(by_rule.size(), std::string(ring_pattern().name()));
    std::vector<std::vector<std::string>> choices;
    choices.push_back(by_rule);
    if (rings != by_rule && constraints.patterns.empty()) choices.push_back(rings);
    for (const auto& patterns : choices) {
      for (const int lanes : {1, 2}) {
        for (const std::uint64_t chunks : {1u, 8u, 32u}) {
          const Bytes chunk{chunks == 1 ? 0 : bytes / chunks + 1};
          plans.push_back(constrained({algorithm, dims, patterns, lanes, chunk}, constraints));
        }
      }
    }
  }
  return plans;
}

}  // namespace polyring

#include "simulation/group_collectives.hpp"

#include <fmt/format.h>

#include <cstdint>

#include "collectives/schedule/candidates.hpp"
#include "collectives/schedule/catalogue.hpp"
#include "collectives/schedule/pattern.hpp"
#include "simulation/price_planner.hpp"
#include "topology/peer_access.hpp"
#include "topology/resize.hpp"

namespace polyring {

GroupCollectives::GroupCollectives(const Cluster& cluster, const Router& router, std::string algorithm,
                                   PlanConstraints constraints, ElementSizes sizes, int members, int stride,
                                   const SimulationOptions& options)
    : cluster_(cluster),
      router_(router),
      algorithm_(std::move(algorithm)),
      constraints_(std::move(constraints)),
      sizes_(sizes),
      members_(members),
      stride_(stride),
      options_(options) {}

const Simulation& GroupCollectives::run(Collective collective, Count count) {
  return ran(collective, count).simulation;
}

Seconds GroupCollectives::time(Collective collective, Count count) {
  const Ran& of = ran(collective, count);
  return of.once + of.simulation.time;
}

std::string GroupCollectives::bottleneck(Collective collective, Count count) {
  const Ran& of = ran(collective, count);
  if (of.choice.empty()) return of.bottleneck;
  return fmt::format("{} ({} chooses {})", of.bottleneck, algorithm_, of.choice);
}

const Plan& GroupCollectives::plan(Collective collective, Count largest) {
  const auto [at, added] = plans_.try_emplace(collective);
  if (!added) return at->second;
  if (is_vendor(algorithm_)) {
    const Bytes payload{static_cast<std::uint64_t>(largest) * static_cast<std::uint64_t>(sizes_.payload)};
    at->second = vendor_run(algorithm_, cluster_, payload, {collective, members_, stride_}).plan;
  } else {
    at->second = choose(collective, whole_blocks(collective, largest));
  }
  return at->second;
}

Count GroupCollectives::whole_blocks(Collective collective, Count count) const {
  const int blocks = blocks_of(collective, members_);
  return (count + blocks - 1) / blocks * blocks;
}

const GroupCollectives::Ran& GroupCollectives::ran(Collective collective, Count count) {
  count = whole_blocks(collective, count);
  const auto [at, added] = runs_.try_emplace({collective, count});
  if (!added || members_ == 1 || count == 0) return at->second;
  if (is_vendor(algorithm_)) return at->second = run_vendor(collective, count);
  const Plan& of = plan(collective, count);
  Ran& result = at->second;
  result.simulation = simulate(schedule(of, collective, count), cluster_, router_, sizes_, options_);
  result.bottleneck = bottleneck_text(result.simulation, router_);
  return result;
}

GroupCollectives::Ran GroupCollectives::run_vendor(Collective collective, Count count) const {
  const Bytes payload{static_cast<std::uint64_t>(count) * static_cast<std::uint64_t>(sizes_.payload)};
  const VendorRun run = vendor_run(algorithm_, cluster_, payload, {collective, members_, stride_});
  Simulation simulation = vendor_simulation(run, payload);
  const std::string bottleneck = bottleneck_text(simulation, Router(run.view));
  return {simulation, run.once, run.choice, bottleneck};
}

bool GroupCollectives::fills_hosts() const {
  return stride_ == 1 && cluster_.groups.size() == 1 && members_ % cluster_.host(0).ranks() == 0;
}

Plan GroupCollectives::choose(Collective collective, Count largest) const {
  if (members_ > 1 && fills_hosts() && collective != Collective::alltoall) {
    const Cluster group = with_ranks(cluster_, members_);
    Plan plan = choose_plan(modelled_problem(algorithm_, group, largest, sizes_), group, Router(group),
                            constraints_, options_)
                    .plan;
    if (collective == Collective::allreduce || can_make(plan, collective)) return plan;
  }
  return cheapest(collective, largest);
}

Plan GroupCollectives::cheapest(Collective collective, Count largest) const {
  Plan best;
  std::optional<Seconds> least;
  for (const Plan& plan : candidates(collective, largest)) {
    check_plan(plan, members_);
    const Seconds time = price(schedule(plan, collective, largest), cluster_, router_, sizes_).time;
    if (least && !(time < *least)) continue;
    best = plan;
    least = time;
  }
  return best;
}

Schedule GroupCollectives::schedule(const Plan& plan, Collective collective, Count count) const {
  return in_groups(make_schedule(plan, members_, count, sizes_.payload, collective), stride_,
                   cluster_.ranks());
}

std::vector<Plan> GroupCollectives::candidates(Collective collective, Count largest) const {
  if (collective == Collective::alltoall)
    return {{"direct", {members_}, {}, 1, {}}, {"pairwise", {members_}, {}, 1, {}}};
  const GroupShape shape = shape_of({collective, members_, stride_}, cluster_);
  const bool hosts_filled = shape.in_host > 1 && shape.hosts > 1;
  const int of_a_host = hosts_filled ? shape.in_host : 1;
  const std::vector<std::vector<int>> grids = find_algorithm(algorithm_).has_dims
                                                  ? rank_grids(members_, of_a_host, members_ / of_a_host)
                                                  : std::vector<std::vector<int>>{{members_}};
  const auto bytes = static_cast<std::uint64_t>(largest) * static_cast<std::uint64_t>(sizes_.payload);
  const RankGrid grid{members_, shape.in_host, shape.hosts};
  const auto reach = [stride = stride_, peers = PeerAccess(cluster_)](Rank a, Rank b) {
    return peers(a * stride, b * stride);
  };
  const Problem problem{algorithm_, grid, reach, largest, sizes_, {}, collective};
  std::vector<Plan> plans;
  for (const std::vector<int>& grid_dims : grids) {
    const std::vector<int>& dims = constraints_.dims.empty() ? grid_dims : constraints_.dims;
    const auto by_rule = patterns_by_rule(problem, dims);
    const std::vector rings(by_rule.size(), std::string(ring_pattern().name()));
    std::vector<std::vector<std::string>> choices;
    choices.push_back(by_rule);
    if (rings != by_rule && constraints_.patterns.empty()) choices.push_back(rings);
    for (const auto& patterns : choices) {
      const Plan plan = constrained({algorithm_, dims, patterns, 1, {}}, constraints_);
      if (patterns != rings && collective != Collective::allreduce && !can_make(plan, collective)) continue;
      for (const int lanes : {1, 2}) {
        for (const std::uint64_t chunks : {1u, 8u, 32u}) {
          const Bytes chunk{chunks == 1 ? 0 : bytes / chunks + 1};
          plans.push_back(constrained({algorithm_, dims, patterns, lanes, chunk}, constraints_));
        }
      }
    }
  }
  return plans;
}

}  // namespace polyring

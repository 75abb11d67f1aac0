#include "collectives/schedule/planner.hpp"

#include <algorithm>
#include <utility>

#include "collectives/schedule/catalogue.hpp"
#include "collectives/schedule/pattern.hpp"
#include "topology/peer_access.hpp"

namespace polyring {
namespace {

/// Up to here steps count and bytes do not: in a host one step to everybody beats two of less, since all that
/// it sends is copied once and nobody waits until others have read it; between hosts log2 n steps of
/// everything beat twice as many of less. See docs/performance.md.
constexpr Bytes kTiny{2 << 10};
/// Up to here messages count: between hosts 2·log2 n beat the 2(n − 1) of rings, and a host's ranks leave
/// them to one of theirs.
constexpr Bytes kSmall{16 << 10};
/// A chunk whose messages have no limit: small enough to stay in a core's cache.
constexpr Bytes kUsualChunk{1 << 20};
/// The longest message between hosts: no price tells what a single chunk, which overlaps with nothing, would
/// cost. See docs/performance.md.
constexpr Bytes kLongestMessage{56 << 10};

/// Whether the groups of this dimension lie inside hosts.
bool lies_in_hosts(const RankGrid& grid, int stride, int size) {
  const int ranks = stride * size;
  return grid.per_host > 0 && ranks > 0 && grid.per_host % ranks == 0;
}

/// Whether all members of each group of a dimension inside hosts reach each other.
bool groups_reach(const Problem& problem, int stride, int size) {
  if (!problem.reach || size < 2) return false;
  for (Rank first = 0; first < problem.grid.ranks; ++first) {
    if (first / stride % size != 0) continue;
    for (int a = 0; a < size; ++a) {
      for (int b = 0; b < a; ++b)
        if (!problem.reach(first + a * stride, first + b * stride)) return false;
    }
  }
  return true;
}

/// Whether all ranks of each host do.
bool hosts_reach(const Problem& problem) {
  return problem.grid.per_host > 1 && groups_reach(problem, 1, problem.grid.per_host);
}

const char* pattern_between_hosts(Collective collective, Bytes payload) {
  const bool all_of_it = collective == Collective::allreduce && payload <= kTiny;
  return all_of_it ? "doubling" : payload <= kSmall ? "halving" : "ring";
}

/// An all-to-all sends each block to its owner, whatever the links are.
std::vector<std::string> alltoall_patterns(const Problem& problem, const std::vector<int>& dims) {
  std::vector<std::string> patterns;
  int stride = 1;
  for (const int dim : dims) {
    const bool in_hosts = lies_in_hosts(problem.grid, stride, dim);
    patterns.emplace_back(in_hosts || problem.payload() <= kSmall ? "direct" : "pairwise");
    stride *= dim;
  }
  return patterns;
}

/// Nothing overlaps with a single exchange, so that its payload is best left whole.
bool is_one_exchange(const Plan& plan, const Problem& problem) {
  if (plan.patterns.size() != 1 || problem.grid.hosts > 1) return false;
  return groups_reach(problem, 1, plan.dims.front()) &&
         find_pattern(plan.patterns.front())->steps(plan.dims.front()) == 1;
}

Bytes useful_chunk(Bytes chunk, Bytes payload) {
  return std::max(chunk, Bytes{payload.value / kMostUsefulChunks});
}

/// The longest message between hosts that a rank of the first host sends, as a part of the payload; 0 when
/// there is none.
double longest_message(Plan plan, const RankGrid& grid) {
  constexpr Count kCount = 1 << 20;
  plan.chunk = {};
  const Schedule schedule = make_schedule(plan, grid.ranks, kCount, 1);
  const int per_host = std::max(1, grid.per_host);
  Count longest = 0;
  std::vector<Transfer> sends;
  for (Rank rank = 0; rank < per_host; ++rank) {
    for (int stage = 0; stage < stage_count(schedule.lanes.front()); ++stage) {
      for (int step = 0; step < step_count(schedule.lanes.front(), stage); ++step) {
        sends.clear();
        append_sends(schedule, {}, stage, step, rank, sends);
        for (const Transfer& send : sends)
          if (send.destination >= per_host) longest = std::max(longest, send.slice.count);
      }
    }
  }
  return static_cast<double>(longest) / static_cast<double>(stream_slice(schedule, {}).count);
}

}  // namespace

RankGrid grid_of(const Cluster& cluster) {
  if (cluster.domains_are_equal())
    return {cluster.ranks(), cluster.ranks_per_domain(), cluster.domain_count()};
  const int per_host = cluster.host(0).ranks();
  const bool equal = std::ranges::all_of(
      cluster.groups, [&](const HostGroup& group) { return group.machine.ranks() == per_host; });
  return {cluster.ranks(), equal ? per_host : 0, cluster.host_count()};
}

Problem modelled_problem(std::string_view algorithm, const Cluster& cluster, Count count,
                         ElementSizes sizes) {
  return {std::string(algorithm), grid_of(cluster), PeerAccess(cluster), count, sizes, {}};
}

Plan plain_plan(const Problem& problem, const PlanConstraints& constraints) {
  const RankGrid& grid = problem.grid;
  Plan plan{problem.algorithm, constraints.dims, {}, 1, {}};
  if (plan.dims.empty() && grid.per_host > 1 && grid.hosts > 1) plan.dims = {grid.per_host, grid.hosts};
  if (plan.dims.empty()) plan.dims = {grid.ranks};
  return constrained(std::move(plan), constraints);
}

std::vector<std::string> patterns_by_rule(const Problem& problem, const std::vector<int>& dims) {
  if (!find_algorithm(problem.algorithm).has_dims) return {};
  if (problem.collective == Collective::alltoall) return alltoall_patterns(problem, dims);
  const bool allreduce = problem.collective == Collective::allreduce;
  const Bytes payload = problem.payload();
  const RankGrid& grid = problem.grid;
  const bool one_may_do_for_all = allreduce && grid.hosts > 1 && payload <= kSmall && hosts_reach(problem);
  const bool at_once = allreduce && dims.size() == 1 && payload <= kTiny;
  const char* among_reachable = one_may_do_for_all ? "star" : at_once ? "one-shot" : "direct";
  std::vector<std::string> patterns;
  int stride = 1;
  for (const int dim : dims) {
    const bool in_hosts = lies_in_hosts(grid, stride, dim);
    patterns.emplace_back(in_hosts && groups_reach(problem, stride, dim) ? among_reachable
                          : in_hosts                                     ? "ring"
                                     : pattern_between_hosts(problem.collective, payload));
    stride *= dim;
  }
  return patterns;
}

Bytes longest_chunk(const Plan& plan, const Problem& problem) {
  if (problem.longest_message.value == 0 || problem.grid.hosts == 1) return {};
  const double longest = longest_message(plan, problem.grid);
  if (longest == 0) return {};
  const double chunk = static_cast<double>(problem.longest_message.value) / longest;
  return useful_chunk({static_cast<std::uint64_t>(chunk)}, problem.payload());
}

PlanChoice RulePlanner::choose(const Problem& problem, const PlanConstraints& constraints) const {
  Plan plan = plain_plan(problem, constraints);
  check_plan(plan, problem.grid.ranks);
  if (plan.patterns.empty()) plan.patterns = patterns_by_rule(problem, plan.dims);
  const bool overlaps = problem.collective != Collective::alltoall && !is_one_exchange(plan, problem);
  if (constraints.chunk.value == 0 && overlaps) {
    Problem limited = problem;
    limited.longest_message = shorter_of(problem.longest_message, kLongestMessage);
    const Bytes longest = longest_chunk(plan, limited);
    plan.chunk = longest.value > 0 ? longest : useful_chunk(kUsualChunk, problem.payload());
  }
  return {std::move(plan), PlanSource::rules};
}

TunedPlanner::TunedPlanner(std::vector<TunedPlan> choices, std::string transport, const Planner& otherwise)
    : choices_(std::move(choices)), transport_(std::move(transport)), otherwise_(otherwise) {}

PlanChoice TunedPlanner::choose(const Problem& problem, const PlanConstraints& constraints) const {
  const bool tuned = problem.algorithm == kTunedAlgorithm && problem.collective == Collective::allreduce;
  if (tuned && constraints == PlanConstraints{} && !choices_.empty()) {
    TuningPlace place = choices_.front().place;
    place.transport = transport_;
    const TunedPlan* choice = nearest(choices_, place, problem.payload());
    if (choice != nullptr && !choice->is_default) return {choice->plan, PlanSource::tuned};
  }
  return otherwise_.choose(problem, constraints);
}

}  // namespace polyring

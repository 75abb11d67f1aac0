#include "collectives/schedule/candidates.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "collectives/schedule/catalogue.hpp"
#include "collectives/schedule/pattern.hpp"
#include "collectives/schedule/rings/host_rings.hpp"
#include "topology/processes.hpp"

namespace polyring {
namespace {

/// The divisor of n that is nearest below its square root.
int square_divisor(int n) {
  for (int divisor = static_cast<int>(std::sqrt(static_cast<double>(n))); divisor > 1; --divisor) {
    if (n % divisor == 0) return divisor;
  }
  return 1;
}

std::vector<int> without_ones(std::vector<int> dims) {
  std::erase(dims, 1);
  if (dims.empty()) dims.push_back(1);
  return dims;
}

bool hosts_equal(const Cluster& cluster) {
  return std::all_of(cluster.groups.begin(), cluster.groups.end(), [&](const HostGroup& group) {
    return group.machine.ranks() == cluster.groups.front().machine.ranks();
  });
}

using Dims = std::vector<int>;

void add_new(std::vector<Dims>& all, Dims dims) {
  if (std::find(all.begin(), all.end(), dims) == all.end()) all.push_back(std::move(dims));
}

std::vector<Dims> candidate_dims(const Algorithm& algorithm, const Cluster& cluster) {
  const RankGrid grid = grid_of(cluster);
  const int in_host = grid.per_host;
  const int hosts = grid.hosts;
  // Measured between processes, near and far hosts as two dimensions were no faster: docs/performance.md.
  if (has_processes(cluster.host(0)) && hosts_equal(cluster)) return {without_ones({in_host, hosts})};
  std::vector<Dims> all{natural_dims(cluster)};
  if (!algorithm.has_dims || !hosts_equal(cluster)) return all;
  const int near = square_divisor(hosts);
  std::vector<Dims> more{without_ones({in_host, near, hosts / near}), without_ones({in_host, hosts})};
  std::sort(more.begin(), more.end());
  for (Dims& dims : more) add_new(all, std::move(dims));
  const int part = cluster.hosts_per_domain() > 1 ? cluster.host(0).ranks() : host_part_size(cluster.host(0));
  if (part == 0 || part >= in_host) return all;
  // The parts of a host as a dimension of their own.
  for (Dims dims : std::vector(all)) {
    dims.front() = part;
    dims.insert(dims.begin() + 1, in_host / part);
    add_new(all, std::move(dims));
  }
  return all;
}

/// What plans that differ in their cuts alone have in common.
struct Shape {
  Dims dims;
  std::vector<std::string> patterns;
  std::vector<std::vector<int>> orders;
  std::vector<int> lanes;  // numbers worth trying
};

/// The rings of a host as lanes' orders, where they are another way of doing it than the ranks' own order:
/// where they take other steps, and where each lane leaves a host from one of its ranks alone, since they say
/// from which. Else none.
std::vector<std::vector<int>> orders_on_rings(const Algorithm& algorithm, const Cluster& cluster) {
  if (!algorithm.lanes_differ || !hosts_equal(cluster)) return {};
  const Machine& host = cluster.host(0);
  const HostRings rings = host_rings(host);
  if (rings.orders.empty()) return {};
  if (!algorithm.has_dims && cluster.host_count() > 1) return orders_between_hosts(rings, host);
  return rings.follow_ranks() ? std::vector<std::vector<int>>{} : rings.orders;
}

using Patterns = std::vector<std::string>;

/// The rule's, and rings: between GPUs links may be unequal, which rings can be laid along. A host's memory
/// is the same for all.
std::vector<Patterns> candidate_patterns(const Problem& problem, const Cluster& cluster,
                                         const PlanConstraints& constraints, const Dims& dims) {
  if (!constraints.patterns.empty()) return {constraints.patterns};
  const Patterns by_rule = patterns_by_rule(problem, dims);
  if (has_processes(cluster.host(0))) return {by_rule};
  const Patterns rings(by_rule.size(), std::string(ring_pattern().name()));
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (!by_rule.empty() && !same_moves(*find_pattern(by_rule[i]), ring_pattern(), dims[i]))
      return {by_rule, rings};
  }
  return {rings};
}

std::vector<Shape> candidate_shapes(const Problem& problem, const Cluster& cluster,
                                    const PlanConstraints& constraints) {
  const Algorithm& algorithm = find_algorithm(problem.algorithm);
  std::vector<Dims> all = candidate_dims(algorithm, cluster);
  if (!constraints.dims.empty()) all = {constraints.dims};
  if (!constraints.orders.empty()) {
    const std::size_t in_order = constraints.orders.front().size();
    const auto other = [&](const Dims& dims) { return static_cast<std::size_t>(dims.front()) != in_order; };
    // Where nothing is left check_plan() says so.
    if (!std::all_of(all.begin(), all.end(), other)) std::erase_if(all, other);
  }
  std::vector<std::vector<int>> orders;
  if (constraints.orders.empty()) orders = orders_on_rings(algorithm, cluster);
  std::vector<Shape> shapes;
  std::vector<int> lanes = algorithm.lanes_differ ? std::vector{1, 2, 4} : std::vector{1};
  // A flat ring leaves an NVLink domain at one GPU a lane, and each GPU may have a NIC of its own.
  const bool by_each = !algorithm.has_dims && cluster.hosts_per_domain() > 1 && cluster.domain_count() > 1;
  if (algorithm.lanes_differ && by_each && cluster.domains_are_equal())
    lanes.push_back(cluster.ranks_per_domain());
  for (const Dims& dims : all) {
    for (const auto& patterns : candidate_patterns(problem, cluster, constraints, dims)) {
      shapes.push_back({dims, patterns, constraints.orders, lanes});
      const Pattern* first = patterns.empty() ? nullptr : find_pattern(patterns.front());
      const bool in_order = first == nullptr || first->follows_order();
      if (!orders.empty() && in_order && dims.front() == cluster.host(0).ranks())
        shapes.push_back({dims, patterns, orders, {static_cast<int>(orders.size())}});
    }
  }
  return shapes;
}

/// Chunks of one lane that are worth a price, 0 being the whole lane; the largest first.
std::vector<Bytes> candidate_chunks(Bytes payload, int lanes, Bytes longest) {
  constexpr std::uint64_t kSmallestChunk = 64 * 1024;  // less overlaps with little and costs a message
  const auto of = static_cast<std::uint64_t>(lanes);
  const bool whole = longest.value == 0 || (payload.value + of - 1) / of <= longest.value;
  std::vector<Bytes> chunks{whole ? Bytes{} : longest};
  for (const std::uint64_t parts : {4u, 16u, 64u}) {
    const Bytes chunk{whole ? payload.value / (of * parts) : longest.value / parts};
    if (chunk.value >= kSmallestChunk && payload.value / chunk.value <= kMostUsefulChunks)
      chunks.push_back(chunk);
  }
  return chunks;
}

}  // namespace

std::vector<int> natural_dims(const Cluster& cluster) {
  if (!hosts_equal(cluster)) return {cluster.ranks()};
  const int hosts = cluster.host_count();
  const int per_leaf = cluster.fabric.hosts_per_leaf;
  const bool domains = cluster.domains_are_equal();
  std::vector<int> dims{domains ? cluster.ranks_per_domain() : cluster.host(0).ranks()};
  int below = domains ? cluster.hosts_per_domain() : 1;  // hosts
  const auto add_level = [&](int of) {
    if (of <= below || of >= hosts || of % below != 0 || hosts % of != 0) return;
    dims.push_back(of / below);
    below = of;
  };
  add_level(per_leaf);
  for (const Pods& pods : cluster.fabric.pods) add_level(pods.hosts);
  dims.push_back(hosts / below);
  return without_ones(std::move(dims));
}

std::vector<Plan> candidate_plans(const Problem& problem, const Cluster& cluster,
                                  const PlanConstraints& constraints) {
  assert(problem.collective == Collective::allreduce);  // other collectives are planned by rules alone
  std::vector<Plan> plans;
  for (const Shape& shape : candidate_shapes(problem, cluster, constraints)) {
    Plan plan{problem.algorithm, shape.dims, shape.patterns, 1, {}, shape.orders};
    check_plan(plan, problem.grid.ranks);
    const Bytes longest = longest_chunk(plan, problem);
    for (const int lanes : shape.lanes) {
      plan.lanes = lanes;
      for (const Bytes chunk :
           candidate_chunks(problem.payload(), constraints.lanes > 0 ? constraints.lanes : lanes, longest)) {
        plan.chunk = chunk;
        Plan candidate = constrained(plan, constraints);
        // A constraint makes some of them equal.
        if (std::find(plans.begin(), plans.end(), candidate) == plans.end())
          plans.push_back(std::move(candidate));
      }
    }
  }
  return plans;
}

std::vector<std::vector<int>> rank_grids(int ranks, int ranks_per_node, int nodes) {
  std::vector<std::vector<int>> grids{{ranks}};
  if (ranks_per_node == 0) return grids;
  const int near = square_divisor(nodes);
  const int first = nodes == 1 ? square_divisor(ranks_per_node) : 1;
  for (std::vector<int> grid :
       {std::vector{ranks_per_node, nodes}, std::vector{ranks_per_node, near, nodes / near},
        std::vector{first, ranks_per_node / first, nodes}}) {
    grid = without_ones(std::move(grid));
    if (std::find(grids.begin(), grids.end(), grid) == grids.end()) grids.push_back(std::move(grid));
  }
  return grids;
}

}  // namespace polyring

// Which plans are worth pricing: dimensions from the hierarchy of the cluster, and lanes from the rings of a
// host.
#include <algorithm>
#include <cmath>

#include "collectives/schedule/catalogue.hpp"
#include "collectives/schedule/pattern.hpp"
#include "collectives/schedule/plan.hpp"
#include "collectives/schedule/rings/host_rings.hpp"

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

bool hosts_alike(const Cluster& cluster) {
  return std::all_of(cluster.groups.begin(), cluster.groups.end(), [&](const HostGroup& group) {
    return group.machine.ranks() == cluster.groups.front().machine.ranks();
  });
}

using Dims = std::vector<int>;

void add_new(std::vector<Dims>& all, Dims dims) {
  if (std::find(all.begin(), all.end(), dims) == all.end()) all.push_back(std::move(dims));
}

std::vector<Dims> candidate_dims(const Algorithm& algorithm, const Cluster& cluster) {
  std::vector<Dims> all{natural_dims(cluster)};
  if (!algorithm.has_dims || !hosts_alike(cluster)) return all;
  const int in_host = cluster.host(0).ranks();
  const int hosts = cluster.host_count();
  const int near = square_divisor(hosts);
  std::vector<Dims> more{without_ones({in_host, near, hosts / near}), without_ones({in_host, hosts})};
  std::sort(more.begin(), more.end());
  for (Dims& dims : more) add_new(all, std::move(dims));
  const int part = host_part_size(cluster.host(0));
  if (part == 0) return all;
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
  std::vector<std::vector<int>> orders;
  std::vector<int> lanes;  // numbers worth trying
};

/// The rings of a host as lanes' orders, where they are another way of doing it than the ranks' own order:
/// where they take other steps, and where each lane leaves a host from one of its ranks alone, since they say
/// from which. Else none.
std::vector<std::vector<int>> orders_on_rings(const Algorithm& algorithm, const Cluster& cluster) {
  if (!algorithm.lanes_differ || !hosts_alike(cluster)) return {};
  const Machine& host = cluster.host(0);
  const HostRings rings = host_rings(host);
  if (rings.orders.empty()) return {};
  if (!algorithm.has_dims && cluster.host_count() > 1) return orders_between_hosts(rings, host);
  return rings.follow_ranks() ? std::vector<std::vector<int>>{} : rings.orders;
}

std::vector<Shape> candidate_shapes(const Algorithm& algorithm, const Cluster& cluster,
                                    const PlanConstraints& constraints) {
  std::vector<Dims> all = candidate_dims(algorithm, cluster);
  if (!constraints.dims.empty()) all = {constraints.dims};
  if (!constraints.orders.empty()) {
    const std::size_t in_order = constraints.orders.front().size();
    const auto other = [&](const Dims& dims) { return static_cast<std::size_t>(dims.front()) != in_order; };
    // Where nothing is left check_plan() says so.
    if (!std::all_of(all.begin(), all.end(), other)) std::erase_if(all, other);
  }
  const bool in_rings = constraints.patterns.empty() || constraints.patterns.front() == ring_pattern().name();
  std::vector<std::vector<int>> orders;
  if (constraints.orders.empty() && in_rings) orders = orders_on_rings(algorithm, cluster);
  std::vector<Shape> shapes;
  for (const Dims& dims : all) {
    shapes.push_back(
        {dims, constraints.orders, algorithm.lanes_differ ? std::vector{1, 2, 4} : std::vector{1}});
    if (!orders.empty() && dims.front() == cluster.host(0).ranks())
      shapes.push_back({dims, orders, {static_cast<int>(orders.size())}});
  }
  return shapes;
}

}  // namespace

std::vector<int> natural_dims(const Cluster& cluster) {
  if (!hosts_alike(cluster)) return {cluster.ranks()};
  const int hosts = cluster.host_count();
  const int per_leaf = cluster.fabric.hosts_per_leaf;
  const int in_host = cluster.host(0).ranks();
  std::vector<int> dims{in_host};
  int below = 1;  // hosts
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

std::vector<Plan> candidate_plans(std::string_view algorithm, const Cluster& cluster, Bytes payload,
                                  const PlanConstraints& constraints) {
  constexpr std::uint64_t kSmallestChunk = 64 * 1024;
  const Algorithm& found = find_algorithm(algorithm);
  std::vector<Plan> plans;
  for (const Shape& shape : candidate_shapes(found, cluster, constraints)) {
    for (const int lanes : shape.lanes) {
      for (const std::uint64_t chunks : {1u, 4u, 16u, 64u}) {
        const auto of_lane = static_cast<std::uint64_t>(constraints.lanes > 0 ? constraints.lanes : lanes);
        const std::uint64_t chunk = payload.value / (of_lane * chunks);
        if (chunks > 1 && chunk < kSmallestChunk) continue;
        Plan plan{std::string(algorithm),
                  shape.dims,
                  {},
                  lanes,
                  chunks == 1 ? Bytes{} : Bytes{chunk},
                  shape.orders};
        plan = constrained(std::move(plan), constraints);
        // What is wished for leaves fewer choices.
        if (std::find(plans.begin(), plans.end(), plan) == plans.end()) plans.push_back(std::move(plan));
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

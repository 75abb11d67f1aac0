#include "bench/predict/expected.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include "base/error.hpp"
#include "bench/predict/usable_rates.hpp"
#include "collectives/schedule/catalogue.hpp"
#include "simulation/price_planner.hpp"
#include "topology/inventory/inventory.hpp"
#include "topology/rank_groups.hpp"
#include "topology/rank_nics.hpp"

namespace polyring {
namespace {

constexpr int kElementSize = 4;  // float32
/// Of more ranks, only those algorithms are simulated whose ranks all do the same, so that it takes seconds.
constexpr int kManyRanks = 256;
constexpr std::array<std::string_view, 2> kUniform{"multi-ring", "halving-doubling"};
constexpr const char* kAlone = "one rank has nobody to reduce with";
/// Whose intervals a reader wants, by contenders' names; those that cannot run have none.
constexpr std::array<std::string_view, 8> kImplementations{"multi-ring", "ring",      "nccl", "nccl:ring",
                                                           "nccl:nvls",  "nccl:tree", "mpi",  "gloo"};

ExpectedBound bound_row(std::string where, const Cluster& cluster, const Bound& bound) {
  const int ranks = cluster.ranks();
  ExpectedBound row{std::move(where), cluster.host_count(), ranks, {}, bound.cut};
  row.busbw = bus_bandwidth(kExpectedPayload, ranks, bound.time);
  if (bound.time.value == 0) row.limit = ranks < 2 ? kAlone : "unknown: " + bound.cut;
  return row;
}

/// 2(m − 1)/m · S through each of m hosts' NICs, or NVLink domains', comes to their bandwidth as bus
/// bandwidth when m grows.
ExpectedBound many_hosts(const Cluster& domain) {
  Cluster two = domain;
  two.groups.front().count *= 2;
  const Bound bound = network_bound(two, kExpectedPayload);
  ExpectedBound row =
      bound_row(domain.host_count() > 1 ? "between many NVLink domains" : "between many hosts", two, bound);
  row.hosts = row.ranks = 0;
  row.busbw = bound.bandwidth;
  return row;
}

/// Switches that reduce may do better than the bound of what ranks reduce.
void add_switches(Expectation& expectation, const std::string& name, const Cluster& alone) {
  for (const UsableWay& way : usable_ways(alone, Collective::allreduce, "nccl:nvls")) {
    expectation.bounds.push_back({std::string(kInSwitches) + name, alone.host_count(), alone.ranks(),
                                  way.front().rate, way.front().limit});
  }
}

/// The hosts of a whole NVLink domain where one stands for all, else as many as the cluster has of it.
Cluster domain_of(const Cluster& cluster, const Machine& machine) {
  Cluster domain = one_domain(cluster, machine);
  if (cluster.host_count() == 1)
    domain.groups.front().count = std::max(1, cluster.fabric.hosts_per_nvlink_domain);
  return domain;
}

void add_domain(Expectation& expectation, const std::string& name, const Cluster& domain) {
  if (domain.host_count() > 1)
    expectation.bounds.push_back(
        bound_row("inside a domain of " + name, domain, expected_bound(domain, kExpectedPayload)));
}

void add_intervals(Expectation& expectation, const Cluster& cluster) {
  for (const std::string_view algorithm : kImplementations) {
    const auto interval = expected_interval(cluster, Collective::allreduce, algorithm, expectation.payload);
    if (interval) expectation.intervals.push_back({std::string(algorithm), *interval});
  }
  const Machine& machine = cluster.host(0);
  if (machine.gpus.empty() || cluster.groups.size() > 1) return;
  const int gpus = machine.ranks();
  for (const PublishedFloor& floor : published_rates().floors) {
    const bool model = machine.gpus.front().model.find(floor.gpu) != std::string::npos;
    if (model && floor.gpus == gpus && (floor.hosts > 1) == (cluster.host_count() > 1))
      expectation.floors.push_back(floor);
  }
}

/// Why no allreduce can be done here at all; empty when one can.
std::string unconnected(const Cluster& cluster) {
  if (cluster.ranks() < 2) return kAlone;
  if (cluster.domain_count() < 2) return {};
  for (const HostGroup& group : cluster.groups) {
    std::string why = why_alone(group.machine);
    if (!why.empty()) return why;
  }
  return {};
}

ExpectedAlgorithm simulated(std::string_view algorithm, const Cluster& cluster, const Router& router,
                            const Bound& bound) {
  ExpectedAlgorithm row;
  row.algorithm = algorithm;
  const Count count = static_cast<Count>(kExpectedPayload.value) / kElementSize;
  const ConsideredPlan best =
      consider_plans(modelled_problem(algorithm, cluster, count, kElementSize), cluster, router).front();
  row.unknown = best.unknown;
  const Simulation& simulation = *best.simulation;
  row.plan = to_text(best.plan);
  row.time = simulation.time;
  row.busbw = bus_bandwidth(kExpectedPayload, cluster.ranks(), row.time);
  if (bound.time.value > 0) row.bound_fraction = bound.time.value / row.time.value;
  if (simulation.bottleneck >= 0)
    row.busiest = fmt::format("{}, busy {:.0f} %", router.name(simulation.bottleneck), 100 * simulation.busy);
  return row;
}

/// `unknown`: algorithms by the link whose speed they would need.
std::string why_not(const std::map<std::string, std::vector<std::string_view>>& unknown,
                    const std::vector<std::string_view>& slow) {
  std::vector<std::string> reasons;
  for (const auto& [link, names] : unknown)
    reasons.push_back(fmt::format("{}, and all plans of these cross it: {}", link, fmt::join(names, ", ")));
  if (!slow.empty()) {
    reasons.push_back(fmt::format("{} may take minutes for more than {} ranks; polyring plan does one",
                                  fmt::join(slow, ", "), kManyRanks));
  }
  return fmt::format("{}", fmt::join(reasons, "; "));
}

}  // namespace

Bound expected_bound(const Cluster& cluster, Bytes payload) {
  if (cluster.domain_count() < 2) return usual_bound(Collective::allreduce, cluster, payload);
  Bound bound = allreduce_bound(cluster, payload);
  // Where the network carries less than the NVLinks, nobody takes it for what stays inside a domain.
  Bandwidth network = network_bound(cluster, payload).bandwidth;
  // All NICs of a large domain carry more than the NVLinks of one GPU: there each GPU's own count.
  if (cluster.hosts_per_domain() > 1) network = 1.0 / cluster.ranks_per_domain() * network;
  for (const HostGroup& group : cluster.groups) {
    if (group.machine.gpus.size() < 2 || ranks_by_island(group.machine).size() > 1) continue;
    const Bound inside = usual_bound(Collective::allreduce, one_domain(cluster, group.machine), payload);
    if (network.known() && network <= inside.bandwidth && inside.time > bound.time) bound = inside;
  }
  return bound;
}

Expectation expected_bounds(const Cluster& cluster) {
  Expectation result;
  const Cluster kinds = by_kind(cluster);
  // Which hosts share a leaf switch or an NVLink domain follows from their order.
  const bool ordered = cluster.fabric.hosts_per_leaf > 0 || cluster.hosts_per_domain() > 1;
  const Cluster& whole = ordered ? cluster : kinds;
  for (const HostGroup& group : kinds.groups) {
    const Cluster alone = cluster_of(group.machine, 1);
    result.bounds.push_back(
        bound_row("inside " + group.machine.name, alone, expected_bound(alone, kExpectedPayload)));
    const Cluster domain = domain_of(cluster, group.machine);
    add_domain(result, group.machine.name, domain);
    add_switches(result, group.machine.name, domain);
  }
  if (cluster.domain_count() > 1) {
    const char* between = cluster.hosts_per_domain() > 1 ? "between NVLink domains" : "between hosts";
    result.bounds.push_back(bound_row(between, cluster, network_bound(whole, kExpectedPayload)));
    result.bounds.push_back(bound_row("together", cluster, expected_bound(whole, kExpectedPayload)));
  } else if (!usable_nics(cluster.host(0)).empty()) {
    result.bounds.push_back(many_hosts(domain_of(cluster, cluster.host(0))));
  }
  return result;
}

Expectation expected(const Cluster& cluster) {
  Expectation result = expected_bounds(cluster);
  add_intervals(result, cluster);
  result.not_simulated = unconnected(cluster);
  if (!result.not_simulated.empty()) return result;
  const Router router(cluster);
  const Bound bound = expected_bound(cluster, kExpectedPayload);
  std::vector<std::string_view> slow;
  std::map<std::string, std::vector<std::string_view>> unknown;
  for (const Algorithm& algorithm : algorithms()) {
    if (cluster.ranks() > kManyRanks && std::ranges::find(kUniform, algorithm.name) == kUniform.end()) {
      slow.push_back(algorithm.name);
      continue;
    }
    ExpectedAlgorithm row = simulated(algorithm.name, cluster, router, bound);
    if (row.unknown.empty()) {
      result.algorithms.push_back(std::move(row));
    } else {
      unknown[row.unknown].push_back(algorithm.name);
    }
  }
  result.not_simulated = result.algorithms.empty() ? router.unknown_speed() : why_not(unknown, slow);
  std::ranges::stable_sort(result.algorithms, std::ranges::greater{}, &ExpectedAlgorithm::busbw);
  return result;
}

}  // namespace polyring

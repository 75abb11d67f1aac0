#include "simulation/in_network.hpp"

#include <algorithm>
#include <limits>
#include <map>

#include "base/error.hpp"
#include "collectives/schedule/candidates.hpp"
#include "collectives/schedule/catalogue.hpp"
#include "collectives/schedule/pattern.hpp"
#include "simulation/engine.hpp"
#include "simulation/symmetry.hpp"

namespace polyring {
namespace {

constexpr std::string_view kSharp =
    "Graham et al., Scalable Hierarchical Aggregation Protocol (SHArP), COMHPC 2016";
constexpr std::string_view kStreaming =
    "Graham et al., SHARP Streaming-Aggregation Hardware Design and Evaluation, ISC High Performance 2020, "
    "doi:10.1007/978-3-030-50743-5_3";

void refuse_unlike_hosts(const Cluster& cluster) {
  for (const HostGroup& group : cluster.groups) {
    if (group.machine.ranks() != cluster.host(0).ranks()) {
      usage_error(
          "in-network reduction is modelled for hosts of equally many GPUs; leave in-network out, or choose "
          "such hosts");
    }
  }
  if (!cluster.domains_are_equal()) {
    usage_error(
        "in-network reduction is modelled for NVLink domains of equally many hosts, and {} hosts do not fill "
        "domains of {}; leave in-network out, or choose a number of hosts that does",
        cluster.host_count(), cluster.hosts_per_domain());
  }
}

/// Of the multi-ring for one host, or one NVLink domain, alone.
Schedule schedule_of(const Plan& plan, const Cluster& cluster, Count count, ElementSizes sizes) {
  const Schedule of_host = make_schedule(plan, cluster.ranks_per_domain(), count, sizes.payload);
  return cluster.domain_count() == 1 ? of_host : with_switches(of_host, cluster.ranks());
}

/// Whether it leaves each rank a share of the sum, which the switches then reduce further.
bool leaves_shares(const Plan& plan) {
  return std::ranges::all_of(plan.patterns, [](const std::string& pattern) {
    return find_pattern(pattern)->outcome() == Outcome::scattered;
  });
}

/// The same workload with lanes of so many chunks, where they are of one.
Workload in_chunks(Workload workload, int chunks) {
  for (Flow& flow : workload.flows) flow.bytes /= chunks;
  for (Course& course : workload.courses) course.chunks *= chunks;
  return workload;
}

}  // namespace

Simulation simulate_in_network(const Plan& plan, const Cluster& cluster, const Router& router, Count count,
                               ElementSizes sizes, const SimulationOptions& options) {
  refuse_unlike_hosts(cluster);
  return simulate(schedule_of(plan, cluster, count, sizes), cluster, router, sizes, options);
}

SimulatedPlan choose_in_network(const Cluster& cluster, const Router& router, Count count, ElementSizes sizes,
                                const PlanConstraints& constraints, const SimulationOptions& options) {
  refuse_unlike_hosts(cluster);
  const PlanConstraints in_host{{}, {}, constraints.lanes, constraints.chunk, constraints.orders};
  if (cluster.domain_count() == 1)
    return choose_plan(modelled_problem(kTunedAlgorithm, cluster, count, sizes), cluster, router, in_host,
                       options);

  // The way inside the host is what one host alone would choose.
  const Cluster host = one_domain(cluster, cluster.host(0));
  Problem problem = modelled_problem(kTunedAlgorithm, host, count, sizes);
  std::vector<PricedPlan> ways = price_plans(problem, host, Router(host), in_host);
  if (std::ranges::none_of(ways, leaves_shares, &PricedPlan::plan)) {
    problem.reach = nullptr;  // rings do
    ways = price_plans(problem, host, Router(host), in_host);
  }
  const Plan& way = std::ranges::find_if(ways, leaves_shares, &PricedPlan::plan)->plan;
  std::map<int, Workload> whole;  // by lanes, of one chunk each
  Plan best;
  double least = std::numeric_limits<double>::infinity();
  for (const Plan& plan : candidate_plans(problem, host, in_host)) {
    if (plan.dims != way.dims || plan.patterns != way.patterns || plan.orders != way.orders) continue;
    const auto [at, added] = whole.try_emplace(plan.lanes);
    if (added) {
      Plan unchunked = plan;
      unchunked.chunk = {};
      const Schedule schedule = schedule_of(unchunked, cluster, count, sizes);
      at->second = by_classes(without_slack(make_workload(schedule, cluster, router, sizes, options.costs)));
    }
    const int chunks = schedule_of(plan, cluster, count, sizes).lanes.front().chunks;
    const auto ran = run(in_chunks(at->second, chunks), {.window = options.window, .seconds = least});
    if (!ran || ran->seconds >= least) continue;
    best = plan;
    least = ran->seconds;
  }
  return {best, simulate_in_network(best, cluster, router, count, sizes, options)};
}

std::vector<Citation> in_network_inputs(const Cluster& cluster) {
  if (cluster.domain_count() == 1)
    return {{"one host, or one NVLink domain: the multi-ring's allreduce", "this model"}};
  return {
      {"a tree of switches: each sends on what it has reduced when it has it from all below it, and the "
       "root's result goes back down",
       std::string(kSharp)},
      {"switches reduce as fast as they receive and take no time of their own, whatever the payload: with "
       "SHARP's streaming aggregation, since HDR, about 95 % of the network's bandwidth was measured",
       std::string(kStreaming) + "; that the rest is reached as well is assumed, in its favour"},
      {"the switches are the leaves and one root above them, over all uplinks of a leaf together; any number "
       "of hosts and bytes at once",
       "assumed"},
      {"one half of the fabric's latencies counts on the way up, the other on the way down", "assumed"},
      {"inside a host (or NVLink domain) reduce-scatter before and allgather after; each GPU sends its share "
       "through the NIC "
       "nearest to it",
       "this model"}};
}

}  // namespace polyring

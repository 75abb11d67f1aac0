#include "bench/predict/expected.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/error.hpp"
#include "collectives/schedule/catalogue.hpp"
#include "reports/result.hpp"
#include "reports/tables.hpp"
#include "simulation/price_planner.hpp"
#include "topology/inventory/inventory.hpp"
#include "topology/rank_nics.hpp"

namespace polyring {
namespace {

constexpr int kElementSize = 4;  // float32
/// Of more ranks, only those algorithms are simulated whose ranks all do the same, so that it takes seconds.
constexpr int kManyRanks = 256;
constexpr std::array<std::string_view, 2> kUniform{"multi-ring", "halving-doubling"};
constexpr const char* kAlone = "one rank has nobody to reduce with";

ExpectedBound bound_row(std::string where, const Cluster& cluster, const Bound& bound) {
  const int ranks = cluster.ranks();
  ExpectedBound row{std::move(where), cluster.host_count(), ranks, {}, bound.cut};
  row.busbw = bus_bandwidth(kExpectedPayload, ranks, bound.time);
  if (bound.time.value == 0) row.limit = ranks < 2 ? kAlone : "unknown: " + bound.cut;
  return row;
}

/// 2(m − 1)/m · S through each of m hosts' NICs comes to their bandwidth as bus bandwidth when m grows.
ExpectedBound many_hosts(const Machine& machine) {
  const Cluster two = cluster_of(machine, 2);
  const Bound bound = network_bound(two, kExpectedPayload);
  ExpectedBound row = bound_row("between many hosts", two, bound);
  row.hosts = row.ranks = 0;
  row.busbw = bound.bandwidth;
  return row;
}

/// Why no allreduce can be done here at all; empty when one can.
std::string unconnected(const Cluster& cluster) {
  if (cluster.ranks() < 2) return kAlone;
  if (cluster.host_count() < 2) return {};
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

std::string gigabytes_text(Bandwidth bandwidth) {
  return bandwidth.known() ? significant(bandwidth.gigabytes_per_second()) : "?";
}

std::string count_text(int count) { return count > 0 ? fmt::format("{}", count) : "many"; }

std::string bounds_text(const Expectation& expectation) {
  Table table({{"", "at most", "", Align::left},
               {"", "hosts", "", Align::right},
               {"", "ranks", "", Align::right},
               {"", "busbw", "GB/s", Align::right},
               {"", "what limits", "", Align::left},
               {"", "source", "", Align::left}});
  for (const ExpectedBound& row : expectation.bounds) {
    table.add_row({row.where, count_text(row.hosts), count_text(row.ranks), gigabytes_text(row.busbw),
                   row.limit, std::string(to_text(Source::modelled))});
  }
  // Otherwise 388 GB/s of ports beside a busbw of 679 looks like a mistake.
  const bool over_hosts =
      std::ranges::any_of(expectation.bounds, [](const ExpectedBound& row) { return row.hosts != 1; });
  return table.text() +
         (over_hosts
              ? "\nbusbw is size / time x 2(n - 1)/n for n ranks. The payload must leave and enter each "
                "host at least once, so that\nbusbw between hosts may be up to 2(n - 1)/n times "
                "what the ports of a host carry in each direction.\n"
              : "");
}

std::string algorithms_text(const Expectation& expectation) {
  Table table({{"", "algorithm", "", Align::left},
               {"", "busbw", "GB/s", Align::right},
               {"", "of the bound", "%", Align::right},
               {"", "time", "", Align::right},
               {"", "plan", "", Align::left},
               {"", "busiest", "", Align::left},
               {"", "source", "", Align::left}});
  for (const ExpectedAlgorithm& row : expectation.algorithms) {
    table.add_row({row.algorithm, gigabytes_text(row.busbw),
                   row.bound_fraction ? significant(100 * *row.bound_fraction) : "-", to_text(row.time),
                   row.plan, row.busiest, std::string(to_text(Source::modelled))});
  }
  return table.text();
}

using Json = nlohmann::ordered_json;

Json gigabytes(Bandwidth bandwidth) {
  return bandwidth.known() ? Json(rounded(bandwidth.gigabytes_per_second())) : Json(nullptr);
}

Json to_json(const ExpectedBound& row) {
  return {{"where", row.where},
          {"hosts", row.hosts > 0 ? Json(row.hosts) : Json(nullptr)},
          {"ranks", row.ranks > 0 ? Json(row.ranks) : Json(nullptr)},
          {"busbw_GBps", gigabytes(row.busbw)},
          {"limit", row.limit},
          {"source", to_text(Source::modelled)}};
}

Json to_json(const ExpectedAlgorithm& row) {
  return {{"algorithm", row.algorithm},
          {"plan", row.plan},
          {"time_us", rounded(row.time.value * 1e6)},
          {"busbw_GBps", gigabytes(row.busbw)},
          {"bound_fraction", row.bound_fraction ? Json(rounded(*row.bound_fraction)) : Json(nullptr)},
          {"busiest", row.busiest},
          {"source", to_text(Source::modelled)}};
}

}  // namespace

Expectation expected_bounds(const Cluster& cluster) {
  Expectation result;
  const Cluster kinds = by_kind(cluster);
  // Which hosts share a leaf switch follows from their order.
  const Cluster& whole = cluster.fabric.hosts_per_leaf > 0 ? cluster : kinds;
  for (const HostGroup& group : kinds.groups) {
    const Cluster alone = cluster_of(group.machine, 1);
    result.bounds.push_back(
        bound_row("inside " + group.machine.name, alone, allreduce_bound(alone, kExpectedPayload)));
  }
  if (cluster.host_count() > 1) {
    result.bounds.push_back(bound_row("between hosts", cluster, network_bound(whole, kExpectedPayload)));
    result.bounds.push_back(bound_row("together", cluster, allreduce_bound(whole, kExpectedPayload)));
  } else if (!usable_nics(cluster.host(0)).empty()) {
    result.bounds.push_back(many_hosts(cluster.host(0)));
  }
  return result;
}

Expectation expected(const Cluster& cluster) {
  Expectation result = expected_bounds(cluster);
  result.not_simulated = unconnected(cluster);
  if (!result.not_simulated.empty()) return result;
  const Router router(cluster);
  const Bound bound = allreduce_bound(cluster, kExpectedPayload);
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

std::string to_text(const Expectation& expectation) {
  std::string out =
      fmt::format("expected of an allreduce, by these links (busbw by nccl-tests' definition, for {})\n\n{}",
                  to_text(expectation.payload), bounds_text(expectation));
  if (!expectation.algorithms.empty()) out += "\n" + algorithms_text(expectation);
  if (!expectation.not_simulated.empty())
    out += fmt::format("\nnot simulated: {}\n", expectation.not_simulated);
  return out;
}

std::string to_json(const Expectation& expectation) {
  Json bounds = Json::array();
  for (const ExpectedBound& row : expectation.bounds) bounds.push_back(to_json(row));
  Json json{{"payload_bytes", expectation.payload.value}, {"bounds", std::move(bounds)}};
  if (!expectation.algorithms.empty()) {
    Json algorithms = Json::array();
    for (const ExpectedAlgorithm& row : expectation.algorithms) algorithms.push_back(to_json(row));
    json["algorithms"] = std::move(algorithms);
  }
  if (!expectation.not_simulated.empty()) json["not_simulated"] = expectation.not_simulated;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace polyring

#include "simulation/simulate.hpp"

#include <algorithm>
#include <optional>

#include "collectives/catalogue.hpp"
#include "simulation/engine.hpp"
#include "simulation/price.hpp"
#include "simulation/symmetry.hpp"

namespace polyring {
namespace {

/// Candidates that are simulated, and how much higher than the lowest their prices may be.
constexpr std::size_t kMostSimulated = 3;
constexpr double kPromising = 1.5;
/// A candidate that needs more is passed over while there are others: ranks that are all different, in
/// thousands.
constexpr std::uint64_t kManyEvents = 5'000'000;

struct Limits {
  double seconds = std::numeric_limits<double>::infinity();
  std::uint64_t events = std::numeric_limits<std::uint64_t>::max();
};

/// Nothing when a limit was passed.
std::optional<Simulation> simulate_within(const Schedule& schedule, const Cluster& cluster,
                                          const Router& router, int element_size,
                                          const SimulationOptions& options, const Limits& limits) {
  Workload workload = without_slack(make_workload(schedule, cluster, router, element_size, options.costs));
  if (options.classes) workload = by_classes(workload);
  const auto ran = run(workload, {options.window, options.skip, limits.seconds, limits.events});
  if (!ran) return std::nullopt;
  Simulation result;
  result.time = {ran->seconds};
  result.actors = workload.actors;
  result.events = ran->events;
  const std::vector<double> busy = workload.busy();
  const auto busiest = std::max_element(busy.begin(), busy.end());
  if (busiest != busy.end() && ran->seconds > 0) {
    result.bottleneck = workload.names[static_cast<std::size_t>(busiest - busy.begin())];
    result.busy = *busiest / ran->seconds;
  }
  return result;
}

}  // namespace

Simulation simulate(const Schedule& schedule, const Cluster& cluster, const Router& router, int element_size,
                    const SimulationOptions& options) {
  return *simulate_within(schedule, cluster, router, element_size, options, {});
}

SimulatedPlan choose_plan(std::string_view algorithm, const Cluster& cluster, const Router& router,
                          Count count, int element_size, const PlanWishes& wishes,
                          const SimulationOptions& options) {
  std::vector<PricedPlan> candidates = price_plans(algorithm, cluster, router, count, element_size, wishes);
  const double highest = kPromising * candidates.front().price.time.value;
  std::optional<SimulatedPlan> best;
  for (std::size_t i = 0; i < std::min(candidates.size(), kMostSimulated); ++i) {
    if (candidates[i].price.time.value > highest) break;
    const Schedule schedule = make_schedule(candidates[i].plan, cluster.ranks(), count, element_size);
    Limits limits{std::numeric_limits<double>::infinity(), kManyEvents};
    if (best) limits.seconds = best->simulation.time.value;
    const auto simulation = simulate_within(schedule, cluster, router, element_size, options, limits);
    if (simulation) best = {candidates[i].plan, *simulation};
  }
  if (best) return *std::move(best);
  const Plan& plan = candidates.front().plan;
  return {plan, simulate(make_schedule(plan, cluster.ranks(), count, element_size), cluster, router,
                         element_size, options)};
}

}  // namespace polyring

#include "simulation/simulate.hpp"

#include <algorithm>
#include <optional>

#include "collectives/catalogue.hpp"
#include "simulation/engine.hpp"
#include "simulation/symmetry.hpp"

namespace polyring {
namespace {

/// Candidates that are simulated, and how much higher than the lowest their prices may be.
constexpr std::size_t kMostSimulated = 3;
constexpr double kPromising = 1.5;
/// Where thousands of ranks are all different, that takes too long: then the price decides.
constexpr std::uint64_t kManyEvents = 1'000'000;

struct Limits {
  double seconds = std::numeric_limits<double>::infinity();
  std::uint64_t events = std::numeric_limits<std::uint64_t>::max();
};

/// Nothing when a limit was passed.
std::optional<Simulation> simulate_within(Workload workload, const SimulationOptions& options,
                                          const Limits& limits) {
  workload = without_slack(std::move(workload));
  if (options.classes) workload = by_classes(workload, options.window);
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
  return simulate(make_workload(schedule, cluster, router, element_size, options.costs), options);
}

Simulation simulate(Workload workload, const SimulationOptions& options) {
  return *simulate_within(std::move(workload), options, {});
}

std::vector<ConsideredPlan> consider_plans(std::string_view algorithm, const Cluster& cluster,
                                           const Router& router, Count count, int element_size,
                                           const PlanWishes& wishes, const SimulationOptions& options) {
  std::vector<ConsideredPlan> plans;
  for (PricedPlan& priced : price_plans(algorithm, cluster, router, count, element_size, wishes))
    plans.push_back(
        {std::move(priced.plan), std::move(priced.price), std::nullopt, std::move(priced.unknown)});
  const auto workload_of = [&](const Plan& plan) {
    return make_workload(make_schedule(plan, cluster.ranks(), count, element_size), cluster, router,
                         element_size, options.costs);
  };
  Simulation best = simulate(workload_of(plans.front().plan), options);
  plans.front().simulation = best;
  const double highest = kPromising * plans.front().price.time.value;
  for (std::size_t i = 1; i < std::min(plans.size(), kMostSimulated); ++i) {
    if (best.events > kManyEvents || plans[i].price.time.value > highest) break;
    if (!plans[i].unknown.empty() && plans.front().unknown.empty()) break;
    const Limits limits{best.time.value, kManyEvents};
    plans[i].simulation = simulate_within(workload_of(plans[i].plan), options, limits);
    if (plans[i].simulation && plans[i].simulation->time < best.time) best = *plans[i].simulation;
  }
  std::stable_sort(plans.begin(), plans.end(), [](const ConsideredPlan& a, const ConsideredPlan& b) {
    if (!a.simulation || !b.simulation) return a.simulation.has_value() && !b.simulation.has_value();
    return a.simulation->time < b.simulation->time;
  });
  return plans;
}

SimulatedPlan choose_plan(std::string_view algorithm, const Cluster& cluster, const Router& router,
                          Count count, int element_size, const PlanWishes& wishes,
                          const SimulationOptions& options) {
  auto plans = consider_plans(algorithm, cluster, router, count, element_size, wishes, options);
  return {std::move(plans.front().plan), *plans.front().simulation};
}

}  // namespace polyring

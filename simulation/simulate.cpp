#include "simulation/simulate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>

#include "collectives/schedule/catalogue.hpp"
#include "simulation/engine.hpp"
#include "simulation/symmetry.hpp"

namespace polyring {
namespace {

/// Candidates that are simulated, and how much higher than the lowest their prices may be.
constexpr std::size_t kMostSimulated = 3;
constexpr double kPromising = 1.5;
/// Where thousands of ranks are all different, that takes too long: then the price decides.
constexpr std::uint64_t kManyEvents = 1'000'000;
/// Events and rates beyond which a plan is not simulated where another one that is as good has fewer
/// messages.
constexpr std::uint64_t kMuchWork = 40'000'000;
/// A message begins and ends, and gets a rate at least once.
constexpr std::uint64_t kWorkOfMessage = 3;

struct Limits {
  double seconds = std::numeric_limits<double>::infinity();
  std::uint64_t events = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t work = std::numeric_limits<std::uint64_t>::max();
};

/// Nothing when a limit was passed.
std::optional<Simulation> simulate_within(Workload workload, const SimulationOptions& options,
                                          const Limits& limits) {
  workload = without_slack(std::move(workload));
  if (options.classes) workload = by_classes(workload, options.window);
  if (workload.messages() > limits.work / kWorkOfMessage) return std::nullopt;
  const auto ran = run(workload, {options.window, options.skip, limits.seconds, limits.events, limits.work});
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

/// Whether this plan crosses a link of unknown speed and the first, which has the lowest price, does not.
bool crosses_unknown(const std::vector<ConsideredPlan>& plans, std::size_t plan) {
  return !plans[plan].unknown.empty() && plans.front().unknown.empty();
}

}  // namespace

Simulation simulate(const Schedule& schedule, const Cluster& cluster, const Router& router,
                    ElementSizes sizes, const SimulationOptions& options) {
  return simulate(make_workload(schedule, cluster, router, sizes, options.costs), options);
}

Simulation simulate(Workload workload, const SimulationOptions& options) {
  return *simulate_within(std::move(workload), options, {});
}

std::string bottleneck_text(const Simulation& simulation, const Router& router) {
  if (simulation.bottleneck < 0) return "latency";
  return fmt::format("{}, busy {:.0f} % of the time", router.name(simulation.bottleneck),
                     100 * simulation.busy);
}

std::vector<ConsideredPlan> consider_plans(std::string_view algorithm, const Cluster& cluster,
                                           const Router& router, Count count, ElementSizes sizes,
                                           const PlanConstraints& constraints,
                                           const SimulationOptions& options) {
  std::vector<PricedPlan> all = price_plans(algorithm, cluster, router, count, sizes, constraints);
  const std::size_t smallest = fewest_chunks(all, cluster.ranks(), count, sizes);
  std::vector<ConsideredPlan> plans;
  for (PricedPlan& priced : all)
    plans.push_back(
        {std::move(priced.plan), std::move(priced.price), std::nullopt, std::move(priced.unknown)});
  const auto workload_of = [&](const Plan& plan) {
    return make_workload(make_schedule(plan, cluster.ranks(), count, sizes.payload), cluster, router, sizes,
                         options.costs);
  };
  Limits limits;
  if (smallest > 0) limits.work = kMuchWork;
  plans.front().simulation = simulate_within(workload_of(plans.front().plan), options, limits);
  if (!plans.front().simulation) {
    plans[smallest].simulation = simulate(workload_of(plans[smallest].plan), options);
    std::rotate(plans.begin(), plans.begin() + static_cast<std::ptrdiff_t>(smallest),
                plans.begin() + static_cast<std::ptrdiff_t>(smallest) + 1);
    return plans;
  }
  Simulation best = *plans.front().simulation;
  const double highest = kPromising * plans.front().price.time.value;
  for (std::size_t i = 1; i < std::min(plans.size(), kMostSimulated); ++i) {
    if (best.events > kManyEvents || plans[i].price.time.value > highest) break;
    if (crosses_unknown(plans, i)) break;
    limits = {best.time.value, kManyEvents};
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
                          Count count, ElementSizes sizes, const PlanConstraints& constraints,
                          const SimulationOptions& options) {
  auto plans = consider_plans(algorithm, cluster, router, count, sizes, constraints, options);
  return {std::move(plans.front().plan), *plans.front().simulation};
}

}  // namespace polyring

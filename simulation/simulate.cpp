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

/// A message begins and ends, and gets a rate at least once.
constexpr std::uint64_t kWorkOfMessage = 3;

}  // namespace

std::optional<Simulation> simulate_within(Workload workload, const SimulationOptions& options,
                                          const SimulationLimits& limits) {
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
  // The first of equal ones: rounding tells some apart.
  const double longest = busy.empty() ? 0 : std::ranges::max(busy) * (1 - 1e-12);
  const auto busiest = std::ranges::find_if(busy, [&](double time) { return time >= longest; });
  if (busiest != busy.end() && ran->seconds > 0) {
    result.bottleneck = workload.names[static_cast<std::size_t>(busiest - busy.begin())];
    result.busy = *busiest / ran->seconds;
  }
  return result;
}

Simulation simulate(const Schedule& schedule, const Cluster& cluster, const Router& router,
                    ElementSizes sizes, const SimulationOptions& options) {
  return simulate(make_workload(schedule, cluster, router, sizes, options.costs, options.classes), options);
}

Simulation simulate(Workload workload, const SimulationOptions& options) {
  return *simulate_within(std::move(workload), options, {});
}

std::string bottleneck_text(const Simulation& simulation, const Router& router) {
  if (simulation.bottleneck < 0) return "latency";
  return fmt::format("{}, busy {:.0f} % of the time", router.name(simulation.bottleneck),
                     100 * simulation.busy);
}

}  // namespace polyring

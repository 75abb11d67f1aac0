#include "simulation/simulate.hpp"

#include <algorithm>

#include "simulation/engine.hpp"
#include "simulation/symmetry.hpp"

namespace polyring {

Simulation simulate(const Schedule& schedule, const Cluster& cluster, const Router& router, int element_size,
                    const SimulationOptions& options) {
  Workload workload = without_slack(make_workload(schedule, cluster, router, element_size, options.costs));
  if (options.classes) workload = by_classes(workload);
  const EngineResult ran = run(workload, {options.window, options.skip});
  Simulation result;
  result.time = {ran.seconds};
  result.actors = workload.actors;
  result.events = ran.events;
  const std::vector<double> busy = workload.busy();
  const auto busiest = std::max_element(busy.begin(), busy.end());
  if (busiest != busy.end() && ran.seconds > 0) {
    result.bottleneck = workload.names[static_cast<std::size_t>(busiest - busy.begin())];
    result.busy = *busiest / ran.seconds;
  }
  return result;
}

}  // namespace polyring

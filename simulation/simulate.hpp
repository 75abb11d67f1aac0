// How long a schedule would take on a cluster, link by link.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "collectives/schedule/plan.hpp"
#include "collectives/schedule/program.hpp"
#include "simulation/costs.hpp"
#include "simulation/price.hpp"
#include "simulation/workload.hpp"

namespace polyring {

struct SimulationOptions {
  int window = kDefaultWindow;  // chunks of each lane in flight, as the executor's
  Costs costs{};
  // Ways to the same time in fewer events; off in tests that compare.
  bool classes = true;  // equal ranks are simulated once
  bool skip = true;     // so are steps that repeat
};

struct Simulation {
  Seconds time;
  ResourceId bottleneck = -1;  // of a Router: the resource that is busy longest; −1: none of known bandwidth
  double busy = 0;             // part of the time for which it is
  int actors = 0;              // classes of ranks that were told apart
  std::uint64_t events = 0;
};

/// Throws as make_workload() does.
Simulation simulate(const Schedule& schedule, const Cluster& cluster, const Router& router,
                    ElementSizes sizes, const SimulationOptions& options = {});

/// Of a workload that is written out already, with the costs in it.
Simulation simulate(Workload workload, const SimulationOptions& options);

/// The bottleneck in words: "node0 mlx5_0 out, busy 98 % of the time", or "latency".
std::string bottleneck_text(const Simulation& simulation, const Router& router);

struct SimulatedPlan {
  Plan plan;
  Simulation simulation;
};

struct ConsideredPlan {
  Plan plan;
  Price price;
  std::optional<Simulation> simulation;  // of the few that might be the fastest
  std::string unknown{};                 // unknown_speed() of it: where there is one, times mean nothing
};

/// The candidates of an algorithm for `count` elements; all keep the constraints. Those with the lowest
/// prices are simulated and come first, the fastest at the front; the others follow, by price. A simulation
/// stops when it takes too long or turns out slower than another one. At least one plan is simulated. A plan
/// that crosses links of unknown speed is not, if another one does not. If the cheapest plan has too many
/// messages, as with thousands of ranks that are all different, the one with the fewest chunks among those
/// within 5 % of its price is simulated instead.
std::vector<ConsideredPlan> consider_plans(std::string_view algorithm, const Cluster& cluster,
                                           const Router& router, Count count, ElementSizes sizes,
                                           const PlanConstraints& constraints = {},
                                           const SimulationOptions& options = {});

/// The first of them.
SimulatedPlan choose_plan(std::string_view algorithm, const Cluster& cluster, const Router& router,
                          Count count, ElementSizes sizes, const PlanConstraints& constraints = {},
                          const SimulationOptions& options = {});

}  // namespace polyring

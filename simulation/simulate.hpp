// How long a schedule would take on a cluster, link by link.
#pragma once

#include <cstdint>
#include <string_view>

#include "collectives/executor.hpp"
#include "collectives/plan.hpp"
#include "simulation/costs.hpp"
#include "simulation/workload.hpp"

namespace polyring {

struct SimulationOptions {
  int window = kDefaultWindow;  // chunks of each lane in flight, as the executor's
  Costs costs{};
  // Ways to the same time in fewer events; off in tests that compare.
  bool classes = true;  // what is alike is simulated once
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
Simulation simulate(const Schedule& schedule, const Cluster& cluster, const Router& router, int element_size,
                    const SimulationOptions& options = {});

/// Of a workload that is written out already, with the costs in it.
Simulation simulate(Workload workload, const SimulationOptions& options);

struct SimulatedPlan {
  Plan plan;
  Simulation simulation;
};

/// The fastest plan of an algorithm for `count` elements, which has what is wished for. The candidates whose
/// prices are lowest are simulated, unless that takes too long.
SimulatedPlan choose_plan(std::string_view algorithm, const Cluster& cluster, const Router& router,
                          Count count, int element_size, const PlanWishes& wishes = {},
                          const SimulationOptions& options = {});

}  // namespace polyring

// How long a schedule would take on a cluster, link by link.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "collectives/schedule/plan.hpp"
#include "collectives/schedule/program.hpp"
#include "simulation/costs.hpp"
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

/// When a simulation stops without a result.
struct SimulationLimits {
  double seconds = std::numeric_limits<double>::infinity();  // of the time that is simulated
  std::uint64_t events = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t work = std::numeric_limits<std::uint64_t>::max();  // events and rates
};

/// The same; nothing when a limit was passed.
std::optional<Simulation> simulate_within(Workload workload, const SimulationOptions& options,
                                          const SimulationLimits& limits);

/// The bottleneck in words: "node0 mlx5_0 out, busy 98 % of the time", or "latency".
std::string bottleneck_text(const Simulation& simulation, const Router& router);

}  // namespace polyring

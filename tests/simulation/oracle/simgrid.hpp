// The oracle of the simulator: SimGrid simulates the same schedule on the same cluster. It shares the
// schedule and the routes with the simulator and nothing else: what each rank does is written out here once
// more, as actors.
//
// H. Casanova, A. Giersch, A. Legrand, M. Quinson, F. Suter, "Versatile, scalable, and accurate simulation of
// distributed applications and platforms", JPDC 74(10), 2014.
#pragma once

#include <string>

#include "collectives/schedule/schedule.hpp"
#include "topology/route.hpp"

namespace polyring::testing {

/// Why SimGrid is not here; empty when it is.
std::string no_simgrid();

/// How long SimGrid says that the schedule takes with `window` chunks of each lane in flight, where neither
/// messages nor reductions cost anything but their way. Runs in a process of its own, because SimGrid has but
/// one simulation for each; throws std::runtime_error when that process fails, and where SimGrid is absent.
/// Routes without latency or without a resource are beyond it.
Seconds time_by_simgrid(const Schedule& schedule, const Router& router, int element_size, int window);

}  // namespace polyring::testing

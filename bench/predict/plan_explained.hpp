// Why a plan won over the others that were considered, and over which links its lanes go.
#pragma once

#include <span>
#include <string>

#include "simulation/price_planner.hpp"
#include "topology/cluster.hpp"
#include "topology/route.hpp"

namespace polyring {

/// What was planned for.
struct PlannedFor {
  const Cluster& cluster;
  const Router& router;
  Count count = 0;
  ElementSizes sizes;
};

/// Of each of the ways that plans go, by dimensions, patterns and orders of their rings, the best plan: a
/// table, the fastest first; then in a sentence what the fastest spares against the next one. `considered` is
/// consider_plans()'s, and not empty.
std::string explain_choice(std::span<const ConsideredPlan> considered, const PlannedFor& planned);

/// Which ranks of the first host reach each other's memory; the rings of each lane inside it, what their
/// steps go over, by which NICs they leave it, and which links no lane uses.
std::string draw_rings(const Plan& plan, const PlannedFor& planned);

}  // namespace polyring

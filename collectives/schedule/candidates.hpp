// Which plans are worth a price: dimensions from the hierarchy of the cluster, patterns by rule, and lanes
// from the rings of a host.
#pragma once

#include <vector>

#include "collectives/schedule/planner.hpp"
#include "topology/cluster.hpp"

namespace polyring {

/// Dimensions that follow the machine: ranks inside a host, hosts under a leaf switch, leaves; dimensions of
/// one are left out, a cluster of one rank has the dimensions {1}. `{ranks}` when hosts differ in their
/// ranks.
std::vector<int> natural_dims(const Cluster& cluster);

/// Plans worth a price on the cluster: natural dimensions, near and far hosts as two (the most square
/// factoring, as in DDL's 4x8x8), the equal parts of a host as one of their own, lanes by rank and on the
/// host's rings (host_rings.hpp), lane counts, chunk sizes for the payload, one after another for each of the
/// others. All keep the constraints. Hosts are taken in the cluster's order, in which those under one leaf
/// follow each other, and as being like the first. Throws as check_plan() does.
std::vector<Plan> candidate_plans(const Problem& problem, const Cluster& cluster,
                                  const PlanConstraints& constraints = {});

/// Rank grids worth trying where nothing is known but the hosts: flat, hosts' ranks first, near and far hosts
/// as two dimensions, and one host's ranks as two. Only the flat grid for 0 ranks per node: then
/// hosts differ in their ranks.
std::vector<std::vector<int>> rank_grids(int ranks, int ranks_per_node, int nodes);

}  // namespace polyring

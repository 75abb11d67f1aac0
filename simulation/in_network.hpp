// In-network reduction, as by NVIDIA's SHARP: the switches add up what hosts send, so that a payload
// leaves each host once and comes back once, where hosts that reduce it themselves send it nearly twice.
//
//   two hosts of two GPUs, {0,1} and {2,3}:
//     reduce-scatter   0 ⇄ 1            2 ⇄ 3      halves
//     up               0, 1 → switch ← 2, 3        each its half
//     down             0, 1 ← switch → 2, 3        the half of all
//     allgather        0 ⇄ 1            2 ⇄ 3
//
// Inside hosts it is the multi-ring; switch_tree.hpp is the rest. Chunks follow each other, so that a NIC
// sends and receives at the same time, and a large payload S takes S/B with B into and out of a host: half of
// the bound that collectives/schedule/bound.hpp has for reductions at the ranks, where there are many hosts.
#pragma once

#include <string_view>
#include <vector>

#include "simulation/price_planner.hpp"

namespace polyring {

/// The name that stands for it where an algorithm is asked for.
inline constexpr std::string_view kInNetwork = "in-network";

/// `plan` is a multi-ring over the ranks of one host. Throws a usage Error where hosts differ in their number
/// of ranks, and as simulate() does.
Simulation simulate_in_network(const Plan& plan, const Cluster& cluster, const Router& router, Count count,
                               ElementSizes sizes, const SimulationOptions& options = {});

/// The fastest plan inside hosts, with the lanes and chunks of the constraints. One host alone reduces as
/// the multi-ring does. Throws as simulate_in_network() does.
SimulatedPlan choose_in_network(const Cluster& cluster, const Router& router, Count count, ElementSizes sizes,
                                const PlanConstraints& constraints = {},
                                const SimulationOptions& options = {});

/// What the times rest on, each with its source.
std::vector<Citation> in_network_inputs(const Cluster& cluster);

}  // namespace polyring

// The bound: the least time in which any allreduce whose reductions are done at the ranks can move its
// payload over this topology. Switches that reduce (SHARP, NVLink SHARP) can do better.
#pragma once

#include <string>

#include "topology/cluster.hpp"
#include "topology/units.hpp"

namespace polyring {

/// A cut into m equal parts, each joined to the rest by `bandwidth` in each direction.
struct Bound {
  Seconds time;         // 0 when no cut has a known bandwidth
  Bandwidth bandwidth;  // of the cut that limits
  std::string cut;      // in words: "64 hosts, each with 1 NIC: 12.1 GB/s"
};

/// 2(m − 1)/m · payload / bandwidth, for the worst of the cuts into ranks, packages, hosts and leaf switches:
/// the bytes that must leave an average part, Patarasuk and Yuan's lower bound applied to parts instead of
/// ranks. `payload` is each rank's. Cuts with a link of unknown bandwidth are left out.
Bound allreduce_bound(const Cluster& cluster, Bytes payload);

}  // namespace polyring

// The cores that a process may use, in hwloc's tree of objects.
#pragma once

#include "topology/inventory/allowed_cores.hpp"
#include "topology/inventory/probe/hwloc_topology.hpp"

namespace polyring::probe {

/// Of a process that may run on these hardware threads (OS indices). A core counts with any of its hardware
/// threads, since jobs are often given one of each. Without limits of time.
AllowedCores cores_of(const HwlocTopology& topology, hwloc_const_cpuset_t affinity);

}  // namespace polyring::probe

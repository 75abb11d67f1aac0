// NVLink and xGMI between GPUs and packages, from hwloc's matrices of distances.
#pragma once

#include <map>

#include "topology/inventory/probe/hwloc_topology.hpp"
#include "topology/machine.hpp"

namespace polyring::probe {

/// Adds a link for each pair of the matrices NVLinkBandwidth and XGMIBandwidth (MB/s) that is above 0. `gpus`
/// says which PCI object is which GPU. Ports of NVSwitches, where the matrix has them, are taken together as
/// one NVSwitch.
void add_gpu_links(const HwlocTopology& topology, const std::map<hwloc_obj_t, DeviceId>& gpus,
                   Machine& machine);

}  // namespace polyring::probe

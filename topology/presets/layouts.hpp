// How hosts are usually laid out: sockets, PCIe switches with GPUs and NICs, and the links between GPUs.
#pragma once

#include <string_view>
#include <vector>

#include "topology/presets/parts.hpp"

namespace polyring::presets {

/// The sockets of a machine that people know, and the bus between each two of them.
struct UsualSockets {
  SocketKind socket;
  Bandwidth bus;
  std::string_view machine;  // "the DGX H100"
};

/// What servers with this generation of PCIe usually have: those of the DGX-1 (up to 3), of the DGX A100 (4)
/// and of the DGX H100 (5 and above).
UsualSockets usual_sockets(int pcie_generation);

/// Equal packages, a bus between every two of them. Package i is NUMA node i.
std::vector<DeviceId> add_packages(Machine& machine, const SocketKind& kind, Bandwidth socket_bus,
                                   int sockets = 2);

/// PCIe switches, as many on each package, with as many GPUs and NICs on each switch.
struct SwitchTrees {
  int switches = 4;
  int gpus_per_switch = 2;
  int nics_per_switch = 0;
};
/// `gpu_pcie`: of a GPU's link to its switch; all others have `pcie`.
void add_switch_trees(Machine& machine, const std::vector<DeviceId>& packages, const GpuKind& gpu,
                      const NicPart& nic, const SwitchTrees& trees, Bandwidth pcie, Bandwidth gpu_pcie);

// Links between all GPUs that the machine has.

/// All on NVSwitches. They are counted as one: a GPU spreads its traffic over all of them evenly.
void add_nvswitches(Machine& machine, Bandwidth per_gpu);
/// The hybrid cube mesh of eight GPUs with four links each: both halves are complete, and GPU i meets GPU i +
/// 4.
void add_cube_mesh(Machine& machine, Bandwidth nvlink);
/// The same mesh for GPUs with six links each: of a GPU's partners two have a double link.
void add_doubled_cube_mesh(Machine& machine, Bandwidth nvlink);
/// So many links between every two GPUs, or between GPUs 0 and 1, 2 and 3, ….
void add_full_mesh(Machine& machine, const GpuLinks& links, int per_pair);
void add_pairs(Machine& machine, const GpuLinks& links, int per_pair);

}  // namespace polyring::presets

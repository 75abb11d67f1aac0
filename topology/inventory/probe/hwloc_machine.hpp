// From hwloc's tree of objects to a Machine.
#pragma once

#include <optional>

#include "topology/inventory/probe/hwloc_topology.hpp"
#include "topology/inventory/probe/sysfs.hpp"
#include "topology/machine.hpp"

namespace polyring::probe {

/// The machine that the topology describes. `sysfs` is given for the machine that we run on, and then says
/// how fast PCIe links can be and what the ports' states and rates are; without it the topology's own
/// attributes do, and the ports of plain Ethernet NICs stay unknown.
///
/// - The OS devices of one PCI function (cuda0, nvml0, card0; mlx5_0, ib0) are one GPU or one NIC.
/// - GPUs are NVIDIA's and AMD's display and 3D controllers, which leaves the management VGA of servers out.
/// - With `sysfs`, the virtual functions (SR-IOV) of a device that is here count neither as GPUs nor as NICs.
/// - A PCIe switch is listed only when it leads to a GPU or a NIC.
/// - An adapter that is attached to several sockets shows the same port there again; such a port is one NIC
/// with a
///   link to each socket.
Machine machine_from(const HwlocTopology& topology, const std::optional<Sysfs>& sysfs);

}  // namespace polyring::probe

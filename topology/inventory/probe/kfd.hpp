// AMD's kernel driver (kfd) as a source of a probe: xGMI (Infinity Fabric) links between GPUs, and to CPUs.
#pragma once

#include "topology/inventory/probe/sysfs.hpp"
#include "topology/machine.hpp"

namespace polyring::probe {

/// Adds the xGMI links that class/kfd/kfd/topology has between GPUs of the machine, and between GPUs and
/// packages. Says what was read there, or why nothing was.
///
/// The files are those of linux/drivers/gpu/drm/amd/amdkfd/kfd_topology.c: nodes/N/properties names a GPU's
/// PCI address (domain, location_id) and its architecture (gfx_target_version), nodes/N/io_links/M/properties
/// has `type` 11 for xGMI, node_from, node_to, weight (15 for each hop) and max_bandwidth (MB/s per
/// direction, all links between the two; 0 when the driver does not know it). Where the driver takes every
/// link for one of an MI200's, xgmi_rate() replaces that. Where it lists links between GPUs, and of none what
/// it carries, the machine's gpu_links_known becomes false.
ProbeSource add_xgmi(const Sysfs& sysfs, Machine& machine);

}  // namespace polyring::probe

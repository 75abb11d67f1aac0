// What somebody should look at on a machine, as far as sysfs shows it.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "topology/inventory/probe/sysfs.hpp"
#include "topology/machine.hpp"

namespace polyring::probe {

/// PCIe links of the machine's GPUs, NICs and switches that run on fewer lanes or at a lower speed than both
/// ends can do, and GPUs in slots with fewer lanes than theirs; NICs whose ports are faster than their PCIe
/// link; and odd_ones(). GPUs that are idle turn their speed down, so theirs counts for those in `busy` (PCI
/// addresses) only. Those that are of one link that does less than it could are among `faults`, too.
std::vector<std::string> pcie_remarks(const Machine& machine, const Sysfs& sysfs,
                                      const std::set<std::string>& busy, std::vector<LinkFault>& faults);

/// Adapters whose ports are faster than their PCIe link, which their functions share.
std::vector<std::string> adapter_remarks(const Machine& machine);

/// Of a machine from a file: adapter_remarks(), and odd_ones().
std::vector<std::string> file_remarks(const Machine& machine);

/// One where its NVSwitches may join it with other hosts: superchips' (GB200 NVL72), or any where the source
/// has several hosts of one NVLink domain (`are_several`).
std::vector<std::string> rack_remarks(const Machine& machine, bool are_several = false);

/// Which GPUs and NICs nothing tells the package of.
std::vector<std::string> package_remarks(const Machine& machine);

/// NVIDIA's GPUs that PCI shows, but not their driver, which shows those with these PCI addresses.
std::vector<std::string> driver_remarks(const Machine& machine, const Sysfs& sysfs,
                                        const std::set<std::string>& shown);

/// Ports of the machine's NICs that are down, polling or without a subnet manager; interfaces that are set up
/// but have no carrier, that stand by in a bond, or differ in MTU from others of their speed. InfiniBand
/// adapters that show no port. There is no remark on an Ethernet interface that nobody has set up. What is
/// down where most NICs of its model are up is among `faults`, too.
std::vector<std::string> port_remarks(const Machine& machine, const Sysfs& sysfs,
                                      std::vector<LinkFault>& faults);

}  // namespace polyring::probe

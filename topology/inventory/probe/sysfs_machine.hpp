// A Machine from a copy of another machine's /sys, which hwloc cannot be asked about.
#pragma once

#include "topology/inventory/probe/sysfs.hpp"
#include "topology/machine.hpp"

namespace polyring::probe {

/// The machine that the copied tree describes, as far as it was copied: packages and memory from
/// devices/system, PCI devices and bridges from bus/pci or devices/pci*, NICs from class/infiniband and
/// class/net. One package stands for processors that were not copied. The rules of which devices count are
/// those of hwloc_machine.hpp. Throws a usage Error for more devices than a host has.
Machine machine_from(const Sysfs& sysfs);

/// Whether anything of it was.
bool was_copied(const Sysfs& sysfs);

/// What of the tree was there, and what was not: the detail of its ProbeSource.
std::string what_was_copied(const Sysfs& sysfs);

}  // namespace polyring::probe

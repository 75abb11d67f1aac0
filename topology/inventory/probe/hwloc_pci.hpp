// Where a PCI device hangs: the switches and the host bridge above it, and how wide the links to them are.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "topology/inventory/probe/hwloc_topology.hpp"
#include "topology/inventory/probe/pci_links.hpp"
#include "topology/inventory/probe/sysfs.hpp"
#include "topology/machine.hpp"

namespace polyring::probe {

/// `0000:01:00.0`. The object must be a PCI device or a PCI bridge.
std::string pci_address(hwloc_obj_t object);

/// What hwloc has of its link upwards; 0 when unknown. The object must be as above.
Bandwidth recorded_speed(hwloc_obj_t object);

/// Adds packages, PCIe switches and the links to them to a machine, as devices are attached.
class PciTree {
 public:
  /// Adds the topology's packages and the buses between them to the machine, which must outlive this.
  PciTree(const HwlocTopology& topology, const std::optional<Sysfs>& sysfs, Machine& machine);

  /// Links the device to the switch, or else the package, that it hangs under; adds those switches.
  void attach(hwloc_obj_t object, DeviceId device);

  /// The index of the package that is nearest to the object; nothing when there are several, or none.
  std::optional<int> package_of(hwloc_obj_t object) const;
  /// The OS index of the only NUMA node near the object, of those that are processors' memory; -1 when there
  /// are several.
  int numa_of(hwloc_obj_t object) const;
  /// The index of the PCI host bridge above the object, -1 when there is none.
  int host_bridge_of(hwloc_obj_t object);

 private:
  void add_package(hwloc_obj_t object);
  Bandwidth speed(hwloc_obj_t object, bool may_idle) const;
  PciIdentity identity(hwloc_obj_t object) const;
  /// `may_idle`: of a link that a GPU turns down when it has nothing to do.
  PciEnd end_at(hwloc_obj_t object, bool may_idle) const;

  const HwlocTopology& topology_;
  const std::optional<Sysfs>& sysfs_;
  Machine& machine_;
  PciLinks links_;
  std::vector<hwloc_obj_t> packages_;
  std::map<hwloc_obj_t, int> host_bridges_;
};

}  // namespace polyring::probe

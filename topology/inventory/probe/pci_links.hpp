// From the PCI bridges above a device to the switches and links of a Machine.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "topology/inventory/probe/pci_ids.hpp"
#include "topology/machine.hpp"

namespace polyring::probe {

/// One PCI function that a device's data pass: a bridge, or the device itself.
struct PciEnd {
  std::string key;      // names it among all of the machine's
  std::string address;  // "0000:01:00.0"
  Bandwidth bandwidth;  // of its link upwards; 0 when unknown
  PciIdentity identity{};
};

/// Adds PCIe switches, and the links of devices to them or to packages, to a machine.
class PciLinks {
 public:
  /// The machine must outlive this.
  explicit PciLinks(Machine& machine) : machine_(machine) {}

  /// Links the device to the switch, or else the package, that it hangs under, and adds those switches. Two
  /// levels of them can be one switch: see are_one_switch(). Where nothing tells which of several packages
  /// that is, it is linked to the first, and Gpu or Nic::package_known says so. `bridges` are those above it,
  /// from the root port down, and `ends` those of the device's own link: itself, or nothing when it is not a
  /// PCI device, whose link is unknown.
  void attach(DeviceId device, std::optional<int> package, const std::vector<PciEnd>& bridges,
              const std::vector<PciEnd>& ends);

 private:
  DeviceId switch_at(const PciEnd& upstream, const PciEnd& above, DeviceId parent);

  Machine& machine_;
  std::map<std::string, DeviceId> switches_;  // by the key of the upstream port
};

/// Says of a GPU or NIC that nothing tells which package it is near, unless there is only one.
void package_is_unknown(Machine& machine, DeviceId device);

/// A link to each other package from each package; how wide they are no probe can read, see
/// socket_buses.hpp.
void add_socket_buses(Machine& machine);

}  // namespace polyring::probe

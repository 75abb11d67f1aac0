// What Linux's sysfs says about PCI devices, links and ports; hwloc 2.9 reports neither port rates nor the
// best PCIe speed.
//
// Files and their meaning: Documentation/ABI/testing/sysfs-bus-pci, sysfs-class-infiniband (stable) and
// sysfs-class-net of the Linux kernel.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "topology/inventory/probe/pci_ids.hpp"
#include "topology/machine.hpp"

namespace polyring::probe {

/// A PCI device's link upwards. What is unknown is 0.
struct PcieLink {
  double speed = 0;      // gigatransfers/s per lane, now; idle GPUs turn it down
  double max_speed = 0;  // what the device can do
  int lanes = 0;         // negotiated with the port above; does not depend on load
  int max_lanes = 0;
};

/// A PCI device, and where it hangs.
struct PciDevice {
  std::string address;    // "0000:01:00.0"
  unsigned class_id = 0;  // base class and subclass, 0x0302
  PciIdentity identity;
  std::string host_bridge;           // "pci0000:00", empty when unknown
  std::vector<std::string> bridges;  // addresses of those above it, from the root port down
};

/// A network interface of a device, which lo, bridges and bonds are not; those on USB, and those that stand
/// on another, are left out.
struct Interface {
  std::string name;  // "eth0"
  std::string pci;   // of the device, empty when it is none or unknown
  Port port;         // bandwidth, and whether it carries traffic: the standby of a bond doesn't
  std::optional<NicKind> link_layer;  // nothing for types that are neither
  bool no_carrier = false;            // it is set up, but nothing answers at the other end
  bool standby = false;               // of a bond that has another active member
  int mtu = 0;
};

/// A bond, and its members.
struct Bond {
  std::string name;
  std::string mode;  // "802.3ad", "active-backup"
  std::vector<std::string> members;
};

/// The state of an OpenFabrics port beyond what a Port holds.
struct PortState {
  int number = 1;
  std::string state;     // "ACTIVE", "INIT", "DOWN"
  std::string physical;  // "LinkUp", "Polling", "Disabled"
};

/// A view of /sys, or of a copy of it. What lies outside of the root, where links can lead, is not read:
/// those of a copy may have this machine's /sys for a target.
class Sysfs {
 public:
  explicit Sysfs(const std::filesystem::path& root = kLive);
  static constexpr const char* kLive = "/sys";
  const std::filesystem::path& root() const { return root_; }

  // Files and folders are named from the root, or by a path that entries() gave.

  /// The text of a file, the first line of one, and the entries of a folder in the order of their names;
  /// empty when it cannot be read.
  std::string text(const std::filesystem::path& name) const;
  std::string line(const std::filesystem::path& name) const;
  std::vector<std::filesystem::path> entries(const std::filesystem::path& name) const;
  /// The files that are there but may not be read, and what is outside, as far as they were asked for.
  const std::set<std::string>& refused() const { return refused_; }
  const std::set<std::string>& outside() const { return outside_; }

  /// All PCI functions, in the order of their addresses.
  std::vector<PciDevice> pci_devices() const;
  /// Where a device's files are. A copy can lack bus/pci, and then has them below devices/ only.
  std::filesystem::path pci_folder(const std::string& pci) const;
  /// The addresses of the PCI bridges above the device, from the root port down; empty when unknown.
  std::vector<std::string> bridges_above(const std::string& pci) const;

  PciIdentity pci_identity(const std::string& pci) const;
  PcieLink pcie_link(const std::string& pci) const;
  /// What the PCI device (bus address as in 0000:01:00.0) can do per direction: its highest generation on the
  /// lanes that are connected. 0 when unknown. The current generation is no measure: idle GPUs turn it down.
  Bandwidth pcie_bandwidth(const std::string& pci) const;

  /// Whether the PCI device is a slice (SR-IOV) of another one that is visible here.
  bool is_virtual_function(const std::string& pci) const;

  /// The GPUs' drivers that are loaded, with their versions: "NVIDIA 550.54.15". Empty when there is none, or
  /// it has no version of its own, such as the kernel's amdgpu.
  std::string gpu_driver() const;

  /// A GPU's memory as AMD's driver gives it; 0 when unknown.
  Bytes gpu_memory(const std::string& pci) const;

  // An adapter that switches shows its virtual functions as representors: as further ports of its OpenFabrics
  // device, or as devices of their own. They reach no other hosts by themselves, and all are left out.

  /// The names of the OpenFabrics devices, with the addresses of their PCI devices (empty when unknown).
  std::map<std::string, std::string> openfabrics_devices() const;
  /// The ports of an OpenFabrics device such as mlx5_0, in order.
  std::vector<Port> openfabrics_ports(const std::string& device) const;
  std::vector<PortState> openfabrics_states(const std::string& device) const;
  /// Whether any of its ports says that its link layer is InfiniBand, and not Ethernet (RoCE) or none that
  /// Linux has a name for (AWS's EFA, over Ethernet); nothing when no port says.
  std::optional<NicKind> openfabrics_kind(const std::string& device) const;
  /// The GUID that all functions of its adapter share, as guid_text() has it; empty when unknown.
  std::string openfabrics_system_guid(const std::string& device) const;

  /// Whether what the interface carries leaves by the port of another one of this machine: of Azure's eth0
  /// (hv_netvsc), which stands on (`lower_*`) a virtual function that is here too, and of the representor of
  /// a function in an adapter that switches (switchdev), `pf0vf1` or the like in phys_port_name.
  bool leaves_by_another(const std::string& interface) const;
  /// The state of a network interface such as eth0 as port `number`; nothing when there is no such interface.
  std::optional<Port> ethernet_port(const std::string& interface, int number) const;
  std::vector<Interface> interfaces() const;
  std::vector<Bond> bonds() const;

 private:
  /// The folders of an OpenFabrics device's own ports, by number.
  std::vector<std::filesystem::path> ports_of(const std::string& device) const;
  /// Of a copy in which links are files with their targets' names: where they lead.
  std::filesystem::path through_link_files(const std::filesystem::path& name) const;
  static constexpr int kMostLinks = 8;
  /// The path without links, empty where nothing is there, or it is outside.
  std::filesystem::path resolved(const std::filesystem::path& name) const;
  /// The PCI address of the device that an entry of class/ belongs to, empty when it is none or unknown.
  std::string pci_of(const std::filesystem::path& entry) const;

  bool live_;                   // it is this machine's
  std::filesystem::path root_;  // without links
  mutable std::set<std::string> refused_;
  mutable std::set<std::string> outside_;
  mutable std::optional<std::map<std::string, std::filesystem::path>> found_;  // below devices/, by address
};

/// `16.0 GT/s PCIe` on 16 lanes is 31.5 GB/s after line coding. 0 for text that is not a speed.
Bandwidth pcie_bandwidth(std::string_view speed, int lanes);

/// `100 Gb/sec (4X EDR)` is 12.1 GB/s of payload: see infiniband_payload(). Ethernet's rates (RoCE) are taken
/// as they are. Of an unknown link layer they are taken for InfiniBand's, which is less.
Bandwidth openfabrics_rate(std::string_view rate, NicKind link_layer);

}  // namespace polyring::probe

// Which PCI devices are GPUs and NICs, by the numbers of the PCI specification and of its vendors.
#pragma once

#include <optional>

#include "topology/machine.hpp"

namespace polyring::probe {

constexpr unsigned kNvidia = 0x10de;
constexpr unsigned kAmd = 0x1002;
constexpr unsigned kMellanox = 0x15b3;
constexpr unsigned kBroadcom = 0x1000;
constexpr unsigned kCisco = 0x1137;

constexpr unsigned kClassEthernet = 0x0200;
constexpr unsigned kClassInfiniband = 0x0207;
constexpr unsigned kClassInfinibandBus = 0x0c06;  // of the first adapters: a serial bus controller

/// What a network controller of this class runs over; nothing for others, such as 0x0280 (other than those
/// that have a class), which ConnectX-3 has, whether its ports run as InfiniBand or as Ethernet.
constexpr std::optional<NicKind> link_layer_of_class(unsigned class_id) {
  if (class_id == kClassEthernet) return NicKind::ethernet;
  if (class_id == kClassInfiniband || class_id == kClassInfinibandBus) return NicKind::infiniband;
  return std::nullopt;
}

/// Whether it is one of ATI's that servers of the 2000s have for their console, and that cannot compute. The
/// numbers and names are those of the list of PCI IDs.
constexpr bool is_console_vga(unsigned vendor, unsigned device) {
  if (vendor != kAmd) return false;
  switch (device) {
    case 0x474f:  // Rage XL
    case 0x4752:  // Rage XL PCI
    case 0x515e:  // ES1000
    case 0x5969:  // ES1000
      return true;
    default:
      return false;
  }
}

/// `class_id` is the base class and the subclass: 0x0302 for a 3D controller. GPUs are NVIDIA's and AMD's
/// display and 3D controllers, without the VGA of servers' consoles, which is mostly others', and AMD's
/// processing accelerators (MI200 and newer).
constexpr bool is_gpu(unsigned class_id, unsigned vendor, unsigned device) {
  if (is_console_vga(vendor, device)) return false;
  const unsigned base = class_id >> 8;
  return (base == 0x03 && (vendor == kNvidia || vendor == kAmd)) || (base == 0x12 && vendor == kAmd);
}

/// Whether it is a virtual function (SR-IOV) of one of NVIDIA's network adapters: in a virtual machine
/// nothing else tells. Those of mlx5_core_pci_table of the Linux kernel that it marks so
/// (drivers/net/ethernet/mellanox/mlx5/core/main.c).
constexpr bool is_adapters_virtual_function(unsigned vendor, unsigned device) {
  if (vendor != kMellanox) return false;
  switch (device) {
    case 0x1012:  // Connect-IB
    case 0x1014:  // ConnectX-4
    case 0x1016:  // ConnectX-4 Lx
    case 0x1018:  // ConnectX-5
    case 0x101a:  // ConnectX-5 Ex
    case 0x101c:  // ConnectX-6
    case 0x101e:  // ConnectX-6 Dx and newer
    case 0xa2d3:  // BlueField
      return true;
    default:
      return false;
  }
}

/// Whether it is a virtual function of Cisco's for processes of user space ("VIC Userspace NIC"), which its
/// driver serves beside the physical one only (drivers/infiniband/hw/usnic of the Linux kernel).
constexpr bool is_user_space_slice(unsigned vendor, unsigned device) {
  return vendor == kCisco && device == 0x00cf;
}

/// What a PCI function says that it is; 0 where it is unknown.
struct PciIdentity {
  unsigned vendor = 0;
  unsigned device = 0;
  unsigned subsystem_vendor = 0;
  unsigned subsystem_device = 0;
};

/// Of a Broadcom switch in base mode, whose upstream port or whose lower level's (1) this is; 0: of none.
constexpr int broadcom_generation(const PciIdentity& upstream, unsigned level) {
  if (upstream.vendor != kBroadcom || upstream.subsystem_vendor != kBroadcom) return 0;
  const unsigned kind = upstream.subsystem_device >> 12;
  if (upstream.device == 0xc010 && kind == 0xa) return 4;
  return upstream.device == 0xc030 && kind == level ? 5 : 0;
}

/// Whether the upstream ports of two switches, one right below the other, are levels of one of Broadcom's:
/// those of generation 4 and 5 show two in base mode, and carry full bandwidth between all of their ports all
/// the same. NCCL makes one switch of them (getBcmGen() and ncclTopoFlattenBcmSwitches() in
/// src/graph/topo.cc).
constexpr bool are_one_switch(const PciIdentity& upper, const PciIdentity& lower) {
  const int generation = broadcom_generation(upper, 0);
  return generation != 0 && generation == broadcom_generation(lower, 1);
}

constexpr bool is_network_controller(unsigned class_id) { return link_layer_of_class(class_id).has_value(); }

}  // namespace polyring::probe

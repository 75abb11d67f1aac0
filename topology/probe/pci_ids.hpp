// Which PCI devices are GPUs and NICs, by the numbers of the PCI specification and of its vendors.
#pragma once

#include <optional>

#include "topology/machine.hpp"

namespace polyring::probe {

constexpr unsigned kNvidia = 0x10de;
constexpr unsigned kAmd = 0x1002;
constexpr unsigned kMellanox = 0x15b3;

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

/// `class_id` is the base class and the subclass: 0x0302 for a 3D controller. GPUs are NVIDIA's and AMD's
/// display and 3D controllers, which leaves the management VGA of servers out, and AMD's processing
/// accelerators (MI200 and newer).
constexpr bool is_gpu(unsigned class_id, unsigned vendor) {
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

constexpr bool is_network_controller(unsigned class_id) { return link_layer_of_class(class_id).has_value(); }

}  // namespace polyring::probe

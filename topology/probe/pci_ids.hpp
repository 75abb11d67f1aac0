// Which PCI devices are GPUs and NICs, by the numbers of the PCI specification and of its vendors.
#pragma once

namespace polyring::probe {

constexpr unsigned kNvidia = 0x10de;
constexpr unsigned kAmd = 0x1002;

constexpr unsigned kClassEthernet = 0x0200;
constexpr unsigned kClassInfiniband = 0x0207;

/// `class_id` is the base class and the subclass: 0x0302 for a 3D controller. GPUs are NVIDIA's and AMD's
/// display and 3D controllers, which leaves the management VGA of servers out, and AMD's processing
/// accelerators (MI200 and newer).
constexpr bool is_gpu(unsigned class_id, unsigned vendor) {
  const unsigned base = class_id >> 8;
  return (base == 0x03 && (vendor == kNvidia || vendor == kAmd)) || (base == 0x12 && vendor == kAmd);
}

constexpr bool is_network_controller(unsigned class_id) {
  return class_id == kClassEthernet || class_id == kClassInfiniband;
}

}  // namespace polyring::probe

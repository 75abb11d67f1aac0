// What Linux's sysfs says about links and ports; hwloc 2.9 reports neither port rates nor the best PCIe
// speed.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "topology/machine.hpp"

namespace polyring::probe {

/// A view of /sys, or of a copy of it.
class Sysfs {
 public:
  explicit Sysfs(std::filesystem::path root = "/sys") : root_(std::move(root)) {}

  /// What the PCI device (bus address as in 0000:01:00.0) can do per direction: its highest generation on the
  /// lanes that are connected. 0 when unknown. The current generation is no measure: idle GPUs turn it down.
  Bandwidth pcie_bandwidth(const std::string& pci) const;

  /// Whether the PCI device is a slice (SR-IOV) of another one that is visible here.
  bool is_virtual_function(const std::string& pci) const;

  /// The ports of an OpenFabrics device such as mlx5_0, in order.
  std::vector<Port> openfabrics_ports(const std::string& device) const;
  /// Whether any of its ports says that its link layer is InfiniBand (and not RoCE's Ethernet); nothing when
  /// unknown.
  std::optional<NicKind> openfabrics_kind(const std::string& device) const;

  /// The state of a network interface such as eth0 as port `number`; nothing when there is no such interface.
  std::optional<Port> ethernet_port(const std::string& interface, int number) const;

 private:
  std::filesystem::path root_;
};

/// `16.0 GT/s PCIe` on 16 lanes is 31.5 GB/s after line coding. 0 for text that is not a speed.
Bandwidth pcie_bandwidth(std::string_view speed, int lanes);

/// `100 Gb/sec (4X EDR)` is 12.1 GB/s of payload: 8 of 10 bits up to QDR, 64 of 66 beyond. Ethernet's rates
/// (RoCE) are those of the payload already.
Bandwidth openfabrics_rate(std::string_view rate, NicKind link_layer);

}  // namespace polyring::probe

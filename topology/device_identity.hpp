// What a file without product names says about a PCI device, kept as the model of a GPU or NIC, and read
// back.
#pragma once

#include <string>
#include <string_view>

namespace polyring {

struct DeviceIdentity {
  unsigned vendor = 0;  // of PCI; 0 when unknown
  unsigned device = 0;
  int compute_capability = 0;  // 80 for 8.0; 0 when unknown, or AMD's
  std::string architecture;    // AMD's: "gfx942", or "908" as older files write it
};

/// `device 10de:20b5, sm 80`, as far as it is known; empty when nothing is.
std::string model_of(const DeviceIdentity& identity);

/// Reads what model_of() writes; from a product's name it gets the compute capability.
DeviceIdentity identity_of(std::string_view model);

}  // namespace polyring

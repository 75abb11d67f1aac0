// The part of comparing two hosts that is about links: compare.cpp's helper.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "topology/inventory/compare.hpp"

namespace polyring {

/// Which device of the usual host stands in the place of a device of the other.
using DeviceMap = std::map<DeviceId, DeviceId>;

/// Whether two sizes or speeds are equal within the tolerance; 0 is unknown, and only equal to itself.
bool nearly(double usual, double other, double tolerance);
/// Whether both are known, and the other is slower.
inline bool is_less(Bandwidth usual, Bandwidth other) { return other.known() && other < usual; }

/// Differences of NVLink, xGMI, C2C and the buses between packages, and of what PCIe each GPU and NIC hangs
/// on. Links of devices that are not in the map are left out.
void compare_links(const Machine& usual, const Machine& other, const DeviceMap& counterparts,
                   double tolerance, std::vector<Difference>& found);

}  // namespace polyring

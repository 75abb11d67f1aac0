// What a port of a NIC carries, by the names of its rate.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"

namespace polyring {

/// What InfiniBand's link of this rate carries for payloads. `line`: of up to QDR the rate is that of the
/// line, on which 8 of 10 bits are data (`old_coding`); FDR's 56 Gb/s too, with 64 of 66. From EDR on the
/// rate is of the data: 4 lanes of 25.78125 Gb/s with 64 of 66 bits are the 100 Gb/s (InfiniBand Trade
/// Association, rate table). 64/66 are taken of these once more, 3 % for headers, flow control and
/// gaps: 12.1, 24.2 and 48.5 GB/s are the figures that EDR, HDR and NDR are published with, and with which
/// ours are compared.
Bandwidth infiniband_payload(Bandwidth line, bool old_coding);

/// A generation of InfiniBand, four lanes of it.
struct InfinibandRate {
  std::string_view name;  // "ndr"
  int gigabits;           // as people write it: 400
  Bandwidth payload() const;
};

/// qdr to xdr, the slower first.
const std::vector<InfinibandRate>& infiniband_rates();
/// By name, in lower case; or by its gigabits a second. Nothing for others.
std::optional<InfinibandRate> infiniband_rate(std::string_view name);
std::optional<InfinibandRate> infiniband_rate(int gigabits);

/// Of `100gbe`, in lower case.
std::optional<Bandwidth> ethernet_rate(std::string_view name);

/// No port carries more: above it, units were probably confused.
constexpr Bandwidth kMostOfPort = gigabytes_per_second(399);

}  // namespace polyring

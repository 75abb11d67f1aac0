// Which links of a machine are one and the same: the functions of a PCIe device have one link between them.
#pragma once

#include <string>
#include <vector>

#include "topology/machine.hpp"

namespace polyring {

/// For each link of the machine the first one that is physically the same; mostly the link itself. A Machine
/// has a link for each NIC, but NICs that are functions of one device, as the two ports of a ConnectX at
/// 0000:4d:00.0 and 0000:4d:00.1, share that of the device. NCCL merges them too, "because those should use
/// the same PCI link" (pciPathToInt64() in src/graph/topo.cc). They are told by their bus addresses; NICs
/// without one share nothing.
std::vector<int> physical_links(const Machine& machine);

/// Indices of the NICs that this link is physically of: several where functions of one device share it,
/// none where it is not from a NIC.
std::vector<int> nics_of(const Machine& machine, const Link& link);

/// The names of those other than the one that the link is from.
std::vector<std::string> shared_with(const Machine& machine, const Link& link);

}  // namespace polyring

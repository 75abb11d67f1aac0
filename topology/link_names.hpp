// What people call links and network ports: "2 NVLinks of 20.0 GB/s", "X-bus package0 - package1", "2 x EDR
// InfiniBand".
#pragma once

#include <span>
#include <string>

#include "topology/machine.hpp"

namespace polyring {

/// "NVLink", "xGMI", "NVLink-C2C", "PCIe", "memory"; between packages by the processor: "X-bus" of POWER,
/// "Infinity Fabric" of AMD, "UPI or QPI" of Intel, otherwise "socket bus".
std::string kind_name(const Machine& machine, const Link& link);

/// The name of the device that the link is from, and of those that share it: "mlx5_0 + mlx5_1", see
/// shared_links.hpp.
std::string first_end(const Machine& machine, const Link& link);

/// The kind and both ends: "X-bus package0 - package1", "PCIe mlx5_0 + mlx5_1 - switch0".
std::string link_name(const Machine& machine, const Link& link);

/// One NVLink of this GPU, per direction, by its model (gpu_links.hpp); 0 where that is unknown.
Bandwidth one_nvlink(const Gpu& gpu);

/// How many NVLinks a link bonds, as its source says, or else by its bandwidth. 0 where it is unknown what
/// one carries, or the bandwidth is no multiple of it.
int nvlinks_in(const Machine& machine, const Link& link);

/// "50.0 GB/s", "2 x ?" where only their number is known, and "?".
std::string speed_or_count(const Link& link);

/// As to_text(), but "unknown speed" for what is unknown.
std::string speed_text(Bandwidth bandwidth);

/// What these links (indices into Machine::links) and NICs are together, those of one kind and speed counted,
/// what carries most first: "4 x NVLink of 20.0 GB/s and 2 x EDR InfiniBand". A link that is the only one of
/// its kind shows its ends where `ends` is set.
std::string names_of(const Machine& machine, std::span<const int> links, std::span<const int> nics,
                     bool ends);

}  // namespace polyring

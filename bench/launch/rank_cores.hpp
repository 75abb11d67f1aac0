// The cores of a host that its ranks are bound to.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "topology/inventory/allowed_cores.hpp"
#include "topology/machine.hpp"

namespace polyring {

/// How many ranks the allowed cores can carry, one each: with a limit of time as many as have a core's time,
/// but at least one. All of the machine's, where nothing is known to be forbidden.
int usable_cores(const Machine& machine, const std::optional<AllowedCores>& allowed);

struct RankCores {
  /// Of each rank, as hwloc numbers those of the cpuset, in ascending order; and so does a launcher. Empty
  /// where ranks are not bound.
  std::vector<std::vector<int>> of_rank;
  std::vector<int> far_gpus;  // whose ranks have cores of another NUMA node or package
};

/// Cores for the first `ranks` GPUs of a host, of those that are allowed: each GPU's NUMA node is shared out
/// to the ranks on it, or its package where the NUMA nodes are unknown or cannot have equally many cores.
/// Where none is left there, a rank gets some of the next nearest. On a host without GPUs the ranks fill the
/// packages evenly. Ranks are not bound where some would have no core of their own.
RankCores cores_of_ranks(const Machine& machine, const std::optional<AllowedCores>& allowed, int ranks);

/// "4 of 64 cores are allowed (cpuset)", and for how much time, where that is limited.
std::string allowed_text(const Machine& machine, const AllowedCores& allowed);

/// "0-3,8"
std::string core_list(const std::vector<int>& cores);

}  // namespace polyring

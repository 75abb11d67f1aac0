// Which cores of its host a process may use: a container, a job's cpuset, its affinity or the quota of a
// control group can leave it only some.
#pragma once

#include <optional>
#include <vector>

namespace polyring {

/// Cores are numbered as hwloc numbers those of the whole host (logical indices), package after package.
struct AllowedCores {
  /// Of the control group's cpuset. hwloc hides all others from most programs, and numbers these from 0 on.
  std::vector<int> cpuset;
  std::vector<int> affinity;          // of the cpuset, those that the process may run on; at least one
  std::optional<double> cpu_limit{};  // how many cores' time the control groups allow; nothing: no limit
  bool operator==(const AllowedCores&) const = default;
};

}  // namespace polyring

// What holds the clocks of a host's CPUs down.
#pragma once

#include <cstdint>
#include <filesystem>

namespace polyring {

struct CpuLimits {
  int cpus = 0;                 // whose limits can be read
  int limited = 0;              // of these, set to less than they can do
  double least_MHz = 0;         // that any of these is set to, 0: none
  double could_MHz = 0;         // that it can do
  std::uint64_t throttled = 0;  // how often heat has slowed cores and packages down since the start
  bool operator==(const CpuLimits&) const = default;
};

/// `root` is where /sys is.
CpuLimits read_cpu_limits(const std::filesystem::path& root);

}  // namespace polyring

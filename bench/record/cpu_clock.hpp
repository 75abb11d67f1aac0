// The clock of a CPU at this moment.
#pragma once

#include <filesystem>
#include <optional>

namespace polyring {

/// In MHz, as its frequency driver says; where it has none, as on most virtual machines, as /proc/cpuinfo
/// says. Nothing where neither tells it. `root` is where /sys and /proc are.
std::optional<double> clock_MHz(const std::filesystem::path& root, int cpu);

}  // namespace polyring

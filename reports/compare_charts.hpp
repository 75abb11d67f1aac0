// Charts of a comparison: bus bandwidth and latency over size, all runs over one another.
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "reports/compare.hpp"

namespace polyring {

struct ComparedCharts {
  std::filesystem::path folder;
  std::string warning;  // why nothing was drawn; empty when it was
};

/// Draws the charts of each collective that two runs have into a new folder; .1, .2, … is appended to a name
/// that is taken. Throws a usage Error where so many runs cannot be told apart, and one as create_folder()
/// does. Without matplotlib there is no folder, and a warning.
ComparedCharts draw_comparison(std::span<const ComparedRun> runs, const Comparison& comparison,
                               const std::filesystem::path& folder);

}  // namespace polyring

// Runs the Python scripts beside this file, which draw with matplotlib.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace polyring {

struct Drawing {
  /// As the script's, or not_available where there is no Python with matplotlib.
  ExitCode code = ExitCode::ok;
  std::string output;   // what the script printed
  std::string failure;  // why nothing was drawn, in a sentence without a full stop; empty when something was
};

/// Runs `script`, such as "plot.py", with the Python that CMake found, or the one that the environment
/// variable POLYRING_PYTHON names.
Drawing run_drawing(std::string_view script, std::span<const std::string> arguments);

}  // namespace polyring

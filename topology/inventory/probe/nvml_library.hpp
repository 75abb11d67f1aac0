// NVIDIA's management library, loaded when it is there. Only nvml_library.cpp knows its structures and
// functions; they are declared there, since nvml.h need not be installed.
#pragma once

#include <string>

#include "topology/inventory/probe/nvml_report.hpp"

namespace polyring::probe {

/// Loads the library, asks it everything, and fills the report call by call. The library may crash or hang in
/// any of them: call this in a child process. Needs no rights, changes nothing.
void fill_nvml_report(const std::string& library, NvmlReport& report);

}  // namespace polyring::probe

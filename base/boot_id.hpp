// Tells machines apart, whatever their names are.
#pragma once

#include <string>

namespace polyring {

/// The kernel's random id, new at each boot: the same in all containers and network namespaces of a machine.
/// Returns `otherwise` if the kernel has none.
std::string boot_id(const std::string& otherwise);

}  // namespace polyring

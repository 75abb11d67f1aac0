// Tells machines apart whatever their names are.
#pragma once

#include <string>

namespace polyring {

/// The same for all processes under one kernel, in all of its containers and network namespaces, and other
/// after each start. `otherwise` where the system does not tell.
std::string boot_id(const std::string& otherwise);

}  // namespace polyring

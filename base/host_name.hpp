// The name of this host.
#pragma once

#include <string>

namespace polyring {

/// As gethostname() has it; "localhost" where there is none.
std::string own_host_name();

}  // namespace polyring

// The root of a communicator of the fake NCCL: a thread of the process that made the unique id. All ranks
// send it their operations, and it answers with the results, or with what is wrong.
#pragma once

#include <string>

namespace polyring::software_nccl {

/// Starts a root, and returns the path where it listens. Throws std::system_error.
std::string start_root();

}  // namespace polyring::software_nccl

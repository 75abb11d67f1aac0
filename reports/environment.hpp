// The environment, as far as it may be written into a result file.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace polyring {

/// Whether a variable is on the allow-list: those that steer MPI, NCCL, UCX, OpenMP and GPU visibility. A
/// list of what is allowed, so that no secret ever gets into a file that people pass around.
bool is_recorded(std::string_view name);

/// The allowed variables of this process and their values.
std::map<std::string, std::string> recorded_environment();

}  // namespace polyring

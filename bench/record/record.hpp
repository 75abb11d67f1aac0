// What every result file says about how it came about.
#pragma once

#include <string>
#include <vector>

#include "collectives/runtime/world.hpp"
#include "reports/result.hpp"
#include "topology/cluster.hpp"

namespace polyring {

/// Which rank is on which host.
std::vector<RankHost> placement_of(const World& world);

/// A result without rows: time, command line, versions, the allowed environment, the machine. `cluster` is
/// null for a result of several machines, `world` for a subcommand that is one process.
ResultFile describe_run(const std::string& command, const Cluster* cluster, const World* world);

/// Writes the result and says where; nothing when `path` is empty. With --format json also to standard
/// output.
void save(const std::string& path, const ResultFile& result);

/// The command line as one would type it again.
std::string command_line(int argc, const char* const* argv);

}  // namespace polyring

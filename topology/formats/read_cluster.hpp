// Reads a cluster from any file that describes one.
#pragma once

#include <filesystem>

#include "topology/cluster.hpp"

namespace polyring {

/// Reads hwloc's XML (one host, its fabric unknown) or the JSON of probe_json(); tells them by their content.
/// Throws a usage Error for anything else, and as those formats do.
Cluster read_cluster(const std::filesystem::path& path);

}  // namespace polyring

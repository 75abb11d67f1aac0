// Reads a cluster from any file that describes one.
#pragma once

#include <filesystem>
#include <string_view>

#include "topology/cluster.hpp"

namespace polyring {

/// Reads hwloc's XML, the topology XML of NCCL and RCCL, what `nvidia-smi topo -m` prints (one host each, its
/// fabric unknown), or the JSON of probe_json(); tells them by their content. Throws a usage Error for
/// anything else, and as those formats do.
Cluster read_cluster(const std::filesystem::path& path);

/// As read_cluster(), of text that is already in memory. `origin` names it in errors.
Cluster parse_cluster(std::string_view text, std::string_view origin);

}  // namespace polyring

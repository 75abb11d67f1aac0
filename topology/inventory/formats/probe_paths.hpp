// Path types of a cluster's hosts, with the reason of each: a table for people, and JSON.
#pragma once

#include <string>

#include "topology/cluster.hpp"

namespace polyring {

/// For each kind of host a table of its GPUs in pairs, and one of GPUs with NICs; a legend comes last.
std::string probe_paths(const Cluster& cluster);

/// The same as a JSON array, one object for each kind of host.
std::string probe_paths_json(const Cluster& cluster);

}  // namespace polyring

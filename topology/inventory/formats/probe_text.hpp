// A cluster as a tree that a person can read.
#pragma once

#include <string>

#include "topology/cluster.hpp"

namespace polyring {

/// For each kind of host its packages, and below them the switches, GPUs and NICs with the links that lead
/// there; then the other links, the fabric, and the sources. Bandwidths are per direction; what is unknown is
/// a `?`.
std::string probe_text(const Cluster& cluster);
/// The same of some hosts of a larger cluster, whose name and size the first line has.
std::string probe_text(const Cluster& cluster, const Cluster& whole);

}  // namespace polyring

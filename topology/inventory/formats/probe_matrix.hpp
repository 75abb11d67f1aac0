// The paths between the GPUs and NICs of a host as a matrix, in the manner of `nvidia-smi topo -m`.
#pragma once

#include <string>

#include "topology/cluster.hpp"

namespace polyring {

/// One matrix for each kind of host, and a legend. An NVLink cell holds GB/s per direction (`NV40`), not a
/// number of links.
std::string probe_matrix(const Cluster& cluster);

}  // namespace polyring

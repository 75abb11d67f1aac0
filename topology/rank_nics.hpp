// By which of its host's NICs each rank reaches other hosts.
#pragma once

#include <vector>

#include "topology/machine.hpp"

namespace polyring {

/// The NICs that join hosts: those of InfiniBand that are up. Without any, those of Ethernet that are up and
/// have half of the bandwidth of the fastest or more: others are for management. One of unknown bandwidth
/// counts only where that of none is known.
std::vector<int> usable_nics(const Machine& machine);

/// For each rank of the host the usable NIC that is nearest to it: by the path's type, then the widest, then
/// by hops, and in turns where several are equal in all. Empty when no NIC is up. Throws as path_between()
/// does.
std::vector<int> rank_nics(const Machine& machine);

}  // namespace polyring

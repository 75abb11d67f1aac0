// By which of its host's NICs each rank reaches other hosts.
#pragma once

#include <vector>

#include "topology/machine.hpp"

namespace polyring {

/// The NICs that join hosts: those of InfiniBand that are up. Without any, those of Ethernet that are up and
/// have half of the bandwidth of the fastest or more: others are for management. One of unknown bandwidth
/// counts only where that of none is known. Where no port of any NIC is known, as in a matrix of
/// nvidia-smi's, all may be up; where none of InfiniBand's, as in a copy of /sys without class/infiniband,
/// all of InfiniBand.
std::vector<int> usable_nics(const Machine& machine);

/// For each rank of the host the usable NICs that are nearest to it: by the path's type, then the widest
/// (one of unknown speed after all others: NCCL takes it for 10 Gb/s, src/graph/topo.cc), then by hops. Ranks
/// that have the same choice of equals take them in turns; where there are fewer ranks than NICs, a rank has
/// several, over all of which its messages are striped, as AWS's plugin does with the four of each GPU of a
/// p5 (aws-ofi-nccl, doc/topology.md). Empty when no NIC is up. Throws as path_between() does.
std::vector<std::vector<int>> rank_nics(const Machine& machine);

}  // namespace polyring

// By which of its host's NICs each rank reaches other hosts.
#pragma once

#include <vector>

#include "topology/machine.hpp"

namespace polyring {

/// The NICs that join hosts: those of InfiniBand that are up, or without any, all that are up.
std::vector<int> usable_nics(const Machine& machine);

/// For each rank of the host the usable NIC that is nearest to it: by hops, then the widest, and in turns
/// where several are equal in both. Empty when no NIC is up. Throws as path_between() does.
std::vector<int> rank_nics(const Machine& machine);

}  // namespace polyring

// A fabric in a few lines: levels, links, hosts per leaf, oversubscription, and what is odd.
#pragma once

#include <string>

#include "topology/inventory/fabric_map.hpp"

namespace polyring {

/// Counts of switches by level and of adapters by kind; links by what they join and their rate; hosts and
/// uplinks of leaves, equal ones together, with their oversubscription (all links down to hosts over all
/// links up, 1 when they are equal); then what somebody should look at: remarks of the map, links slower than
/// their like, adapters that hang on the leaf of another rail. All in bandwidth per direction.
std::string fabric_text(const FabricMap& map);

}  // namespace polyring

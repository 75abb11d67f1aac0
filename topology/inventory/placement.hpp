// Places the hosts of an inventory on the leaf switches of a fabric, so that plans know near hosts from far
// ones.
#pragma once

#include <string>
#include <vector>

#include "topology/inventory/fabric_map.hpp"
#include "topology/inventory/inventory.hpp"

namespace polyring {

/// The inventory with its hosts in the order of their leaves, and the fabric that this makes. A host is found
/// by the GUIDs of its ports, else by its name. Rates of InfiniBand ports that the probe did not know are
/// those of their cables, found by the ports' GUIDs, or by the names of host and adapter; an adapter without
/// ports gets those that have a cable. Leaves that most of their hosts share ("rails") count as one.
/// Latencies stay unknown (0).
///
/// Fabric says one number of hosts for all leaves: where they are uneven it gets their mean, rounded up, and
/// the least of their uplinks. Notes say so, and name the hosts of each leaf, and those that are not in the
/// fabric: these come last. Throws a usage Error when no host is in it, and for hosts of which only the
/// number is known.
Inventory placed(const Inventory& inventory, const FabricMap& map);

/// A leaf switch, or leaves that most of their hosts share.
struct PlacedLeaf {
  std::string name;  // "leaf07", "leaf[07-10]"
  std::vector<std::string> hosts;
};

/// The leaves that hosts hang on, in the order in which placed() has them. Hosts that are not in the fabric
/// are under none. Throws as placed() does.
std::vector<PlacedLeaf> leaves_of_hosts(const Inventory& inventory, const FabricMap& map);

}  // namespace polyring

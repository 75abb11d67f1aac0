// A fabric as a graph for Graphviz.
#pragma once

#include <string>

#include "topology/inventory/fabric_map.hpp"

namespace polyring {

/// Switches in rows by their level, leaves below, each with the number of adapters of hosts on it; the cables
/// between two switches are one edge, the wider the more they carry together.
std::string fabric_dot(const FabricMap& map);

}  // namespace polyring

// What is odd about a fabric, for people and for tools.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "topology/inventory/fabric_map.hpp"

namespace polyring {

/// What a link joins: the levels of its switches, 0 for an adapter; and of which kind that is.
struct FabricLinkClass {
  int upper = 0;
  int lower = 0;
  AdapterKind kind = AdapterKind::host;
  bool is_between_switches = false;
  auto operator<=>(const FabricLinkClass&) const = default;
};

/// The links of the map by their class.
std::map<FabricLinkClass, std::vector<const FabricLink*>> link_classes_of(const FabricMap& map);

/// What somebody should look at, in whole sentences: the map's remarks, links slower than their like, and
/// adapters that hang on the leaf of another rail.
std::vector<std::string> findings_of(const FabricMap& map);

}  // namespace polyring

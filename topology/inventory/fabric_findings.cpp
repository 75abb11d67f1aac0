#include "topology/inventory/fabric_findings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/index.hpp"

namespace polyring {
namespace {

FabricLinkClass class_of(const FabricMap& map, const FabricLink& link) {
  FabricLinkClass result;
  std::vector<int> levels;
  for (const FabricEnd end : {link.a, link.b}) {
    if (end.is_switch) {
      levels.push_back(map.switches[index(end.index)].level);
    } else {
      levels.push_back(0);
      result.kind = map.adapters[index(end.index)].kind;
    }
  }
  result.is_between_switches = link.a.is_switch && link.b.is_switch;
  result.upper = std::max(levels[0], levels[1]);
  result.lower = std::min(levels[0], levels[1]);
  // All switches have an adapter for reductions: the level does not matter.
  if (result.kind == AdapterKind::aggregation) result.upper = 0;
  return result;
}

/// Links that run slower than most of their class.
std::vector<std::string> slow_links(const FabricMap& map) {
  std::vector<std::string> found;
  for (const auto& [of, links] : link_classes_of(map)) {
    std::map<Bandwidth, int> rates;
    for (const FabricLink* link : links) ++rates[link->bandwidth];
    const auto usual = std::ranges::max_element(rates, {}, [](const auto& rate) { return rate.second; });
    for (const FabricLink* link : links) {
      if (!link->bandwidth.known() || link->bandwidth >= usual->first) continue;
      found.push_back(fmt::format("the link from {} port {} to {} port {} runs at {} ({}), its like at {}",
                                  map.name(link->a), link->a.port, map.name(link->b), link->b.port,
                                  link->rate, to_text(link->bandwidth), to_text(usual->first)));
    }
  }
  return found;
}

/// Where rails have leaves of their own, each leaf has one device of its hosts: the others are crossed.
std::vector<std::string> crossed_cables(const FabricMap& map, const std::vector<Leaf>& leaves) {
  std::vector<std::string> found;
  std::vector<std::string> usual(leaves.size());  // device of more than half of the leaf's named adapters
  std::set<std::string> rails;
  const auto device = [&](int adapter) -> const std::string& { return map.adapters[index(adapter)].device; };
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    std::map<std::string, int> devices;
    int named = 0;
    for (const int adapter : leaves[i].adapters) {
      if (device(adapter).empty()) continue;
      ++named;
      ++devices[device(adapter)];
    }
    for (const auto& [name, count] : devices) {
      if (2 * count > named) usual[i] = name;
    }
    if (!usual[i].empty()) rails.insert(usual[i]);
  }
  for (std::size_t i = 0; i < leaves.size() && rails.size() > 1; ++i) {
    if (usual[i].empty()) continue;
    for (const int adapter : leaves[i].adapters) {
      // A device that is usual nowhere tells nothing; nor does another way of naming devices.
      if (device(adapter) == usual[i] || !rails.contains(device(adapter))) continue;
      if (device(adapter).substr(0, 3) != usual[i].substr(0, 3)) continue;
      found.push_back(fmt::format("{}'s {} hangs on {}, where others have {}",
                                  map.adapters[index(adapter)].host, device(adapter),
                                  map.switches[index(leaves[i].switch_index)].name, usual[i]));
    }
  }
  return found;
}

}  // namespace

std::map<FabricLinkClass, std::vector<const FabricLink*>> link_classes_of(const FabricMap& map) {
  std::map<FabricLinkClass, std::vector<const FabricLink*>> classes;
  for (const FabricLink& link : map.links) classes[class_of(map, link)].push_back(&link);
  return classes;
}

std::vector<std::string> findings_of(const FabricMap& map) {
  std::vector<std::string> found = map.remarks;
  for (auto&& more : {slow_links(map), crossed_cables(map, leaves_of(map))})
    found.insert(found.end(), more.begin(), more.end());
  return found;
}

}  // namespace polyring

#include "topology/inventory/formats/fabric_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "base/index.hpp"
#include "topology/host_names.hpp"
#include "topology/inventory/fabric_findings.hpp"

namespace polyring {
namespace {

std::string counted(std::ptrdiff_t number, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", number, number == 1 ? one : many);
}

std::string level_name(int level) {
  return level == 0 ? "no level" : level == 1 ? "level 1, leaves" : fmt::format("level {}", level);
}

std::string text_of(const FabricLinkClass& of) {
  if (of.kind == AdapterKind::aggregation) return "switch to its aggregation node";
  if (of.lower > 0) return fmt::format("level {} to level {}", of.lower, of.upper);
  if (of.is_between_switches) {
    return of.upper == 0 ? "between switches without a level"
                         : fmt::format("switch without a level to level {}", of.upper);
  }
  return fmt::format("{} to level {}", of.kind == AdapterKind::router ? "router" : "host", of.upper);
}

std::string links_text(const FabricMap& map) {
  std::string out = "  links\n";
  for (const auto& [of, links] : link_classes_of(map)) {
    std::map<std::pair<Bandwidth, std::string>, int> rates;
    for (const FabricLink* link : links) ++rates[{link->bandwidth, link->rate}];
    std::string text;
    for (auto rate = rates.rbegin(); rate != rates.rend(); ++rate) {
      text += fmt::format("{}{} {} ({})", text.empty() ? "" : ", ", rate->second,
                          rate->first.second.empty() ? "?" : rate->first.second, to_text(rate->first.first));
    }
    out += fmt::format("    {}: {}\n", text_of(of), text);
  }
  return out;
}

std::string head(const FabricMap& map) {
  const auto of_kind = [&](AdapterKind kind) {
    return std::ranges::count(map.adapters, kind, &FabricAdapter::kind);
  };
  std::string out =
      fmt::format("fabric {}: {}, {}\n", map.source, counted(std::ssize(map.switches), "switch", "switches"),
                  counted(std::ssize(map.adapters), "channel adapter", "channel adapters"));
  std::map<int, std::vector<std::string>> levels;
  for (const FabricSwitch& at : map.switches) levels[at.level].push_back(at.name);
  for (auto& [level, names] : levels) {
    std::ranges::sort(names);
    out += fmt::format("  {}: {}: {}\n", level_name(level), counted(std::ssize(names), "switch", "switches"),
                       names_text(names));
  }
  std::set<std::string> hosts;
  std::ptrdiff_t nameless = 0;
  for (const FabricAdapter& adapter : map.adapters) {
    if (adapter.kind != AdapterKind::host) continue;
    if (adapter.host.empty()) {
      ++nameless;
    } else {
      hosts.insert(adapter.host);
    }
  }
  std::vector<std::string> adapters;
  if (!hosts.empty())
    adapters.push_back(fmt::format("{} on {}", of_kind(AdapterKind::host) - nameless,
                                   counted(std::ssize(hosts), "named host", "named hosts")));
  if (nameless > 0) adapters.push_back(fmt::format("{} that do not name their host", nameless));
  if (const auto nodes = of_kind(AdapterKind::aggregation); nodes > 0)
    adapters.push_back(fmt::format("{} of switches (aggregation nodes)", nodes));
  if (const auto routers = of_kind(AdapterKind::router); routers > 0)
    adapters.push_back(counted(routers, "router", "routers"));
  return out + fmt::format("  adapters: {}\n",
                           adapters.empty() ? "none" : fmt::format("{}", fmt::join(adapters, ", ")));
}

/// Leaves with equally many adapters and uplinks of the same bandwidth together.
std::string leaves_text(const FabricMap& map, const std::vector<Leaf>& leaves) {
  using Shape = std::tuple<std::size_t, int, double, double>;
  std::map<Shape, std::vector<std::string>, std::greater<>> shapes;
  for (const Leaf& leaf : leaves) {
    const Shape shape{leaf.adapters.size(), leaf.uplinks, leaf.down.value, leaf.up.value};
    shapes[shape].push_back(map.switches[index(leaf.switch_index)].name);
  }
  std::string out = "  leaves: adapters down, links up, oversubscription (down / up)\n";
  for (auto& [shape, names] : shapes) {
    const auto& [adapters, uplinks, down, up] = shape;
    std::ranges::sort(names);
    const std::string ratio = uplinks == 0           ? "no uplink"
                              : down == 0 || up == 0 ? "?"
                                                     : fmt::format("{:.2f}", down / up);
    out += fmt::format("    {:>3} {:>3}  {:>9}  {}: {}\n", adapters, uplinks, ratio,
                       counted(std::ssize(names), "leaf", "leaves"), names_text(names));
  }
  return out;
}

std::string neighbourhoods_text(const FabricMap& map, const std::vector<Leaf>& leaves,
                                const std::vector<Neighbourhood>& neighbourhoods) {
  std::string out = "  near hosts: those that share their leaves\n";
  for (const Neighbourhood& near : neighbourhoods) {
    std::vector<std::string> names;
    for (const int leaf : near.leaves)
      names.push_back(map.switches[index(leaves[index(leaf)].switch_index)].name);
    std::ranges::sort(names);
    out += fmt::format("    {} on {}", counted(std::ssize(near.hosts), "named host", "named hosts"),
                       names_text(names));
    if (near.up.known()) out += fmt::format(", {} up", to_text(near.up));
    out += "\n";
  }
  return out;
}

/// What is above the leaves: pods with as many leaves, adapters and uplinks of the same bandwidth together.
std::string pods_text(const std::vector<Leaf>& leaves, const std::vector<std::vector<Pod>>& levels) {
  using Shape = std::tuple<std::size_t, std::size_t, int, double, double>;
  std::string out;
  for (std::size_t level = 0; level < levels.size(); ++level) {
    std::map<Shape, int, std::greater<>> shapes;
    for (const Pod& pod : levels[level]) {
      std::size_t adapters = 0;
      for (const int leaf : pod.leaves) adapters += leaves[index(leaf)].adapters.size();
      ++shapes[{pod.leaves.size(), adapters, pod.uplinks, pod.down.value, pod.up.value}];
    }
    for (const auto& [shape, number] : shapes) {
      const auto& [of_leaves, adapters, uplinks, down, up] = shape;
      const std::string ratio = uplinks == 0           ? "no uplink"
                                : down == 0 || up == 0 ? "?"
                                                       : fmt::format("{:.2f}", down / up);
      out += fmt::format("    {:>3} {:>5} {:>4}  {:>9}  {} of level {}\n", of_leaves, adapters, uplinks,
                         ratio, counted(number, "pod", "pods"), level + 2);
    }
  }
  if (out.empty()) return out;
  return "  pods, which switches below the top join: leaves, adapters, links up, oversubscription\n" + out;
}

}  // namespace

std::string fabric_text(const FabricMap& map) {
  const std::vector<Leaf> leaves = leaves_of(map);
  std::string out = head(map) + links_text(map);
  if (!leaves.empty()) {
    out += leaves_text(map, leaves);
    out += pods_text(leaves, pods_of(map, leaves));
    out += neighbourhoods_text(map, leaves, neighbourhoods_of(map, leaves));
  }
  const std::vector<std::string> odd = findings_of(map);
  constexpr std::size_t kMostShown = 40;
  if (!odd.empty()) out += "  look at\n";
  for (std::size_t i = 0; i < std::min(odd.size(), kMostShown); ++i) out += fmt::format("    {}\n", odd[i]);
  if (odd.size() > kMostShown) out += fmt::format("    and {} more\n", odd.size() - kMostShown);
  return out;
}

}  // namespace polyring

#include "topology/inventory/fabric_map.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/error.hpp"
#include "base/index.hpp"

namespace polyring {
namespace {

/// Cables from each switch to other switches and to hosts' adapters.
struct Around {
  std::vector<int> switches;  // one entry for each cable
  int adapters = 0;
};

std::vector<Around> surroundings(const FabricMap& map) {
  std::vector<Around> around(map.switches.size());
  const auto see = [&](FabricEnd from, FabricEnd to) {
    if (!from.is_switch) return;
    Around& own = around[index(from.index)];
    if (to.is_switch) {
      own.switches.push_back(to.index);
    } else if (map.adapters[index(to.index)].kind == AdapterKind::host) {
      ++own.adapters;
    }
  };
  for (const FabricLink& link : map.links) {
    see(link.a, link.b);
    see(link.b, link.a);
  }
  return around;
}

/// Which switches are leaves: those with adapters of hosts. Switches above them are none, though a few hosts,
/// such as a subnet manager's, may be joined to them directly. The one with the fewest adapters for its
/// cables to leaves is taken out first; then others no longer look like it.
std::vector<bool> find_leaves(const std::vector<Around>& around) {
  constexpr int kCablesForEachAdapter = 4;
  std::vector<bool> is_leaf(around.size());
  for (std::size_t i = 0; i < around.size(); ++i) is_leaf[i] = around[i].adapters > 0;
  while (true) {
    std::optional<std::size_t> least;
    double most_cables = kCablesForEachAdapter;
    for (std::size_t i = 0; i < around.size(); ++i) {
      if (!is_leaf[i]) continue;
      const auto cables =
          std::ranges::count_if(around[i].switches, [&](int other) { return is_leaf[index(other)]; });
      const double for_each = static_cast<double>(cables) / around[i].adapters;
      if (for_each <= most_cables) continue;
      most_cables = for_each;
      least = i;
    }
    if (!least) return is_leaf;
    is_leaf[*least] = false;
  }
}

/// The number of steps down to a leaf, and one; 0 where no way leads to one.
std::vector<int> levels_above(const std::vector<bool>& is_leaf, const std::vector<Around>& around) {
  std::vector<int> levels(is_leaf.size());
  std::vector<int> at_level;
  for (int i = 0; i < static_cast<int>(is_leaf.size()); ++i) {
    if (is_leaf[index(i)]) at_level.push_back(i);
  }
  for (int level = 1; !at_level.empty(); ++level) {
    std::vector<int> next;
    for (const int at : at_level) levels[index(at)] = level;
    for (const int at : at_level) {
      for (const int other : around[index(at)].switches) {
        if (levels[index(other)] == 0) next.push_back(other);
      }
    }
    std::ranges::sort(next);
    next.erase(std::unique(next.begin(), next.end()), next.end());
    at_level = std::move(next);
  }
  return levels;
}

void remark_on_shape(FabricMap& map, const std::vector<Around>& around, const std::vector<bool>& is_leaf) {
  int within_levels = 0;
  const FabricLink* example = nullptr;
  for (const FabricLink& link : map.links) {
    if (!link.a.is_switch || !link.b.is_switch) continue;
    if (map.switches[index(link.a.index)].level != map.switches[index(link.b.index)].level) continue;
    if (within_levels++ == 0) example = &link;
  }
  if (example != nullptr) {
    map.remarks.push_back(fmt::format(
        "this is not a fat tree: {} link{} two switches of one level, such as {} and {}; only levels and "
        "leaves "
        "are used",
        within_levels, within_levels == 1 ? " joins" : "s join", map.name(example->a), map.name(example->b)));
  }
  const auto unreachable = std::ranges::count(map.switches, 0, &FabricSwitch::level);
  if (unreachable > 0 && unreachable < std::ssize(map.switches)) {
    map.remarks.push_back(
        fmt::format("{} switch{} no way to a host", unreachable, unreachable == 1 ? " has" : "es have"));
  }
  for (std::size_t i = 0; i < around.size(); ++i) {
    if (around[i].adapters == 0 || is_leaf[i]) continue;
    map.remarks.push_back(fmt::format("{} is of level {}, and yet {} adapter{} on it", map.switches[i].name,
                                      map.switches[i].level, around[i].adapters,
                                      around[i].adapters == 1 ? " hangs" : "s hang"));
  }
}

/// Adds a link to a sum of which one unknown part makes all unknown.
void add(std::optional<double>& sum, Bandwidth bandwidth) {
  if (!bandwidth.known()) sum.reset();
  if (sum) *sum += bandwidth.value;
}

/// Sets that grow together.
class Union {
 public:
  explicit Union(std::size_t size) : parent_(size) { std::iota(parent_.begin(), parent_.end(), 0); }
  int root(int i) {
    while (parent_[index(i)] != i) i = parent_[index(i)] = parent_[index(parent_[index(i)])];
    return i;
  }
  /// The smaller root stays.
  void join(int a, int b) {
    a = root(a);
    b = root(b);
    parent_[index(std::max(a, b))] = std::min(a, b);
  }

 private:
  std::vector<int> parent_;
};

using LeavesOfHost = std::map<std::string, std::vector<int>>;  // one entry for each adapter

LeavesOfHost leaves_of_hosts(const FabricMap& map, const std::vector<Leaf>& leaves) {
  LeavesOfHost of_host;
  for (int leaf = 0; leaf < static_cast<int>(leaves.size()); ++leaf) {
    for (const int adapter : leaves[index(leaf)].adapters) {
      const std::string& host = map.adapters[index(adapter)].host;
      if (!host.empty()) of_host[host].push_back(leaf);
    }
  }
  return of_host;
}

/// Two leaves belong together when more than half of the hosts of either hang on the other too.
Union shared_leaves(const LeavesOfHost& of_host, std::size_t leaves) {
  std::vector<int> hosts(leaves);
  std::map<std::pair<int, int>, int> common;
  for (const auto& [host, all] : of_host) {
    const std::set<int> own(all.begin(), all.end());
    for (const int leaf : own) ++hosts[index(leaf)];
    for (const int a : own) {
      for (const int b : own) {
        if (a < b) ++common[{a, b}];
      }
    }
  }
  Union together(leaves);
  for (const auto& [pair, count] : common) {
    if (2 * count > std::max(hosts[index(pair.first)], hosts[index(pair.second)]))
      together.join(pair.first, pair.second);
  }
  return together;
}

std::vector<Pod> pods_of_level(const FabricMap& map, const std::vector<Leaf>& leaves, int level) {
  const auto level_of = [&](FabricEnd end) {
    return end.is_switch ? map.switches[index(end.index)].level : 0;
  };
  const auto within = [&](FabricEnd end) { return level_of(end) >= 1 && level_of(end) <= level; };
  Union together(map.switches.size());
  for (const FabricLink& link : map.links)
    if (within(link.a) && within(link.b)) together.join(link.a.index, link.b.index);
  Union shared = shared_leaves(leaves_of_hosts(map, leaves), leaves.size());
  for (int leaf = 0; leaf < static_cast<int>(leaves.size()); ++leaf)
    together.join(leaves[index(leaf)].switch_index, leaves[index(shared.root(leaf))].switch_index);
  std::vector<Pod> pods;
  std::map<int, std::size_t> of_root;
  for (int leaf = 0; leaf < static_cast<int>(leaves.size()); ++leaf) {
    const auto [at, is_new] =
        of_root.try_emplace(together.root(leaves[index(leaf)].switch_index), pods.size());
    if (is_new) pods.emplace_back();
    pods[at->second].leaves.push_back(leaf);
  }
  std::vector<std::optional<double>> up(pods.size(), 0.0);
  for (const FabricLink& link : map.links) {
    for (const auto& [lower, upper] : {std::pair(link.a, link.b), std::pair(link.b, link.a)}) {
      if (level_of(lower) != level || level_of(upper) != level + 1) continue;
      const std::size_t pod = of_root.at(together.root(lower.index));
      ++pods[pod].uplinks;
      add(up[pod], link.bandwidth);
    }
  }
  for (std::size_t i = 0; i < pods.size(); ++i) {
    std::optional<double> down = 0.0;
    for (const int leaf : pods[i].leaves) add(down, leaves[index(leaf)].down);
    pods[i].down = {down.value_or(0)};
    pods[i].up = {up[i].value_or(0)};
  }
  return pods;
}

}  // namespace

std::string normal_guid(std::string_view text) {
  constexpr std::size_t kDigits = 16;
  if (text.starts_with("0x") || text.starts_with("0X")) text.remove_prefix(2);
  std::string digits;
  for (const char c : text) {
    if (c == ':') continue;
    if (std::isxdigit(static_cast<unsigned char>(c)) == 0) return {};
    digits += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  if (digits.size() > kDigits || digits.find_first_not_of('0') == std::string::npos) return {};
  return std::string(kDigits - digits.size(), '0') + digits;
}

FabricMap merged(std::vector<FabricMap> planes) {
  if (planes.size() == 1) return std::move(planes.front());
  FabricMap all;
  std::unordered_map<std::string, std::string> seen;  // switches' GUIDs, and their files
  for (FabricMap& plane : planes) {
    for (const FabricSwitch& at : plane.switches) {
      const auto [other, is_new] = seen.emplace(at.guid, plane.source);
      if (is_new) continue;
      usage_error("'{}' and '{}' both have the switch {} ({}), so they are of one network; name each once",
                  other->second, plane.source, at.guid, at.name);
    }
    const int switches = static_cast<int>(all.switches.size());
    const int adapters = static_cast<int>(all.adapters.size());
    for (FabricLink& link : plane.links) {
      for (FabricEnd* end : {&link.a, &link.b}) end->index += end->is_switch ? switches : adapters;
    }
    for (FabricAdapter& adapter : plane.adapters) adapter.plane = static_cast<int>(all.planes.size());
    for (std::string& remark : plane.remarks) remark = fmt::format("{}: {}", plane.source, remark);
    all.source += (all.source.empty() ? "" : ", ") + plane.source;
    all.planes.push_back(plane.source);
    std::ranges::move(plane.switches, std::back_inserter(all.switches));
    std::ranges::move(plane.adapters, std::back_inserter(all.adapters));
    std::ranges::move(plane.links, std::back_inserter(all.links));
    std::ranges::move(plane.remarks, std::back_inserter(all.remarks));
  }
  return all;
}

void assign_levels(FabricMap& map) {
  const std::vector<Around> around = surroundings(map);
  const std::vector<bool> is_leaf = find_leaves(around);
  const std::vector<int> levels = levels_above(is_leaf, around);
  for (std::size_t i = 0; i < levels.size(); ++i) map.switches[i].level = levels[i];
  remark_on_shape(map, around, is_leaf);
}

std::vector<Leaf> leaves_of(const FabricMap& map) {
  std::vector<Leaf> leaves;
  std::vector<int> leaf_of(map.switches.size(), -1);
  for (int i = 0; i < static_cast<int>(map.switches.size()); ++i) {
    if (map.switches[index(i)].level != 1) continue;
    leaf_of[index(i)] = static_cast<int>(leaves.size());
    leaves.push_back({i, {}, 0, {}, {}});
  }
  std::vector<std::optional<double>> down(leaves.size(), 0.0);
  std::vector<std::optional<double>> up(leaves.size(), 0.0);
  const auto see = [&](FabricEnd from, FabricEnd to, Bandwidth bandwidth) {
    if (!from.is_switch || leaf_of[index(from.index)] < 0) return;
    const std::size_t at = index(leaf_of[index(from.index)]);
    if (!to.is_switch) {
      if (map.adapters[index(to.index)].kind != AdapterKind::host) return;
      leaves[at].adapters.push_back(to.index);
      add(down[at], bandwidth);
    } else if (map.switches[index(to.index)].level == 2) {
      ++leaves[at].uplinks;
      add(up[at], bandwidth);
    }
  };
  for (const FabricLink& link : map.links) {
    see(link.a, link.b, link.bandwidth);
    see(link.b, link.a, link.bandwidth);
  }
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    leaves[i].down = {down[i].value_or(0)};
    leaves[i].up = {up[i].value_or(0)};
  }
  return leaves;
}

std::vector<std::vector<Pod>> pods_of(const FabricMap& map, const std::vector<Leaf>& leaves) {
  int highest = 0;
  for (const FabricSwitch& at : map.switches) highest = std::max(highest, at.level);
  std::vector<std::vector<Pod>> levels;
  for (int level = 2; level < highest; ++level) {
    std::vector<Pod> pods = pods_of_level(map, leaves, level);
    if (pods.size() > 1) levels.push_back(std::move(pods));
  }
  return levels;
}

std::vector<Neighbourhood> neighbourhoods_of(const FabricMap& map, const std::vector<Leaf>& leaves) {
  const LeavesOfHost of_host = leaves_of_hosts(map, leaves);
  Union together = shared_leaves(of_host, leaves.size());
  std::vector<Neighbourhood> result;
  std::vector<int> of_root(leaves.size(), -1);
  for (int leaf = 0; leaf < static_cast<int>(leaves.size()); ++leaf) {
    int& at = of_root[index(together.root(leaf))];
    if (at < 0) {
      at = static_cast<int>(result.size());
      result.emplace_back();
    }
    result[index(at)].leaves.push_back(leaf);
  }
  for (Neighbourhood& neighbourhood : result) {
    std::optional<double> up = 0.0;
    for (const int leaf : neighbourhood.leaves) {
      if (leaves[index(leaf)].uplinks > 0) add(up, leaves[index(leaf)].up);
    }
    neighbourhood.up = {up.value_or(0)};
  }
  for (const auto& [host, own] : of_host) {
    std::map<int, int> adapters;
    for (const int leaf : own) ++adapters[of_root[index(together.root(leaf))]];
    const auto most = std::ranges::max_element(adapters, {}, [](const auto& entry) { return entry.second; });
    result[index(most->first)].hosts.push_back(host);
  }
  return result;
}

}  // namespace polyring

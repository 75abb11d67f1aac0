#include "topology/inventory/formats/fabric_dot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/index.hpp"
#include "topology/inventory/formats/dot.hpp"

namespace polyring {
namespace {

/// All cables between the same two switches.
struct Bundle {
  int cables = 0;
  Bandwidth bandwidth;  // together
  bool known = true;
  std::set<std::string> rates;

  void add(const FabricLink& link) {
    ++cables;
    bandwidth = bandwidth + link.bandwidth;
    known = known && link.bandwidth.known();
    rates.insert(link.rate.empty() ? "?" : link.rate);
  }
  Bandwidth together() const { return known ? bandwidth : Bandwidth{}; }
  std::string text() const {
    return fmt::format("{} x {}", cables, rates.size() == 1 ? *rates.begin() : "several rates");
  }
};

/// The upper switch first, as Graphviz draws it.
using Bundles = std::map<std::pair<int, int>, Bundle>;

Bundles bundles_of(const FabricMap& map) {
  Bundles bundles;
  for (const FabricLink& link : map.links) {
    if (!link.a.is_switch || !link.b.is_switch) continue;
    const auto row = [&](int at) { return std::pair(-map.switches[index(at)].level, at); };
    const auto [upper, lower] =
        std::minmax(link.a.index, link.b.index, [&](int one, int other) { return row(one) < row(other); });
    bundles[{upper, lower}].add(link);
  }
  return bundles;
}

/// Adapters of hosts on each switch.
std::vector<int> adapters_of(const FabricMap& map) {
  std::vector<int> adapters(map.switches.size());
  for (const FabricLink& link : map.links) {
    for (const auto& [at, other] : {std::pair(link.a, link.b), std::pair(link.b, link.a)}) {
      if (at.is_switch && !other.is_switch && map.adapters[index(other.index)].kind == AdapterKind::host)
        ++adapters[index(at.index)];
    }
  }
  return adapters;
}

}  // namespace

std::string fabric_dot(const FabricMap& map) {
  std::string out = dot::head(map.source);
  const std::vector<int> adapters = adapters_of(map);
  std::map<int, std::vector<int>, std::greater<>> levels;
  for (int i = 0; i < static_cast<int>(map.switches.size()); ++i)
    levels[map.switches[index(i)].level].push_back(i);
  for (const auto& [level, switches] : levels) {
    out += "  { rank=same\n";
    for (const int i : switches) {
      const int count = adapters[index(i)];
      const std::string hosts =
          count == 0 ? "" : fmt::format("{} adapter{} of hosts", count, count == 1 ? "" : "s");
      out += fmt::format("    switch{} [{}]\n", i, dot::label({map.switches[index(i)].name, hosts}));
    }
    out += "  }\n";
  }
  for (const auto& [ends, bundle] : bundles_of(map)) {
    out += fmt::format("  switch{} -- switch{} [{}, {}]\n", ends.first, ends.second,
                       dot::label({bundle.text()}), dot::width(bundle.together()));
  }
  return out + "}\n";
}

}  // namespace polyring

#include "topology/some_hosts.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace polyring {
namespace {

/// Where hosts are in units of so many, such as leaves.
struct Units {
  int most = 0;          // hosts of one unit
  int least = 0;         // the same
  int count = 0;         // units with hosts
  int mean = 0;          // hosts of a unit, rounded up
  bool together = true;  // the hosts of each are neighbours
};

Units units_of(std::span<const int> hosts, int per_unit) {
  std::map<int, int> in;
  Units units;
  int last = -1;
  for (const int host : hosts) {
    const int unit = host / per_unit;
    const int already = in[unit]++;
    if (unit != last && already > 0) units.together = false;
    last = unit;
  }
  const auto [least, most] = std::ranges::minmax_element(in, {}, &std::pair<const int, int>::second);
  units.least = least->second;
  units.most = most->second;
  units.count = static_cast<int>(in.size());
  units.mean = (static_cast<int>(hosts.size()) + units.count - 1) / units.count;
  return units;
}

}  // namespace

Fabric fabric_among(const Fabric& fabric, std::span<const int> hosts) {
  Fabric result = fabric;
  result.pods.clear();
  if (fabric.hosts_per_nvlink_domain > 1) {
    const Units domains = units_of(hosts, fabric.hosts_per_nvlink_domain);
    const bool whole = domains.together && domains.least == domains.most;
    result.hosts_per_nvlink_domain = whole ? domains.most : 0;
  }
  if (fabric.hosts_per_leaf == 0) return result;
  const Units leaves = units_of(hosts, fabric.hosts_per_leaf);
  result.hosts_per_leaf = leaves.count == 1 ? 0 : leaves.together ? leaves.mean : 1;
  if (leaves.count == 1) return result;
  if (!leaves.together) result.leaf_uplink = (1.0 / leaves.most) * fabric.leaf_uplink;
  int below = result.hosts_per_leaf;
  for (const Pods& pods : fabric.pods) {
    const Units units = units_of(hosts, pods.hosts);
    if (units.count == 1) break;
    if (!units.together || units.mean <= below) continue;
    below = units.mean;
    result.pods.push_back({below, pods.uplink});
  }
  return result;
}

}  // namespace polyring

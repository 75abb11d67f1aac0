#include "bench/accept/site.hpp"

#include <fmt/format.h>

#include <map>
#include <set>
#include <utility>

#include "base/error.hpp"
#include "base/index.hpp"
#include "bench/accept/groups.hpp"
#include "bench/record/emulation.hpp"
#include "bench/record/gather_probes.hpp"
#include "bench/record/record.hpp"
#include "bench/record/run_cluster.hpp"
#include "bench/session/collective.hpp"
#include "topology/host_names.hpp"
#include "topology/inventory/placement.hpp"
#include "topology/processes.hpp"

namespace polyring {
namespace {

Cluster cluster_of_ranks(const Inventory& inventory, std::span<const RankHost> placement) {
  if (!inventory.unprobed.empty()) return {};
  Cluster cluster = inventory.cluster;
  for (HostGroup& group : cluster.groups) {
    if (!on_gpus(placement)) group.machine = without_gpus(std::move(group.machine));
    give_emulated_link(group.machine);
  }
  describe_emulated_fabric(cluster);
  try {
    return with_ranks_of(std::move(cluster), placement, "this job");
  } catch (const Error&) {
    return {};
  }
}

}  // namespace

Site find_site(const World& world, const std::string& own, std::span<const RankHost> placement,
               const std::optional<FabricMap>& fabric) {
  Site site;
  site.inventory = gather_probes(world, own);
  on_root(world, [&] {
    site.source = source_here();
    for (Rank rank = 0; rank < world.size(); ++rank) {
      const std::size_t host = index(world.host_number(rank));
      if (host == site.hosts.size()) {
        site.hosts.push_back(world.host(rank));
        site.ranks.emplace_back();
      }
      site.ranks[host].push_back(rank);
    }
    site.cluster = cluster_of_ranks(site.inventory, placement);
    site.leaf = leaves_in_turn(site.hosts.size(), site.cluster.fabric.hosts_per_leaf);
    if (fabric) put_on_leaves(site, *fabric);
  });
  return site;
}

void put_on_leaves(Site& site, const FabricMap& map) {
  std::map<std::string, int> leaves;
  if (!site.inventory.cluster.groups.empty()) {  // some could be probed
    for (const PlacedLeaf& leaf : leaves_of_hosts(site.inventory, map)) {
      for (const std::string& host : leaf.hosts) leaves[host] = static_cast<int>(site.leaf_names.size());
      site.leaf_names.push_back(leaf.name);
    }
    Inventory of_fabric = placed(site.inventory, map);
    site.cluster.fabric = site.inventory.cluster.fabric = std::move(of_fabric.cluster.fabric);
    site.inventory.places = std::move(of_fabric.places);
  }
  // A host with another name, or on Ethernet alone, must not keep a cluster from being judged. It may hang
  // anywhere, so that nothing of it speaks for or against a leaf that others hang on.
  int next = static_cast<int>(site.leaf_names.size());
  std::vector<std::string> missing;
  for (std::size_t host = 0; host < site.hosts.size(); ++host) {
    const auto at = leaves.find(site.hosts[host]);
    site.leaf[host] = at != leaves.end() ? at->second : next++;
    if (at == leaves.end()) missing.push_back(site.hosts[host]);
  }
  if (!missing.empty())
    site.notes.push_back(fmt::format("Not in '{}': {}. Each is judged as if alone under a leaf switch.",
                                     map.source, names_text(missing)));
}

Inventory recorded_hosts(const Site& site) {
  Inventory hosts = site.inventory;
  for (HostGroup& group : hosts.cluster.groups) give_emulated_link(group.machine);
  if (site.leaf_names.empty()) describe_emulated_fabric(hosts.cluster);
  return hosts;
}

std::optional<std::vector<LeafHosts>> recorded_leaves(const Site& site) {
  if (site.leaf_names.empty()) return std::nullopt;
  std::map<int, LeafHosts> leaves;
  for (std::size_t host = 0; host < site.hosts.size(); ++host) {
    const std::size_t number = index(site.leaf[host]);
    LeafHosts& leaf = leaves[site.leaf[host]];
    if (number < site.leaf_names.size()) leaf.name = site.leaf_names[number];
    leaf.hosts.push_back(site.hosts[host]);
  }
  std::vector<LeafHosts> in_order;
  for (auto& [number, leaf] : leaves) in_order.push_back(std::move(leaf));
  return in_order;
}

std::vector<std::string> hosts_of_run(const ResultFile& result) {
  std::vector<std::string> hosts;
  std::set<std::string> seen;
  for (const RankHost& place : result.placement)
    if (seen.insert(place.host).second) hosts.push_back(place.host);
  return hosts;
}

std::vector<int> leaves_of_run(const ResultFile& result, int per_leaf) {
  const std::vector<std::string> hosts = hosts_of_run(result);
  if (!result.leaves) return leaves_in_turn(hosts.size(), per_leaf);
  std::map<std::string, int> of_host;
  int next = 0;
  for (const LeafHosts& leaf : *result.leaves) {
    for (const std::string& host : leaf.hosts) of_host.emplace(host, next);
    ++next;
  }
  std::vector<int> leaves;
  for (const std::string& host : hosts) {
    const auto [at, is_new] = of_host.emplace(host, next);
    next += is_new ? 1 : 0;
    leaves.push_back(at->second);
  }
  return leaves;
}

}  // namespace polyring

// Where a job runs, as rank 0 knows it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/accept/check.hpp"
#include "collectives/runtime/world.hpp"
#include "reports/result.hpp"
#include "topology/inventory/fabric_map.hpp"

namespace polyring {

/// Collective; ranks other than 0 get a site without hosts. `own`: probe_own_host()'s. Where the ranks of a
/// host are not numbered one after another, a host could not be probed, or a GPU of `placement` is not known,
/// the cluster has no hosts. `fabric`: on rank 0, if one was given, see put_on_leaves().
Site find_site(const World& world, const std::string& own, std::span<const RankHost> placement,
               const std::optional<FabricMap>& fabric);

/// The site's leaves become those of leaves_of_hosts(), its fabric and the inventory's that of placed();
/// hosts keep their numbers. One that the map does not have gets a leaf of its own, and a note says so.
/// Throws a usage Error where it has none of them.
void put_on_leaves(Site& site, const FabricMap& map);

/// What a result says of the hosts, and a baseline is compared with: all that was probed, the links that are
/// emulated here, and the fabric by which hosts are judged.
Inventory recorded_hosts(const Site& site);

/// The leaves with their hosts, for a result: where put_on_leaves() has found them.
std::optional<std::vector<LeafHosts>> recorded_leaves(const Site& site);

/// The names of the hosts of a result's ranks, in the order in which a Site numbers them.
std::vector<std::string> hosts_of_run(const ResultFile& result);

/// The leaf of each of hosts_of_run(): that of the result's leaves, or else `per_leaf` hosts are under each,
/// see leaves_in_turn(). A host that is under none has one of its own.
std::vector<int> leaves_of_run(const ResultFile& result, int per_leaf);

}  // namespace polyring

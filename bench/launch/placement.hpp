// Which rank runs where: on which host, and on which of its cores.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/launch/hosts.hpp"
#include "topology/inventory/inventory.hpp"

namespace polyring {

/// The ranks of one host; those of a placement are numbered host after host.
struct PlacedHost {
  std::string name;
  int ranks = 0;
  std::vector<std::vector<int>> cores;  // of each rank, see RankCores; empty where ranks would share them
  int gpus = 0;
  std::vector<int> cpuset{};            // its cores, or those that it may use, see AllowedCores
  std::string allowed{};                // how many it may use, and why; empty: all
  std::vector<std::string> far_gpus{};  // see RankCores
};

struct Placement {
  std::vector<PlacedHost> hosts;  // in the order of their ranks; each has ranks
  int ranks() const;
  /// Whether every rank has cores of its own.
  bool bound() const;
};

/// "4 of 64 cores are allowed (cpuset), 4 are used": where not all are allowed, or some GPUs have none near;
/// else empty. `bound`: whether ranks are bound to the cores of the placement, or else nothing is said of
/// these.
std::string cores_remark(const PlacedHost& host, bool bound);

struct PlacementConstraints {
  std::optional<int> ranks{};           // in all
  std::optional<int> ranks_per_host{};  // where the list of hosts says nothing
  bool oversubscribe = false;           // ranks may share GPUs, or cores on hosts without GPUs
};

/// Hosts in the order of the inventory, which has each of the listed ones under the same name. The ranks of a
/// host are, in this order: what the list says, `ranks_per_host`, its GPUs, its cores. With fewer `ranks`,
/// hosts whose ranks were listed are filled one after the other, else all get equally many, the first hosts
/// one more. Throws a usage Error for more ranks than there are GPUs, or cores.
Placement place_ranks(std::span<const ListedHost> listed, const Inventory& inventory,
                      const PlacementConstraints& constraints);

}  // namespace polyring

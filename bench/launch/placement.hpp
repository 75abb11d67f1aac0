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
  std::vector<std::vector<int>> cores;  // of each rank, see RankCores; empty where ranks are not bound
  int gpus = 0;
  std::string remark{};  // what there is to say of its cores
};

struct Placement {
  std::vector<PlacedHost> hosts;  // in the order of their ranks; each has ranks
  int ranks() const;
  /// Whether every rank has cores of its own.
  bool bound() const;
};

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

// Inventory: a cluster whose hosts are known one by one. The Cluster holds what planning needs, groups of
// hosts that are equal; the inventory adds who the hosts are, which of them could not be probed, and what
// somebody should know about them.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "topology/cluster.hpp"
#include "topology/inventory/allowed_cores.hpp"
#include "topology/inventory/compare.hpp"

namespace polyring {

/// What tells a host from others that are equal.
struct HostIdentity {
  std::string name;
  std::vector<std::string> port_guids{};  // of its InfiniBand ports, as far as known
  std::optional<AllowedCores> allowed{};  // of the process that probed it; nothing: all of its cores
  std::vector<LinkFault> link_faults{};   // of this host alone
};

/// A host that is there, but of which nothing else is known.
struct UnprobedHost {
  std::string name;
  std::string why;
};

struct Inventory {
  /// Neighbours that are equal are one group, so ranks are in the order of the hosts.
  Cluster cluster{};
  /// Of each group: its hosts in the order of ranks, or none where only their number is known.
  std::vector<std::vector<HostIdentity>> members{};
  std::vector<UnprobedHost> unprobed{};
  std::vector<std::string> places{};  // "leaf07: node[01-18]", where the leaf switches are known
  /// What somebody chose for the hosts, such as rates to assume: "assumed: …", or "node07: assumed: …" where
  /// it is not for all.
  std::vector<std::string> asked{};
  std::vector<std::string> notes{};  // whole sentences
};

/// The name, the GUIDs of the ports that have one, and the faults of links.
HostIdentity identity_of(const Machine& machine);

/// One host.
Inventory inventory_of(Machine machine);
/// Of groups of several hosts only the number is known; a group of one has its machine's name.
Inventory inventory_of(Cluster cluster);

/// All hosts of the parts, in this order. Those that differ by less than a tolerance (see compare.hpp) and
/// are neighbours become one group, with the machine of the first; a note says what the small differences
/// are. Remarks of a group are those of all its hosts, with the names where not all have them; so is what was
/// asked for, of all hosts. The fabric is the first part's, the cluster's name the first host's.
Inventory merged(std::vector<Inventory> parts);

/// Hosts that are equal, wherever they are in the cluster.
struct HostKind {
  std::vector<int> groups;  // of the cluster
  int count = 0;            // hosts
};

/// The commonest kind first, then in the order of their first hosts.
std::vector<HostKind> kinds_of(const Cluster& cluster);

/// The cluster with one group for each kind, for what does not depend on the order of hosts.
Cluster by_kind(const Cluster& cluster);

/// The names of the hosts of some groups, in the order of ranks. Hosts without names are named as many as
/// they are: "3 like minsky".
std::vector<std::string> names_of(const Inventory& inventory, const std::vector<int>& groups);

/// Adds to `asked` what `say` has of each group's machine, the same sentence once; where hosts differ, with
/// their names. Empty sentences are left out.
void add_asked(Inventory& inventory, const std::function<std::string(const Machine&)>& say);

/// A difference, and the hosts that have it.
struct NamedDifference {
  std::vector<std::string> hosts;
  std::string sentence;
};

/// How hosts differ from those of the commonest kind: hosts with the same difference are named together. Of a
/// host with more differences than anybody wants to read, it is only said that it is of another kind.
std::vector<NamedDifference> differences_of(const Inventory& inventory);

/// The same of hosts of the commonest kind that have a few differences.
std::vector<NamedDifference> small_differences_of(const Inventory& inventory);

/// Whether so many differences make another kind of host, that one wants to see by itself.
bool is_another_kind(const std::vector<Difference>& differences);

/// The hosts in the new order: position i gets the host that was at order[i], which holds none twice. Every
/// group has its members. Notes, the fabric and the rest stay.
Inventory reordered(const Inventory& inventory, const std::vector<int>& order);

}  // namespace polyring

#include "bench/launch/placement.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/error.hpp"
#include "topology/path.hpp"

namespace polyring {
namespace {

int cores_of(const Machine& machine) {
  int cores = 0;
  for (const Package& package : machine.packages) cores += package.cores;
  return cores;
}

/// What a host's ranks run on, one each.
struct Seats {
  int number = 0;
  const char* name = "";
};

Seats seats_of(const Machine& machine) {
  if (!machine.gpus.empty()) return {static_cast<int>(machine.gpus.size()), "GPUs"};
  return {cores_of(machine), "cores"};
}

CoreRange whole(const Machine& machine, int package) {
  int before = 0;
  for (int i = 0; i < package; ++i) before += machine.packages[static_cast<std::size_t>(i)].cores;
  return {package, 0, machine.packages[static_cast<std::size_t>(package)].cores - 1, before};
}

/// The cores of a NUMA node: packages number them in the order of their nodes. Nothing when no package has
/// the node.
std::optional<CoreRange> cores_of_numa(const Machine& machine, int numa) {
  for (int i = 0; i < static_cast<int>(machine.packages.size()); ++i) {
    const Package& package = machine.packages[static_cast<std::size_t>(i)];
    std::vector<int> nodes = package.numa_nodes;
    std::ranges::sort(nodes);
    const auto found = std::ranges::find(nodes, numa);
    if (found == nodes.end()) continue;
    CoreRange range = whole(machine, i);
    const int count = static_cast<int>(nodes.size());
    if (package.cores % count != 0) return range;
    const int each = package.cores / count;
    range.first = static_cast<int>(found - nodes.begin()) * each;
    range.last = range.first + each - 1;
    return range;
  }
  return std::nullopt;
}

int nearest_package(const Machine& machine, int gpu) {
  int nearest = 0;
  std::size_t fewest = machine.links.size() + 1;
  for (int i = 0; i < static_cast<int>(machine.packages.size()); ++i) {
    const auto path = find_path(machine, {DeviceKind::gpu, gpu}, {DeviceKind::package, i});
    if (!path || path->hops.size() >= fewest) continue;
    nearest = i;
    fewest = path->hops.size();
  }
  return nearest;
}

/// The cores near each rank, which some may have to share.
std::vector<CoreRange> near_cores(const Machine& machine, int ranks) {
  const int gpus = static_cast<int>(machine.gpus.size());
  const int packages = static_cast<int>(machine.packages.size());
  const bool by_numa = std::ranges::all_of(
      machine.gpus, [&](const Gpu& gpu) { return cores_of_numa(machine, gpu.numa).has_value(); });
  std::vector<CoreRange> near;
  for (int rank = 0; rank < ranks; ++rank) {
    if (gpus == 0) {
      near.push_back(whole(machine, rank * packages / ranks));
    } else if (by_numa) {
      near.push_back(*cores_of_numa(machine, machine.gpus[static_cast<std::size_t>(rank % gpus)].numa));
    } else {
      near.push_back(whole(machine, nearest_package(machine, rank % gpus)));
    }
  }
  return near;
}

/// How many ranks each host gets, of those that it can have.
std::vector<int> share_out(std::span<const int> most, int ranks, bool fill) {
  std::vector<int> shares(most.size(), 0);
  for (std::size_t host = 0; fill && host < most.size(); ++host) {
    shares[host] = std::min(most[host], ranks);
    ranks -= shares[host];
  }
  while (ranks > 0) {
    for (std::size_t host = 0; host < most.size() && ranks > 0; ++host) {
      if (shares[host] == most[host]) continue;
      ++shares[host];
      --ranks;
    }
  }
  return shares;
}

/// A host that ranks can run on.
struct Candidate {
  ListedHost host;
  const Machine* machine;
};

std::vector<Candidate> candidates(std::span<const ListedHost> listed, const Inventory& inventory) {
  std::unordered_map<std::string_view, const ListedHost*> by_name;
  for (const ListedHost& host : listed) by_name.emplace(host.name, &host);
  std::vector<Candidate> candidates;
  for (std::size_t group = 0; group < inventory.members.size(); ++group) {
    for (const HostIdentity& host : inventory.members[group])
      candidates.push_back({*by_name.at(host.name), &inventory.cluster.groups[group].machine});
  }
  return candidates;
}

/// Throws for a host that cannot have what was asked for.
int most_ranks(const Candidate& candidate, const PlacementConstraints& constraints) {
  const ListedHost& host = candidate.host;
  const Seats seats = seats_of(*candidate.machine);
  const int wanted = host.ranks != 0 ? host.ranks : constraints.ranks_per_host.value_or(seats.number);
  if (wanted < 1)
    usage_error("{} has no GPUs and its cores are unknown; say how many ranks it gets with --ranks-per-host",
                host.name);
  if (wanted > seats.number && !constraints.oversubscribe) {
    usage_error(
        "{} ranks are asked for on {}, which has {} {}; ask for {} or fewer, or let ranks share them "
        "with --oversubscribe",
        wanted, host.name, seats.number, seats.name, seats.number);
  }
  return wanted;
}

}  // namespace

int Placement::ranks() const {
  return std::accumulate(hosts.begin(), hosts.end(), 0,
                         [](int sum, const PlacedHost& host) { return sum + host.ranks; });
}

bool Placement::bound() const {
  return std::ranges::all_of(hosts, [](const PlacedHost& host) { return !host.cores.empty(); });
}

std::vector<CoreRange> cores_of_ranks(const Machine& machine, int ranks) {
  std::map<std::pair<int, int>, std::vector<int>> sharers;  // package and first core: the ranks near them
  std::vector<CoreRange> cores = near_cores(machine, ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    const CoreRange& near = cores[static_cast<std::size_t>(rank)];
    sharers[{near.package, near.first}].push_back(rank);
  }
  for (const auto& [place, sharing] : sharers) {
    const CoreRange all = cores[static_cast<std::size_t>(sharing.front())];
    const int available = all.last - all.first + 1;
    const int each = available / static_cast<int>(sharing.size());
    if (each == 0) return {};
    int next = all.first;
    for (const int rank : sharing) {
      CoreRange& own = cores[static_cast<std::size_t>(rank)];
      own.first = next;
      own.last = next + each - 1;
      next += each;
    }
  }
  return cores;
}

Placement place_ranks(std::span<const ListedHost> listed, const Inventory& inventory,
                      const PlacementConstraints& constraints) {
  const std::vector<Candidate> hosts = candidates(listed, inventory);
  std::vector<int> most;
  for (const Candidate& candidate : hosts) most.push_back(most_ranks(candidate, constraints));
  check_total(std::accumulate(most.begin(), most.end(), std::int64_t{0}));
  const int all = std::accumulate(most.begin(), most.end(), 0);
  const int ranks = constraints.ranks.value_or(all);
  const bool counted = std::ranges::any_of(listed, [](const ListedHost& host) { return host.ranks != 0; });
  if (ranks > all) {
    if (!constraints.oversubscribe) {
      const char* seats =
          counted || constraints.ranks_per_host ? "ranks" : seats_of(*hosts.front().machine).name;
      usage_error(
          "-n {0} are more ranks than the {1} {2} of {3} host{4}; give -n {1} or less, name more hosts, or "
          "let ranks share with --oversubscribe",
          ranks, all, seats, hosts.size(), hosts.size() == 1 ? "" : "s");
    }
    most.assign(hosts.size(), ranks);
  }
  const std::vector<int> shares = share_out(most, ranks, counted && ranks <= all);
  Placement placement;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    if (shares[i] == 0) continue;
    const auto& [host, machine] = hosts[i];
    placement.hosts.push_back(
        {host.name, shares[i], cores_of_ranks(*machine, shares[i]), static_cast<int>(machine->gpus.size())});
  }
  return placement;
}

}  // namespace polyring

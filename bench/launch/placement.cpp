#include "bench/launch/placement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/error.hpp"
#include "bench/launch/rank_cores.hpp"
#include "topology/host_names.hpp"

namespace polyring {
namespace {

/// What a host's ranks run on, one each.
struct Seats {
  int number = 0;  // 0: unknown
  const char* name = "";
};

Seats seats_of(const Machine& machine, const std::optional<AllowedCores>& allowed) {
  if (!machine.gpus.empty()) return {static_cast<int>(machine.gpus.size()), "GPUs"};
  return {usable_cores(machine, allowed), allowed ? "allowed cores" : "cores"};
}

std::vector<int> cpuset_of(const Machine& machine, const std::optional<AllowedCores>& allowed) {
  if (allowed) return allowed->cpuset;
  std::vector<int> all(static_cast<std::size_t>(machine.cores()));
  std::iota(all.begin(), all.end(), 0);
  return all;
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
  const std::optional<AllowedCores>* allowed;
  Seats seats() const { return seats_of(*machine, *allowed); }
};

std::vector<Candidate> candidates(std::span<const ListedHost> listed, const Inventory& inventory) {
  std::unordered_map<std::string_view, const ListedHost*> by_name;
  for (const ListedHost& host : listed) by_name.emplace(host.name, &host);
  std::vector<Candidate> candidates;
  for (std::size_t group = 0; group < inventory.members.size(); ++group) {
    for (const HostIdentity& host : inventory.members[group])
      candidates.push_back({*by_name.at(host.name), &inventory.cluster.groups[group].machine, &host.allowed});
  }
  return candidates;
}

/// Throws for a host that cannot have what was asked for.
int most_ranks(const Candidate& candidate, const PlacementConstraints& constraints) {
  const ListedHost& host = candidate.host;
  const Seats seats = candidate.seats();
  const int wanted = host.ranks != 0 ? host.ranks : constraints.ranks_per_host.value_or(seats.number);
  if (wanted < 1)
    usage_error("{} has no GPUs and its cores are unknown; say how many ranks it gets with --ranks-per-host",
                host.name);
  if (seats.number > 0 && wanted > seats.number && !constraints.oversubscribe) {
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

std::string cores_remark(const PlacedHost& host, bool bound) {
  std::string remark = host.allowed;
  if (!bound) return remark;
  if (!remark.empty()) {
    std::size_t used = 0;
    for (const std::vector<int>& own : host.cores) used += own.size();
    remark += fmt::format(", {} {} used", used, used == 1 ? "is" : "are");
  }
  if (!host.far_gpus.empty()) {
    remark += fmt::format("{}too few are near {}, and the next nearest are taken", remark.empty() ? "" : "; ",
                          names_text(host.far_gpus));
  }
  return remark;
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
      const char* seats = counted || constraints.ranks_per_host ? "ranks" : hosts.front().seats().name;
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
    const auto& [host, machine, allowed] = hosts[i];
    const RankCores cores = cores_of_ranks(*machine, *allowed, shares[i]);
    placement.hosts.push_back({host.name, shares[i], cores.of_rank, static_cast<int>(machine->gpus.size()),
                               cpuset_of(*machine, *allowed)});
    if (*allowed) placement.hosts.back().allowed = allowed_text(*machine, **allowed);
    for (const int gpu : cores.far_gpus)
      placement.hosts.back().far_gpus.push_back(machine->gpus[static_cast<std::size_t>(gpu)].name);
  }
  return placement;
}

}  // namespace polyring

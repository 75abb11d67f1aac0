#include "collectives/schedule/bound.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "topology/link_names.hpp"
#include "topology/min_cut.hpp"
#include "topology/rank_groups.hpp"
#include "topology/rank_nics.hpp"
#include "topology/route.hpp"

namespace polyring {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

/// Ranks that are cut from all others; there are `number` equal parts.
struct Part {
  std::string limit;  // what joins it to the rest, in words
  int number = 1;
  int ranks = 0;                 // of each
  double bandwidth = kInfinite;  // infinite when unknown; `limit` then says what of
};

/// A way to part all ranks.
using Cut = std::vector<Part>;

double or_infinite(Bandwidth bandwidth) { return bandwidth.known() ? bandwidth.value : kInfinite; }

double bandwidth_of(const MinCut& cut) { return cut.unknown ? kInfinite : cut.bandwidth.value; }

/// "minsky: the speed of X-bus package0 - package1".
std::string unknown_text(const Machine& machine, const MinCut& cut) {
  const auto index = [](int i) { return static_cast<std::size_t>(i); };
  return fmt::format("{}: the speed of {}", machine.name,
                     cut.nics.empty() ? link_name(machine, machine.links[index(cut.links.front())])
                                      : machine.nics[index(cut.nics.front())].name);
}

/// Of a cut into hosts by PCIe alone, in front of ports that may carry less: what of them would have to be
/// known. Empty where all that matter are.
std::string unknown_port_of(const Machine& machine, const MinCut& cut) {
  if (!cut.bandwidth.known()) return {};
  for (const int nic : usable_nics(machine)) {
    const Nic& joined = machine.nics[static_cast<std::size_t>(nic)];
    if (!joined.bandwidth().known()) return fmt::format("{}: the speed of {}", machine.name, joined.name);
  }
  return {};
}

/// "gpu0 reaches the others only over …".
std::string reach_text(const Machine& machine, const RankGroup& group, const MinCut& cut, bool named) {
  if (cut.unknown) return unknown_text(machine, cut);
  const bool one = group.ranks.size() == 1;
  const char* verb = one || machine.gpus.empty() ? "reaches" : "reach";
  return fmt::format("{} {} the others only over {}", group.name, verb,
                     names_of(machine, cut.links, cut.nics, named));
}

/// "4 GPUs of a host share 2 x EDR InfiniBand".
std::string host_text(const Cluster& cluster, const Machine& machine, const MinCut& cut) {
  const std::string alone = why_alone(machine);
  if (!alone.empty()) return alone;
  const std::string over = names_of(machine, cut.links, cut.nics, true);
  const std::string host = cluster.groups.size() == 1 ? "a host" : machine.name;
  if (machine.gpus.empty()) return fmt::format("{} has {}", host, over);
  return fmt::format("{} of {} {} {}", ranks_text(machine, machine.ranks()), host,
                     machine.ranks() == 1 ? "has" : "share", over);
}

std::vector<bool> mask_of(const RankGroup& group, const Machine& machine) {
  std::vector<bool> inside(static_cast<std::size_t>(machine.ranks()));
  for (const int rank : group.ranks) inside[static_cast<std::size_t>(rank)] = true;
  return inside;
}

/// Which links of a host count where there is one.
enum class Links { all, usual };

/// Each host's ranks in groups; nothing where that leaves a single part.
template <typename Grouping>
Cut cut_by(const Cluster& cluster, Grouping grouping, Links links) {
  const bool several_domains = cluster.domain_count() > 1;
  const bool domain = cluster.hosts_per_domain() > 1;
  Cut parts;
  for (const HostGroup& hosts : cluster.groups) {
    const std::vector<RankGroup> groups = grouping(hosts.machine);
    const bool all = links == Links::all || several_domains;
    const Machine machine = all ? hosts.machine : with_gpu_fabric_alone(hosts.machine);
    if (cluster.host_count() == 1 && groups.size() == 1) return {};
    std::vector<MinCut> cuts;
    std::set<double> speeds;
    for (const RankGroup& group : groups) {
      cuts.push_back(min_cut(machine, mask_of(group, machine), several_domains, domain));
      speeds.insert(cuts.back().bandwidth.value);
    }
    // Single ranks that are all equal need no names.
    const bool each =
        groups.size() == static_cast<std::size_t>(machine.ranks()) && groups.size() > 1 && speeds.size() == 1;
    for (std::size_t i = 0; i < groups.size(); ++i) {
      RankGroup group = groups[i];
      if (each) group.name = "each " + ranks_text(machine, 1).substr(2);
      if (cluster.groups.size() > 1) group.name += " of " + machine.name;
      parts.push_back({reach_text(machine, group, cuts[i], !each), hosts.count,
                       static_cast<int>(groups[i].ranks.size()), bandwidth_of(cuts[i])});
    }
  }
  return parts;
}

/// Each with what its NICs carry, also inside an NVLink domain; nothing for a single domain.
Cut cut_into_hosts(const Cluster& cluster) {
  if (cluster.domain_count() < 2) return {};
  Cut parts;
  for (const HostGroup& hosts : cluster.groups) {
    const Machine& machine = hosts.machine;
    const MinCut cut =
        min_cut(machine, std::vector<bool>(static_cast<std::size_t>(machine.ranks()), true), true);
    const std::string unknown = cut.unknown ? unknown_text(machine, cut) : unknown_port_of(machine, cut);
    parts.push_back({unknown.empty() ? host_text(cluster, machine, cut) : unknown, hosts.count,
                     machine.ranks(), unknown.empty() ? bandwidth_of(cut) : kInfinite});
  }
  return parts;
}

/// `hosts`: the cut into these. `where`: what each `of` of them are under, "a leaf switch".
Cut cut_into(const Cut& hosts, int host_count, int of, Bandwidth uplink, std::string_view where) {
  if (of == 0 || host_count <= of) return {};
  Cut cut;
  int host = 0;
  for (const Part& part : hosts) {
    for (int i = 0; i < part.number; ++i, ++host) {
      if (host % of == 0) cut.push_back({"", 1, 0, 0});
      cut.back().ranks += part.ranks;
      cut.back().bandwidth += part.bandwidth;
      if (std::isinf(part.bandwidth)) cut.back().limit = part.limit;
    }
  }
  for (Part& part : cut) {
    if (std::isinf(part.bandwidth)) continue;  // its hosts may share less than its uplinks
    part.limit = part.bandwidth < or_infinite(uplink)
                     ? fmt::format("the hosts of {} share their NICs", where)
                     : fmt::format("{} hosts of {} share its uplinks", of, where);
    part.bandwidth = std::min(part.bandwidth, or_infinite(uplink));
  }
  return cut;
}

/// What must enter or leave a part, of a payload of 1.
double crossing(Collective collective, int part_ranks, int ranks) {
  const int others = ranks - part_ranks;
  const double blocks = collective == Collective::alltoall ? static_cast<double>(part_ranks) * others
                                                           : std::max(part_ranks, others);
  return blocks / ranks;
}

Bound block_bound_of(Collective collective, const Cut& parts, double payload) {
  int ranks = 0;
  for (const Part& part : parts) ranks += part.number * part.ranks;
  Bound worst;
  for (const Part& part : parts) {
    if (part.ranks == ranks) return {};
    if (std::isinf(part.bandwidth)) {
      if (worst.cut.empty()) worst.cut = part.limit;
      continue;
    }
    if (part.bandwidth == 0) return {{kInfinite}, {}, part.limit};
    const double time = crossing(collective, part.ranks, ranks) * payload / part.bandwidth;
    if (time > worst.time.value * (1 + 1e-9))
      worst = {
          {time}, {part.bandwidth}, fmt::format("{}: {}", part.limit, to_text(Bandwidth{part.bandwidth}))};
  }
  return worst;
}

Bound bound_of(Collective collective, const Cut& parts, double payload) {
  if (collective != Collective::allreduce) return block_bound_of(collective, parts, payload);
  double number = 0;
  double total = 0;
  for (const Part& part : parts) {
    number += part.number;
    total += part.number * part.bandwidth;
  }
  if (number < 2) return {};
  const Part& least = *std::ranges::min_element(parts, {}, &Part::bandwidth);
  if (std::isinf(least.bandwidth)) return {{}, {}, least.limit};
  if (least.bandwidth == 0) return {{kInfinite}, {}, least.limit};
  // Every element crosses between m parts at least 2(m − 1) times in all, and leaves each part at least once.
  const double all = 2 * (number - 1) * payload / total;
  const double one = payload / least.bandwidth;
  const Bandwidth average{total / number};
  std::string text = fmt::format("{}: {}", least.limit, to_text(Bandwidth{least.bandwidth}));
  if (all <= one) return {{one}, {least.bandwidth}, std::move(text)};
  if (average.value > least.bandwidth * (1 + 1e-9)) text += fmt::format(", on average {}", to_text(average));
  return {{all}, average, std::move(text)};
}

/// The first of those that limit most, also where none does.
Bound worst_of(Collective collective, const std::vector<Cut>& cuts, Bytes payload) {
  Bound worst;
  for (const Cut& cut : cuts) {
    Bound bound = bound_of(collective, cut, static_cast<double>(payload.value));
    if (worst.cut.empty() || bound.time.value > worst.time.value * (1 + 1e-9)) worst = std::move(bound);
  }
  return worst;
}

/// Links that nobody knows of would carry more over all cuts inside a host. Empty when all are known.
std::string unknown_links_of(const Cluster& cluster) {
  for (const HostGroup& group : cluster.groups) {
    if (!group.machine.gpu_links_known)
      return fmt::format("{}: which NVLinks or xGMI links its GPUs have", group.machine.name);
  }
  return {};
}

std::vector<Cut> network_cuts(const Cluster& cluster) {
  const Fabric& fabric = cluster.fabric;
  const Cut hosts = cut_into_hosts(cluster);
  const int count = cluster.host_count();
  const int domain = cluster.hosts_per_domain();
  std::vector<Cut> cuts{domain > 1 ? cut_into(hosts, count, domain, {}, "an NVLink domain") : hosts,
                        cut_into(hosts, count, fabric.hosts_per_leaf, fabric.leaf_uplink, "a leaf switch")};
  for (const Pods& pods : fabric.pods)
    cuts.push_back(cut_into(hosts, count, pods.hosts, pods.uplink, "a pod"));
  return cuts;
}

Bound bound_over(Links links, Collective collective, const Cluster& cluster, Bytes payload) {
  std::vector<Cut> cuts = network_cuts(cluster);
  const std::string unknown = unknown_links_of(cluster);
  if (unknown.empty()) {
    for (const auto grouping :
         {ranks_by_package, ranks_by_upper_switch, ranks_by_lower_switch, ranks_by_island, single_ranks}) {
      cuts.push_back(cut_by(cluster, grouping, links));
    }
  }
  Bound worst = worst_of(collective, cuts, payload);
  if (!unknown.empty() && worst.time.value == 0) worst.cut = unknown;
  return worst;
}

}  // namespace

Bound allreduce_bound(const Cluster& cluster, Bytes payload) {
  return collective_bound(Collective::allreduce, cluster, payload);
}

Bound collective_bound(Collective collective, const Cluster& cluster, Bytes payload) {
  return bound_over(Links::all, collective, cluster, payload);
}

Bound usual_bound(Collective collective, const Cluster& cluster, Bytes payload) {
  const bool pair_by_pair = collective == Collective::alltoall && cluster.domain_count() == 1 &&
                            !gpu_fabric_joins_each_pair(cluster.host(0));
  return bound_over(pair_by_pair ? Links::all : Links::usual, collective, cluster, payload);
}

Bound network_bound(const Cluster& cluster, Bytes payload) {
  return worst_of(Collective::allreduce, network_cuts(cluster), payload);
}

Bandwidth bus_bandwidth(Bytes payload, int ranks, Seconds time) {
  if (time.value <= 0) return {};
  return {static_cast<double>(payload.value) / time.value * 2 * (ranks - 1) / ranks};
}

}  // namespace polyring

#include "topology/route.hpp"

#include <algorithm>
#include <cassert>
#include <limits>
#include <utility>

#include "topology/error.hpp"

namespace polyring {
namespace {

std::size_t index(int i) { return static_cast<std::size_t>(i); }

// The resources of one host, in this order: two directions of each link, then two of each NIC.
int link_resource(int link, bool forward) { return 2 * link + (forward ? 0 : 1); }
int nic_resource(const Machine& machine, int nic, bool out) {
  return 2 * (static_cast<int>(machine.links.size()) + nic) + (out ? 0 : 1);
}
int resources_of(const Machine& machine) {
  return 2 * static_cast<int>(machine.links.size() + machine.nics.size());
}

}  // namespace

Router::Router(const Cluster& cluster) : cluster_(cluster) {
  int host = 0;
  for (int group = 0; group < static_cast<int>(cluster.groups.size()); ++group) {
    hosts_.push_back(routes_of(group));
    first_host_.push_back(host);
    first_of_group_.push_back(resource_count_);
    const int count = cluster.groups[index(group)].count;
    host += count;
    const std::int64_t next = resource_count_ + std::int64_t{count} * hosts_.back().resources;
    if (next > std::numeric_limits<int>::max() / 2)
      usage_error("{} hosts are too many to route; use fewer", count);
    resource_count_ = static_cast<int>(next);
  }
  first_leaf_ = resource_count_;
  if (cluster.fabric.hosts_per_leaf > 0) resource_count_ += 2 * (host / cluster.fabric.hosts_per_leaf + 1);
}

Router::HostRoutes Router::routes_of(int group) const {
  const Machine& machine = cluster_.groups[index(group)].machine;
  HostRoutes host;
  host.group = group;
  host.resources = resources_of(machine);
  const auto path_between = [&](DeviceId from, DeviceId to) {
    const auto path = find_path(machine, from, to);
    if (!path) {
      usage_error("{}: there is no path from {} to {}; add the missing link", machine.name,
                  machine.device_name(from), machine.device_name(to));
    }
    DevicePath result{{}, path->latency};
    for (const Hop hop : path->hops) {
      if (machine.links[index(hop.link)].bandwidth.known()) {
        result.resources.push_back(link_resource(hop.link, hop.forward));
      }
    }
    return result;
  };

  for (int from = 0; from < machine.ranks(); ++from) {
    for (int to = 0; to < machine.ranks(); ++to) {
      host.between.push_back(path_between(machine.rank_device(from), machine.rank_device(to)));
    }
  }
  for (int nic = 0; nic < static_cast<int>(machine.nics.size()); ++nic) {
    if (machine.nics[index(nic)].up()) host.nics.push_back(nic);
  }
  if (cluster_.host_count() > 1 && host.nics.empty()) {
    usage_error("{} has no network port that is up, so it cannot be one of several hosts; use one host",
                machine.name);
  }
  for (int rank = 0; rank < machine.ranks(); ++rank) {
    std::size_t fewest = std::numeric_limits<std::size_t>::max();
    std::vector<int> nearest;
    for (int i = 0; i < static_cast<int>(host.nics.size()); ++i) {
      const DeviceId nic{DeviceKind::nic, host.nics[index(i)]};
      const auto path = find_path(machine, machine.rank_device(rank), nic);
      const std::size_t hops = path ? path->hops.size() : std::numeric_limits<std::size_t>::max();
      if (hops < fewest) nearest.clear();
      fewest = std::min(fewest, hops);
      if (hops == fewest) nearest.push_back(i);
      host.to_nic.push_back(path_between(machine.rank_device(rank), nic));
      host.from_nic.push_back(path_between(nic, machine.rank_device(rank)));
      if (machine.nics[index(nic.index)].bandwidth().known()) {
        host.to_nic.back().resources.push_back(nic_resource(machine, nic.index, true));
        host.from_nic.back().resources.insert(host.from_nic.back().resources.begin(),
                                              nic_resource(machine, nic.index, false));
      }
    }
    host.nearest.push_back(std::move(nearest));
  }
  return host;
}

int Router::group_of_host(int host) const {
  const auto after = std::upper_bound(first_host_.begin(), first_host_.end(), host);
  return static_cast<int>(after - first_host_.begin()) - 1;
}

ResourceId Router::first_resource(int host, int group) const {
  return first_of_group_[index(group)] + (host - first_host_[index(group)]) * hosts_[index(group)].resources;
}

int Router::pick_nic(const HostRoutes& host, int index_on_host, int rail) const {
  if (rail >= 0) return rail % static_cast<int>(host.nics.size());
  const std::vector<int>& nearest = host.nearest[index(index_on_host)];
  return nearest[index(index_on_host) % nearest.size()];
}

Seconds Router::route(int from_rank, int to_rank, int rail, std::vector<ResourceId>& route) const {
  const Place from = cluster_.place(from_rank);
  const Place to = cluster_.place(to_rank);
  const int from_group = group_of_host(from.host);
  const HostRoutes& out = hosts_[index(from_group)];
  const ResourceId out_first = first_resource(from.host, from_group);
  const auto append = [&route](const DevicePath& path, ResourceId first) {
    for (const ResourceId resource : path.resources) route.push_back(first + resource);
    return path.latency;
  };
  if (from.host == to.host) {
    const int ranks = static_cast<int>(out.nearest.size());
    return append(out.between[index(from.index_on_host * ranks + to.index_on_host)], out_first);
  }

  const int to_group = group_of_host(to.host);
  const HostRoutes& in = hosts_[index(to_group)];
  const int out_nic = pick_nic(out, from.index_on_host, rail);
  const int in_nic = pick_nic(in, to.index_on_host, rail);
  const Fabric& fabric = cluster_.fabric;
  Seconds latency = fabric.latency;
  latency =
      latency + append(out.to_nic[index(from.index_on_host) * out.nics.size() + index(out_nic)], out_first);
  if (fabric.hosts_per_leaf > 0 && from.host / fabric.hosts_per_leaf != to.host / fabric.hosts_per_leaf) {
    latency = latency + fabric.spine_latency;
    if (fabric.leaf_uplink.known()) {
      route.push_back(first_leaf_ + 2 * (from.host / fabric.hosts_per_leaf));
      route.push_back(first_leaf_ + 2 * (to.host / fabric.hosts_per_leaf) + 1);
    }
  }
  return latency + append(in.from_nic[index(to.index_on_host) * in.nics.size() + index(in_nic)],
                          first_resource(to.host, to_group));
}

Router::Owner Router::owner(ResourceId resource) const {
  const auto after = std::upper_bound(first_of_group_.begin(), first_of_group_.end(), resource);
  const int group = static_cast<int>(after - first_of_group_.begin()) - 1;
  const int within = resource - first_of_group_[index(group)];
  const int per_host = hosts_[index(group)].resources;
  return {group, first_host_[index(group)] + within / per_host, within % per_host};
}

Bandwidth Router::bandwidth(ResourceId resource) const {
  assert(resource >= 0 && resource < resource_count_);
  if (resource >= first_leaf_) return cluster_.fabric.leaf_uplink;
  const Owner at = owner(resource);
  const Machine& machine = cluster_.groups[index(at.group)].machine;
  const std::size_t half = index(at.resource / 2);
  return half < machine.links.size() ? machine.links[half].bandwidth
                                     : machine.nics[half - machine.links.size()].bandwidth();
}

std::string Router::name(ResourceId resource) const {
  assert(resource >= 0 && resource < resource_count_);
  if (resource >= first_leaf_) {
    const int leaf = (resource - first_leaf_) / 2;
    return fmt::format("leaf switch {}: uplinks {}", leaf, (resource - first_leaf_) % 2 == 0 ? "up" : "down");
  }
  const Owner at = owner(resource);
  const Machine& machine = cluster_.groups[index(at.group)].machine;
  const std::size_t half = index(at.resource / 2);
  const bool first_direction = at.resource % 2 == 0;
  if (half >= machine.links.size()) {
    return fmt::format("host {}: {} {}", at.host, machine.nics[half - machine.links.size()].name,
                       first_direction ? "out" : "in");
  }
  const Link& link = machine.links[half];
  const DeviceId from = first_direction ? link.from : link.to;
  const DeviceId to = first_direction ? link.to : link.from;
  return fmt::format("host {}: {} -> {} ({})", at.host, machine.device_name(from), machine.device_name(to),
                     to_text(link.kind));
}

}  // namespace polyring

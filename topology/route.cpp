#include "topology/route.hpp"

#include <algorithm>
#include <cassert>
#include <limits>
#include <utility>

#include "base/error.hpp"
#include "base/index.hpp"
#include "topology/link_names.hpp"
#include "topology/rank_nics.hpp"
#include "topology/shared_links.hpp"

namespace polyring {
namespace {

/// Far more than any cluster has. Where no ranks are equal, plans are refused earlier: they have too many
/// transfers.
constexpr int kMostRoutedRanks = 1 << 21;

// The resources of one host, in this order: two directions of each link, then two of each NIC.
int link_resource(int link, bool forward) { return 2 * link + (forward ? 0 : 1); }
int nic_resource(const Machine& machine, int nic, bool out) {
  return 2 * (static_cast<int>(machine.links.size()) + nic) + (out ? 0 : 1);
}
int resources_of(const Machine& machine) {
  return 2 * static_cast<int>(machine.links.size() + machine.nics.size());
}

/// Once more across the resource.
void add(ResourceId resource, std::vector<Crossing>& crossings) {
  const auto known = std::ranges::find(crossings, resource, &Crossing::resource);
  if (known == crossings.end()) {
    crossings.push_back({resource, 1});
  } else {
    ++known->share;
  }
}

}  // namespace

std::string why_alone(const Machine& machine) {
  if (!usable_nics(machine).empty()) return {};
  if (machine.nics.empty()) return fmt::format("of {} no NIC is known", machine.name);
  return fmt::format("{} has no network port that is up", machine.name);
}

Router::Router(const Cluster& cluster) : cluster_(cluster) {
  if (cluster.ranks() > kMostRoutedRanks)
    usage_error("{} ranks are more than can be modelled; use at most {}", cluster.ranks(), kMostRoutedRanks);
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
  first_uplink_ = resource_count_;
  if (cluster.fabric.hosts_per_leaf == 0) return;
  add_uplinks(cluster.fabric.hosts_per_leaf, cluster.fabric.leaf_uplink);
  for (const Pods& pods : cluster.fabric.pods) add_uplinks(pods.hosts, pods.uplink);
}

void Router::add_uplinks(int hosts, Bandwidth bandwidth) {
  uplinks_.push_back({hosts, bandwidth, resource_count_});
  resource_count_ += 2 * (cluster_.host_count() / hosts + 1);
}

/// Adds the links of a path, those of unknown bandwidth left out.
void Router::add_links(const Machine& machine, const HostRoutes& host, const Path& path, DevicePath& route) {
  for (const Hop hop : path.hops) {
    const Link& link = machine.links[index(hop.link)];
    if (link.bandwidth.known()) {
      add(link_resource(host.physical_links[index(hop.link)], hop.forward), route.crossings);
    } else if (route.unknown.empty()) {
      route.unknown = link_name(machine, link);
    }
  }
  route.latency = std::max(route.latency, path.latency);
}

Router::HostRoutes Router::routes_of(int group) const {
  const Machine& machine = cluster_.groups[index(group)].machine;
  HostRoutes host;
  host.group = group;
  host.resources = resources_of(machine);
  host.ranks = machine.ranks();
  host.physical_links = physical_links(machine);
  for (int from = 0; from < machine.ranks(); ++from) {
    for (int to = 0; to < machine.ranks(); ++to) {
      const Path path = path_between(machine, machine.rank_device(from), machine.rank_device(to));
      add_links(machine, host, path, host.between.emplace_back());
    }
  }
  if (cluster_.hosts_per_domain() > 1) add_nvswitches(machine, host);
  if (cluster_.domain_count() > 1) add_nics(machine, host);
  return host;
}

Router::DevicePath Router::through_nics(const Machine& machine, const HostRoutes& host, int rank,
                                        const std::vector<int>& nics, bool out) {
  const DeviceId device = machine.rank_device(rank);
  DevicePath route;
  for (const int nic : nics) {
    const DeviceId id{DeviceKind::nic, nic};
    if (out) add_links(machine, host, path_between(machine, device, id), route);
    if (machine.nics[index(nic)].bandwidth().known()) {
      add(nic_resource(machine, nic, out), route.crossings);
    } else if (route.unknown.empty()) {
      route.unknown = machine.nics[index(nic)].name;
    }
    if (!out) add_links(machine, host, path_between(machine, id, device), route);
  }
  for (Crossing& crossing : route.crossings) crossing.share /= static_cast<double>(nics.size());
  return route;
}

void Router::add_nics(const Machine& machine, HostRoutes& host) const {
  const std::string alone = why_alone(machine);
  if (!alone.empty()) usage_error("{}, so it cannot be one of several hosts; use one host", alone);
  const std::vector<std::vector<int>> nics = rank_nics(machine);
  for (int rank = 0; rank < host.ranks; ++rank) {
    host.leave.push_back(through_nics(machine, host, rank, nics[index(rank)], true));
    host.enter.push_back(through_nics(machine, host, rank, nics[index(rank)], false));
  }
}

void Router::add_nvswitches(const Machine& machine, HostRoutes& host) {
  const DeviceId switches{DeviceKind::nvswitch, 0};
  for (int rank = 0; rank < host.ranks; ++rank) {
    const DeviceId gpu = machine.rank_device(rank);
    add_links(machine, host, path_between(machine, gpu, switches), host.up.emplace_back());
    add_links(machine, host, path_between(machine, switches, gpu), host.down.emplace_back());
  }
}

int Router::group_of_host(int host) const {
  const auto after = std::upper_bound(first_host_.begin(), first_host_.end(), host);
  return static_cast<int>(after - first_host_.begin()) - 1;
}

ResourceId Router::first_resource(int host, int group) const {
  return first_of_group_[index(group)] + (host - first_host_[index(group)]) * hosts_[index(group)].resources;
}

Seconds Router::append(const DevicePath& path, ResourceId first, std::vector<Crossing>& route) {
  for (const Crossing& crossing : path.crossings)
    route.push_back({first + crossing.resource, crossing.share});
  return path.latency;
}

const Router::DevicePath& Router::between(Place from, Place to) const {
  const HostRoutes& host = hosts_[index(group_of_host(from.host))];
  return host.between[index(from.index_on_host * host.ranks + to.index_on_host)];
}

const Router::DevicePath& Router::way_out(Place from, Place to) const {
  const HostRoutes& host = hosts_[index(group_of_host(from.host))];
  return (cluster_.in_one_domain(from.host, to.host) ? host.up : host.leave)[index(from.index_on_host)];
}

const Router::DevicePath& Router::way_in(Place from, Place to) const {
  const HostRoutes& host = hosts_[index(group_of_host(to.host))];
  return (cluster_.in_one_domain(from.host, to.host) ? host.down : host.enter)[index(to.index_on_host)];
}

Seconds Router::route(int from_rank, int to_rank, std::vector<Crossing>& route) const {
  const Place from = cluster_.place(from_rank);
  const Place to = cluster_.place(to_rank);
  if (from.host == to.host)
    return append(between(from, to), first_resource(from.host, group_of_host(from.host)), route);
  if (cluster_.in_one_domain(from.host, to.host)) {
    const Seconds up = append(way_out(from, to), first_resource(from.host, group_of_host(from.host)), route);
    return up + append(way_in(from, to), first_resource(to.host, group_of_host(to.host)), route);
  }
  const Fabric& fabric = cluster_.fabric;
  Seconds latency = fabric.latency + leave(from_rank, route);
  for (const Uplinks& uplinks : uplinks_) {
    if (from.host / uplinks.hosts == to.host / uplinks.hosts) break;
    if (&uplinks == &uplinks_.front()) latency = latency + fabric.spine_latency;
    cross(uplinks, from.host, true, route);
    cross(uplinks, to.host, false, route);
  }
  return latency + enter(to_rank, route);
}

Seconds Router::leave(int rank, std::vector<Crossing>& route) const {
  const Place from = cluster_.place(rank);
  const int group = group_of_host(from.host);
  return append(hosts_[index(group)].leave[index(from.index_on_host)], first_resource(from.host, group),
                route);
}

Seconds Router::enter(int rank, std::vector<Crossing>& route) const {
  const Place to = cluster_.place(rank);
  const int group = group_of_host(to.host);
  return append(hosts_[index(group)].enter[index(to.index_on_host)], first_resource(to.host, group), route);
}

void Router::cross(const Uplinks& uplinks, int host, bool up, std::vector<Crossing>& route) {
  if (uplinks.bandwidth.known())
    route.push_back({uplinks.first + 2 * (host / uplinks.hosts) + (up ? 0 : 1), 1});
}

void Router::cross_leaf(int host, bool up, std::vector<Crossing>& route) const {
  if (!uplinks_.empty()) cross(uplinks_.front(), host, up, route);
}

const Router::Uplinks& Router::uplinks_of(ResourceId resource) const {
  const auto after = std::ranges::upper_bound(uplinks_, resource, {}, &Uplinks::first);
  return *(after - 1);
}

ResourceId Router::of_link(int host, int link, bool forward) const {
  const int group = group_of_host(host);
  return first_resource(host, group) +
         link_resource(hosts_[index(group)].physical_links[index(link)], forward);
}

ResourceId Router::of_nic(int host, int nic, bool out) const {
  const int group = group_of_host(host);
  return first_resource(host, group) + nic_resource(cluster_.groups[index(group)].machine, nic, out);
}

Router::Home Router::home(ResourceId resource) const {
  if (resource < first_uplink_) {
    const Owner of = owner(resource);
    return {kHost, of.host, of.resource};
  }
  const Uplinks& uplinks = uplinks_of(resource);
  const int within = resource - uplinks.first;
  return {static_cast<int>(&uplinks - uplinks_.data()), within / 2, within % 2};
}

ResourceId Router::at(const Home& home) const {
  if (home.level == kHost) return first_resource(home.place, group_of_host(home.place)) + home.resource;
  return uplinks_[index(home.level)].first + 2 * home.place + home.resource;
}

std::vector<int> Router::hosts_per_level() const {
  std::vector<int> hosts;
  for (const Uplinks& uplinks : uplinks_) hosts.push_back(uplinks.hosts);
  return hosts;
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
  if (resource >= first_uplink_) return uplinks_of(resource).bandwidth;
  const Owner at = owner(resource);
  const Machine& machine = cluster_.groups[index(at.group)].machine;
  const std::size_t half = index(at.resource / 2);
  return half < machine.links.size() ? machine.links[half].bandwidth
                                     : machine.nics[half - machine.links.size()].bandwidth();
}

const std::string& Router::first_unknown(const std::vector<DevicePath>& paths) {
  static const std::string kNone;
  const auto found =
      std::ranges::find_if(paths, [](const DevicePath& path) { return !path.unknown.empty(); });
  return found == paths.end() ? kNone : found->unknown;
}

const std::string& Router::HostRoutes::unknown_between() const { return first_unknown(between); }

const std::string& Router::HostRoutes::unknown() const {
  for (const std::vector<DevicePath>* paths : {&between, &leave, &up}) {
    const std::string& found = first_unknown(*paths);
    if (!found.empty()) return found;
  }
  return first_unknown(enter);
}

std::string Router::sentence(int group, const std::string& unknown) const {
  return fmt::format("{}: the speed of {} is unknown", cluster_.groups[index(group)].machine.name, unknown);
}

std::string Router::unknown_speed() const {
  for (const HostRoutes& host : hosts_) {
    if (!host.unknown().empty()) return sentence(host.group, host.unknown());
  }
  return {};
}

std::string Router::unknown_speed_in_hosts() const {
  for (const HostRoutes& host : hosts_) {
    if (!host.unknown_between().empty()) return sentence(host.group, host.unknown_between());
  }
  return {};
}

std::string Router::unknown_speed(int from_rank, int to_rank) const {
  const Place from = cluster_.place(from_rank);
  const Place to = cluster_.place(to_rank);
  const int group = group_of_host(from.host);
  const int other = group_of_host(to.host);
  const bool in_host = from.host == to.host;
  const DevicePath& first = in_host ? between(from, to) : way_out(from, to);
  if (!first.unknown.empty()) return sentence(group, first.unknown);
  if (in_host) return {};
  const DevicePath& last = way_in(from, to);
  return last.unknown.empty() ? std::string() : sentence(other, last.unknown);
}

std::string Router::name(ResourceId resource) const {
  assert(resource >= 0 && resource < resource_count_);
  if (resource >= first_uplink_) {
    const Uplinks& uplinks = uplinks_of(resource);
    const int within = resource - uplinks.first;
    return fmt::format("{} {}: uplinks {}",
                       &uplinks == &uplinks_.front() ? std::string("leaf switch")
                                                     : fmt::format("pod of {} hosts", uplinks.hosts),
                       within / 2, within % 2 == 0 ? "up" : "down");
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
  const std::string from = first_end(machine, link);
  const std::string to = machine.device_name(link.to);
  return fmt::format("host {}: {} -> {} ({})", at.host, first_direction ? from : to,
                     first_direction ? to : from, to_text(link.kind));
}

}  // namespace polyring

#include "collectives/bound.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "topology/path.hpp"

namespace polyring {
namespace {

std::size_t index(int i) { return static_cast<std::size_t>(i); }

/// A cut of the cluster into parts, by the bandwidth that joins each kind of part to the rest.
struct Cut {
  std::string noun;  // "hosts, each with"
  int parts = 0;
  double total = 0;  // of all parts
  double least = std::numeric_limits<double>::infinity();
  bool known = true;

  void add(double bandwidth, int number) {
    known = known && bandwidth > 0;
    parts += number;
    total += bandwidth * number;
    least = std::min(least, bandwidth);
  }
};

/// What a NIC can move: the least of its ports and its PCIe link; 0 when its ports are unknown.
double nic_bandwidth(const Machine& machine, int nic) {
  double bandwidth = machine.nics[index(nic)].bandwidth().value;
  const DeviceId id{DeviceKind::nic, nic};
  for (const Link& link : machine.links) {
    if ((link.from == id || link.to == id) && link.bandwidth.known()) {
      bandwidth = std::min(bandwidth, link.bandwidth.value);
    }
  }
  return bandwidth;
}

/// The NICs of the given package (all for -1), 0 when one that is up is of unknown speed.
double nics_bandwidth(const Machine& machine, const std::vector<int>& package_of_nic, int package) {
  double total = 0;
  for (int nic = 0; nic < static_cast<int>(machine.nics.size()); ++nic) {
    if (!machine.nics[index(nic)].up() || (package >= 0 && package_of_nic[index(nic)] != package)) continue;
    const double bandwidth = nic_bandwidth(machine, nic);
    if (bandwidth <= 0) return std::numeric_limits<double>::quiet_NaN();
    total += bandwidth;
  }
  return total;
}

/// The package that each device of a kind is nearest to, by the host's own links.
std::vector<int> nearest_packages(const Machine& machine, DeviceKind kind, int number) {
  std::vector<int> nearest(index(number), 0);
  for (int device = 0; device < number; ++device) {
    std::size_t fewest = std::numeric_limits<std::size_t>::max();
    for (int package = 0; package < static_cast<int>(machine.packages.size()); ++package) {
      const auto path = find_path(machine, {kind, device}, {DeviceKind::package, package});
      if (path && path->hops.size() < fewest) {
        fewest = path->hops.size();
        nearest[index(device)] = package;
      }
    }
  }
  return nearest;
}

/// The links that join the devices for which `inside` holds to the others, of those that `counts` names; NaN
/// when one of them is unknown.
template <typename Inside, typename Counts>
double crossing(const Machine& machine, Inside inside, Counts counts) {
  double total = 0;
  for (const Link& link : machine.links) {
    if (!counts(link) || inside(link.from) == inside(link.to)) continue;
    total += link.bandwidth.known() ? link.bandwidth.value : std::numeric_limits<double>::quiet_NaN();
  }
  return total;
}

/// NaN marks a cut that an unknown bandwidth crosses: the whole cut is left out.
void add(Cut& cut, double bandwidth, int number) { cut.add(std::isnan(bandwidth) ? 0 : bandwidth, number); }

void add_ranks(Cut& cut, const HostGroup& group) {
  for (int gpu = 0; gpu < static_cast<int>(group.machine.gpus.size()); ++gpu) {
    const DeviceId id{DeviceKind::gpu, gpu};
    const auto inside = [&](DeviceId device) { return device == id; };
    add(cut, crossing(group.machine, inside, [](const Link&) { return true; }), group.count);
  }
  cut.known = cut.known && !group.machine.gpus.empty();
}

void add_packages(Cut& cut, const HostGroup& group, bool several_hosts) {
  const Machine& machine = group.machine;
  const auto of_gpu = nearest_packages(machine, DeviceKind::gpu, static_cast<int>(machine.gpus.size()));
  const auto of_nic = nearest_packages(machine, DeviceKind::nic, static_cast<int>(machine.nics.size()));
  for (int package = 0; package < static_cast<int>(machine.packages.size()); ++package) {
    if (std::find(of_gpu.begin(), of_gpu.end(), package) == of_gpu.end()) continue;
    const auto inside = [&](DeviceId device) {
      if (device.kind == DeviceKind::package) return device.index == package;
      return device.kind == DeviceKind::gpu && of_gpu[index(device.index)] == package;
    };
    // A PCIe switch or NIC hangs under one package: only buses and GPU links leave it inside the host.
    double leaving = crossing(machine, inside, [](const Link& link) { return link.kind != LinkKind::pcie; });
    if (several_hosts) leaving += nics_bandwidth(machine, of_nic, package);
    add(cut, leaving, group.count);
  }
}

Bound bound_of(const Cut& cut, double payload) {
  if (cut.parts < 2 || !cut.known) return {};
  // Every element crosses between m parts at least 2(m − 1) times in all, and leaves each part at least once.
  const double all = 2 * (cut.parts - 1) * payload / cut.total;
  const double one = payload / cut.least;
  const Bandwidth bandwidth{all >= one ? cut.total / cut.parts : cut.least};
  return {{std::max(all, one)}, bandwidth, fmt::format("{} {} {}", cut.parts, cut.noun, to_text(bandwidth))};
}

}  // namespace

Bound allreduce_bound(const Cluster& cluster, Bytes payload) {
  const bool several_hosts = cluster.host_count() > 1;
  Cut ranks{"GPUs, each joined by"};
  Cut packages{"sockets, each joined by"};
  Cut hosts{"hosts, each with NICs of"};
  double host_total = 0;
  for (const HostGroup& group : cluster.groups) {
    add_ranks(ranks, group);
    add_packages(packages, group, several_hosts);
    const double nics = nics_bandwidth(group.machine, {}, -1);
    add(hosts, nics, group.count);
    host_total += nics * group.count;
  }
  std::vector<Cut> cuts{ranks, packages, hosts};
  const Fabric& fabric = cluster.fabric;
  if (fabric.hosts_per_leaf > 0 && fabric.leaf_uplink.known() &&
      cluster.host_count() > fabric.hosts_per_leaf) {
    const int leaves = (cluster.host_count() + fabric.hosts_per_leaf - 1) / fabric.hosts_per_leaf;
    Cut leaf{"leaf switches, each with uplinks of"};
    add(leaf, std::min(fabric.leaf_uplink.value, host_total / leaves), leaves);
    cuts.push_back(leaf);
  }

  Bound worst;
  for (const Cut& cut : cuts) {
    const Bound bound = bound_of(cut, static_cast<double>(payload.value));
    if (bound.time > worst.time) worst = bound;
  }
  return worst;
}

}  // namespace polyring

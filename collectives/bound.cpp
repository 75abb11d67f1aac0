#include "collectives/bound.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <vector>

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

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

/// What a NIC can move: the least of its ports and its links into the host; NaN when its ports are unknown.
/// Links of unknown speed constrain nothing.
double nic_bandwidth(const Machine& machine, int nic) {
  const DeviceId id{DeviceKind::nic, nic};
  double links = 0;
  for (const Link& link : machine.links) {
    if (link.from != id && link.to != id) continue;
    links += link.bandwidth.known() ? link.bandwidth.value : std::numeric_limits<double>::infinity();
  }
  const double ports = machine.nics[index(nic)].bandwidth().value;
  return ports > 0 ? std::min(ports, links) : kUnknown;
}

/// All NICs that are up and for which `counts` holds; NaN when one of them is of unknown speed.
template <typename Counts>
double nics_bandwidth(const Machine& machine, Counts counts) {
  double total = 0;
  for (int nic = 0; nic < static_cast<int>(machine.nics.size()); ++nic) {
    if (machine.nics[index(nic)].up() && counts(nic)) total += nic_bandwidth(machine, nic);
  }
  return total;
}

/// The devices that hang under this package alone: reached from it, and from no other, over PCIe switches.
std::set<DeviceId> devices_under(const Machine& machine, int package) {
  const auto reach = [&machine](int from) {
    std::set<DeviceId> reached{{DeviceKind::package, from}};
    std::vector<DeviceId> next{{DeviceKind::package, from}};
    while (!next.empty()) {
      const DeviceId at = next.back();
      next.pop_back();
      for (const Link& link : machine.links) {
        if (link.from != at && link.to != at) continue;
        const DeviceId other = link.from == at ? link.to : link.from;
        if (other.kind == DeviceKind::package || !reached.insert(other).second) continue;
        if (other.kind == DeviceKind::pci_switch) next.push_back(other);
      }
    }
    return reached;
  };
  std::set<DeviceId> own = reach(package);
  for (int other = 0; other < static_cast<int>(machine.packages.size()); ++other) {
    if (other == package) continue;
    for (const DeviceId shared : reach(other)) own.erase(shared);
  }
  return own;
}

/// The links that join the devices for which `inside` holds to the others; NaN when one of them is of unknown
/// speed.
template <typename Inside>
double crossing(const Machine& machine, Inside inside) {
  double total = 0;
  for (const Link& link : machine.links) {
    if (inside(link.from) == inside(link.to)) continue;
    total += link.bandwidth.known() ? link.bandwidth.value : kUnknown;
  }
  return total;
}

/// NaN marks a cut that an unknown bandwidth crosses: the whole cut is left out.
void add(Cut& cut, double bandwidth, int number) { cut.add(std::isnan(bandwidth) ? 0 : bandwidth, number); }

void add_ranks(Cut& cut, const HostGroup& group) {
  for (int gpu = 0; gpu < static_cast<int>(group.machine.gpus.size()); ++gpu) {
    const DeviceId id{DeviceKind::gpu, gpu};
    add(cut, crossing(group.machine, [&](DeviceId device) { return device == id; }), group.count);
  }
  cut.known = cut.known && !group.machine.gpus.empty();
}

void add_packages(Cut& cut, const HostGroup& group, bool several_hosts) {
  const Machine& machine = group.machine;
  std::size_t gpus = 0;
  for (int package = 0; package < static_cast<int>(machine.packages.size()); ++package) {
    const std::set<DeviceId> own = devices_under(machine, package);
    const auto inside = [&own](DeviceId device) { return own.contains(device); };
    const auto own_gpus =
        std::count_if(own.begin(), own.end(), [](DeviceId id) { return id.kind == DeviceKind::gpu; });
    if (own_gpus == 0) continue;
    gpus += static_cast<std::size_t>(own_gpus);
    double leaving = crossing(machine, inside);
    if (several_hosts) {
      leaving += nics_bandwidth(machine, [&](int nic) { return inside({DeviceKind::nic, nic}); });
    }
    add(cut, leaving, group.count);
  }
  // The parts of a cut must hold all ranks.
  cut.known = cut.known && gpus == machine.gpus.size();
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
    const double nics = nics_bandwidth(group.machine, [](int) { return true; });
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

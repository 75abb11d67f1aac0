#include "topology/cluster.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <utility>

#include "base/error.hpp"

namespace polyring {
namespace {

/// Far more than any cluster has; keeps sums over ranks within an int.
constexpr std::int64_t kMostRanks = 100'000'000;

bool hangs_on_nvswitch(const Machine& machine, int gpu) {
  return std::ranges::any_of(machine.links, [&](const Link& link) {
    const bool up = link.from == DeviceId{DeviceKind::gpu, gpu} && link.to.kind == DeviceKind::nvswitch;
    const bool down = link.to == DeviceId{DeviceKind::gpu, gpu} && link.from.kind == DeviceKind::nvswitch;
    return link.kind == LinkKind::nvlink && (up || down);
  });
}

void validate_domains(const Cluster& cluster) {
  const Fabric& fabric = cluster.fabric;
  const int hosts = fabric.hosts_per_nvlink_domain;
  if (hosts < 0) {
    usage_error("cluster '{}': {} hosts in an NVLink domain; give 0 (none) or more", cluster.name, hosts);
  }
  if (hosts < 2) return;
  for (const HostGroup& group : cluster.groups) {
    const Machine& machine = group.machine;
    if (machine.nvswitches != 1 || machine.gpus.empty()) {
      usage_error(
          "cluster '{}': hosts of an NVLink domain need GPUs and nvswitches: 1, which stands for all "
          "NVSwitches "
          "of the domain, and '{}' has {} GPUs and {} NVSwitches",
          cluster.name, machine.name, machine.gpus.size(), machine.nvswitches);
    }
    for (int gpu = 0; gpu < machine.ranks(); ++gpu) {
      if (!hangs_on_nvswitch(machine, gpu)) {
        usage_error("cluster '{}': gpu{} of '{}' has no NVLink to the NVSwitches of its domain; add it",
                    cluster.name, gpu, machine.name);
      }
    }
  }
  const auto cuts_domains = [&](int of) { return of % hosts != 0; };
  if (cuts_domains(fabric.hosts_per_leaf) || std::ranges::any_of(fabric.pods, cuts_domains, &Pods::hosts)) {
    usage_error("cluster '{}': leaves or pods part the {} hosts of an NVLink domain; give them whole domains",
                cluster.name, hosts);
  }
}

void validate_fabric(const Cluster& cluster) {
  const Fabric& fabric = cluster.fabric;
  if (fabric.hosts_per_leaf < 0) {
    usage_error("cluster '{}': {} hosts per leaf switch; give 0 (one switch) or more", cluster.name,
                fabric.hosts_per_leaf);
  }
  if (!std::isfinite(fabric.leaf_uplink.value) || fabric.leaf_uplink.value < 0) {
    usage_error("cluster '{}': the leaf uplink is {} B/s; give a finite number of 0 (never blocks) or above",
                cluster.name, fabric.leaf_uplink.value);
  }
  // Fabrics of five levels of switches are built, but hardly larger ones.
  constexpr std::size_t kMostPods = 4;
  if (fabric.pods.size() > kMostPods) {
    usage_error("cluster '{}': {} levels of pods; give at most {}", cluster.name, fabric.pods.size(),
                kMostPods);
  }
  int below = std::max(1, fabric.hosts_per_leaf);
  for (const Pods& pods : fabric.pods) {
    if (fabric.hosts_per_leaf == 0 || pods.hosts <= below) {
      usage_error(
          "cluster '{}': pods of {} hosts above leaves or pods of {}; give larger ones, the smaller first",
          cluster.name, pods.hosts, fabric.hosts_per_leaf == 0 ? 0 : below);
    }
    if (!std::isfinite(pods.uplink.value) || pods.uplink.value < 0) {
      usage_error(
          "cluster '{}': the uplink of a pod is {} B/s; give a finite number of 0 (never blocks) or above",
          cluster.name, pods.uplink.value);
    }
    below = pods.hosts;
  }
  for (const Seconds latency : {fabric.latency, fabric.spine_latency}) {
    if (!std::isfinite(latency.value) || latency.value < 0) {
      usage_error("cluster '{}': a fabric latency is {} s; give a finite number of 0 or above", cluster.name,
                  latency.value);
    }
  }
}

}  // namespace

int Cluster::host_count() const {
  int hosts = 0;
  for (const HostGroup& group : groups) hosts += group.count;
  return hosts;
}

const Machine& Cluster::host(int index) const {
  assert(index >= 0 && index < host_count());
  auto group = groups.begin();
  while (index >= group->count) {
    index -= group->count;
    ++group;
  }
  return group->machine;
}

int Cluster::ranks() const {
  int ranks = 0;
  for (const HostGroup& group : groups) ranks += group.count * group.machine.ranks();
  return ranks;
}

Place Cluster::place(int rank) const {
  assert(rank >= 0 && rank < ranks());
  int first_host = 0;
  for (const HostGroup& group : groups) {
    const int per_host = group.machine.ranks();
    if (rank < group.count * per_host) return {first_host + rank / per_host, rank % per_host};
    rank -= group.count * per_host;
    first_host += group.count;
  }
  return {};
}

void Cluster::validate() const {
  std::int64_t all_ranks = 0;
  if (groups.empty()) usage_error("cluster '{}' has no hosts; add one", name);
  for (const HostGroup& group : groups) {
    if (group.count < 1) {
      usage_error("cluster '{}': {} hosts like '{}'; give 1 or more", name, group.count, group.machine.name);
    }
    group.machine.validate();
    all_ranks += std::int64_t{group.count} * group.machine.ranks();
  }
  if (all_ranks > kMostRanks) {
    usage_error("cluster '{}' has {} ranks; give at most {}", name, all_ranks, kMostRanks);
  }
  validate_fabric(*this);
  validate_domains(*this);
}

int Cluster::hosts_per_domain() const { return std::clamp(fabric.hosts_per_nvlink_domain, 1, host_count()); }

int Cluster::domain_count() const {
  const int hosts = hosts_per_domain();
  return (host_count() + hosts - 1) / hosts;
}

bool Cluster::in_one_domain(int host, int other) const {
  const int hosts = std::max(1, fabric.hosts_per_nvlink_domain);
  return host / hosts == other / hosts;
}

int Cluster::ranks_per_domain() const {
  int ranks = 0;
  for (int host = 0; host < hosts_per_domain(); ++host) ranks += this->host(host).ranks();
  return ranks;
}

bool Cluster::domains_are_equal() const {
  const auto as_first = [&](const HostGroup& group) { return group.machine.ranks() == host(0).ranks(); };
  return host_count() % hosts_per_domain() == 0 && std::ranges::all_of(groups, as_first);
}

Cluster cluster_of(Machine machine, int hosts) {
  if (hosts < 1) usage_error("{} hosts like '{}'; give 1 or more", hosts, machine.name);
  Cluster cluster;
  cluster.name = machine.name;
  cluster.groups = {{std::move(machine), hosts}};
  cluster.fabric.citations = {
      {"one switch that blocks nothing and takes no time", "assumed: the fabric is unknown"}};
  return cluster;
}

Cluster one_domain(const Cluster& cluster, Machine machine) {
  Cluster alone = cluster_of(std::move(machine), cluster.hosts_per_domain());
  alone.fabric.hosts_per_nvlink_domain = cluster.fabric.hosts_per_nvlink_domain;
  return alone;
}

}  // namespace polyring

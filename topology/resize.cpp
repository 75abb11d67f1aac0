#include "topology/resize.hpp"

#include <numeric>
#include <vector>

#include "base/error.hpp"
#include "topology/rank_gpus.hpp"

namespace polyring {

namespace {

/// The least number of NVLink domains with equally many hosts, where they are at least half full.
void fill_domains_evenly(Fabric& fabric, int hosts) {
  const int most = fabric.hosts_per_nvlink_domain;
  if (most < 2 || hosts <= most) return;
  for (int domains = (hosts + most - 1) / most; 2 * hosts >= domains * most; ++domains) {
    if (hosts % domains != 0) continue;
    const int each = hosts / domains;
    const auto refill = [&](int& of) { of = of / most * each; };
    refill(fabric.hosts_per_leaf);
    for (Pods& pods : fabric.pods) refill(pods.hosts);
    fabric.hosts_per_nvlink_domain = each;
    return;
  }
}

}  // namespace

Machine with_gpus(const Machine& machine, int gpus) {
  std::vector<int> first(static_cast<std::size_t>(gpus));
  std::iota(first.begin(), first.end(), 0);
  return with_gpus(machine, first);
}

Cluster with_ranks(const Cluster& cluster, int ranks) {
  if (ranks < 1) usage_error("{} ranks are impossible; give 1 or more", ranks);
  if (ranks == cluster.ranks()) return cluster;
  const Machine& host = cluster.host(0);
  const int per_host = host.ranks();
  Cluster resized = cluster;
  if (ranks < per_host) {
    resized.groups = {{with_gpus(host, ranks), 1}};
  } else if (ranks % per_host == 0) {
    resized.groups = {{host, ranks / per_host}};
    fill_domains_evenly(resized.fabric, ranks / per_host);
  } else {
    usage_error("{} ranks do not fill hosts of {}; use a multiple of {}", ranks, per_host, per_host);
  }
  resized.validate();
  return resized;
}

}  // namespace polyring

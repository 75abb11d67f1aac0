#include "topology/resize.hpp"

#include <numeric>
#include <vector>

#include "base/error.hpp"
#include "topology/rank_gpus.hpp"

namespace polyring {

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
  } else {
    usage_error("{} ranks do not fill hosts of {}; use a multiple of {}", ranks, per_host, per_host);
  }
  resized.validate();
  return resized;
}

}  // namespace polyring

// The hosts of a running job as its ranks use them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "topology/cluster.hpp"

namespace polyring {

/// The ranks of one host.
struct HostRanks {
  int ranks = 0;
  std::vector<std::string> gpus{};  // bus addresses of the ranks' GPUs; empty: the data are in host memory

  bool operator==(const HostRanks&) const = default;
};

/// The cluster with these ranks, host after host: on their GPUs where they have some, and without all other
/// GPUs; else as processes, whose data are in host memory, and without any GPU. Throws a usage Error that
/// begins with `what` where there are more or fewer hosts than the cluster has, and where links between GPUs
/// cannot be told: their host does not know them or a GPU, or two ranks have the same one.
Cluster with_ranks_of(Cluster cluster, std::span<const HostRanks> hosts, const std::string& what);

}  // namespace polyring

// A job's hosts as its ranks' data see them.
#pragma once

#include <string>
#include <vector>

#include "base/units.hpp"
#include "collectives/runtime/world.hpp"
#include "reports/result.hpp"
#include "topology/cluster.hpp"

namespace polyring {

/// The hosts, and which rank has which.
struct JobHosts {
  Cluster cluster;                  // on rank 0
  std::vector<RankHost> placement;  // with the ranks' GPUs where data are on these
};

/// This host with its GPUs, as a message for gpu_hosts(). To be called before MPI is started, see
/// probe_own_host().
std::string probe_with_gpus(Seconds limit);

/// Collective. Which rank is on which host, and which GPU it has: `own_gpu` is the bus address of this
/// rank's.
std::vector<RankHost> gpu_placement(const World& world, const std::string& own_gpu);

/// Collective. The hosts with their GPUs. `own_gpu` is the bus address of this rank's, and `own_host` what
/// probe_with_gpus() said. Throws on rank 0 for a host that could not be probed.
JobHosts gpu_hosts(const World& world, const std::string& own_gpu, const std::string& own_host);

}  // namespace polyring

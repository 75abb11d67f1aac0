// The hosts on which a result was measured.
#pragma once

#include <span>
#include <string>

#include "collectives/runtime/world.hpp"
#include "reports/result.hpp"
#include "topology/cluster.hpp"

namespace polyring {

/// This job's hosts, each as it is, as an allreduce in host memory sees them: their GPUs and the links to
/// them are not in its way. Collective; other ranks than 0 get a cluster without hosts. Throws on rank 0 for
/// a host that cannot be probed.
Cluster host_memory_cluster(const World& world);

/// The same as an allreduce among GPUs sees them: with all that the hosts' own probes found before MPI was
/// started; `own_host` is what probe_own_host() said of this one.
Cluster gpu_cluster(const World& world, const std::string& own_host);

/// Whether the ranks' data are on GPUs.
bool on_gpus(std::span<const RankHost> placement);

/// The cluster with the ranks that `placement` puts on its hosts, as in ranks_on_hosts.hpp. Throws a usage
/// Error that begins with `what` also where ranks of a host are not numbered one after another.
Cluster with_ranks_of(Cluster cluster, std::span<const RankHost> placement, const std::string& what);

/// As the result describes them, with the ranks that it placed on each. `file` names it in errors. Throws
/// a usage Error when it does not say what the machine was, and as with_ranks_of() and parse_probe_json() do.
Cluster cluster_of_run(const ResultFile& result, const std::string& file);

}  // namespace polyring

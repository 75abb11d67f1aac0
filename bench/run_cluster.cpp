#include "bench/run_cluster.hpp"

#include <fmt/format.h>

#include <set>
#include <vector>

#include "bench/emulation.hpp"
#include "topology/error.hpp"
#include "topology/formats/probe_json.hpp"
#include "topology/probe.hpp"
#include "topology/processes.hpp"

namespace polyring {
namespace {

/// Processes by host, host after host.
std::vector<int> processes_by_host(std::span<const RankHost> placement, const std::string& what) {
  std::vector<int> processes;
  std::set<std::string> seen;
  const std::string* host = nullptr;
  for (const RankHost& place : placement) {
    if (host == nullptr || *host != place.host) {
      if (!seen.insert(place.host).second) {
        usage_error(
            "{}: the ranks of {} are not numbered one after another, so links cannot be told apart; run "
            "with the ranks host after host",
            what, place.host);
      }
      processes.push_back(0);
      host = &place.host;
    }
    ++processes.back();
  }
  return processes;
}

}  // namespace

Cluster host_memory_cluster(const MpiWorld& world) {
  Cluster cluster = cluster_of(probe_without_gpus(), world.nodes());
  describe_emulated_network(cluster);
  return cluster;
}

Cluster with_ranks_of(Cluster cluster, std::span<const RankHost> placement, const std::string& what) {
  const std::vector<int> processes = processes_by_host(placement, what);
  if (static_cast<int>(processes.size()) != cluster.host_count()) {
    usage_error("{}: its ranks ran on {} hosts, and its machine has {}; it is damaged, run it again", what,
                processes.size(), cluster.host_count());
  }
  std::vector<HostGroup> groups;
  for (int host = 0; host < static_cast<int>(processes.size()); ++host) {
    const int count = processes[static_cast<std::size_t>(host)];
    if (!groups.empty() && groups.back().machine.ranks() == count && cluster.groups.size() == 1) {
      ++groups.back().count;
    } else {
      groups.push_back({with_processes(cluster.host(host), count), 1});
    }
  }
  cluster.groups = std::move(groups);
  cluster.validate();
  return cluster;
}

Cluster cluster_of_run(const ResultFile& result, const std::string& file) {
  if (result.machine == "null") usage_error("'{}' does not say which machine it ran on; run it again", file);
  return with_ranks_of(parse_probe_json(result.machine, file), result.placement, fmt::format("'{}'", file));
}

}  // namespace polyring

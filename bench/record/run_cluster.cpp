#include "bench/record/run_cluster.hpp"

#include <fmt/format.h>

#include <set>
#include <vector>

#include "base/error.hpp"
#include "bench/record/emulation.hpp"
#include "bench/record/gather_probes.hpp"
#include "bench/session/collective.hpp"
#include "topology/inventory/formats/probe_json.hpp"
#include "topology/inventory/probe.hpp"
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

Cluster host_memory_cluster(const World& world) {
  const auto probe = [] {
    Machine machine = probe_without_gpus();
    give_emulated_link(machine);
    return machine;
  };
  Inventory hosts = gather_probes(world, world.is_first_of_host() ? probe_message(probe) : "");
  on_root(world, [&hosts] {
    for (const UnprobedHost& host : hosts.unprobed) {
      throw Error(ExitCode::not_available, fmt::format("{} could not be probed: {}", host.name, host.why));
    }
    describe_emulated_fabric(hosts.cluster);
  });
  return std::move(hosts.cluster);
}

Cluster with_ranks_of(Cluster cluster, std::span<const RankHost> placement, const std::string& what) {
  const std::vector<int> processes = processes_by_host(placement, what);
  if (static_cast<int>(processes.size()) != cluster.host_count()) {
    usage_error("{}: its ranks ran on {} hosts, and its machine has {}; it is damaged, run it again", what,
                processes.size(), cluster.host_count());
  }
  std::vector<HostGroup> groups;
  auto next = processes.begin();
  for (const HostGroup& group : cluster.groups) {
    for (int host = 0; host < group.count; ++host, ++next) {
      if (host > 0 && groups.back().machine.ranks() == *next) {
        ++groups.back().count;
      } else {
        groups.push_back({with_processes(group.machine, *next), 1});
      }
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

#include "bench/record/run_cluster.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "base/error.hpp"
#include "bench/record/emulation.hpp"
#include "bench/record/gather_probes.hpp"
#include "bench/session/collective.hpp"
#include "topology/inventory/formats/probe_json.hpp"
#include "topology/inventory/probe.hpp"
#include "topology/processes.hpp"
#include "topology/rank_gpus.hpp"

namespace polyring {
namespace {

struct HostRanks {
  int ranks = 0;
  std::vector<std::string> gpus{};  // theirs; empty: they are processes

  bool operator==(const HostRanks&) const = default;
};

/// Host after host.
std::vector<HostRanks> ranks_by_host(std::span<const RankHost> placement, const std::string& what) {
  std::vector<HostRanks> hosts;
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
      hosts.emplace_back();
      host = &place.host;
    }
    ++hosts.back().ranks;
    if (place.gpu) hosts.back().gpus.push_back(*place.gpu);
  }
  return hosts;
}

Machine with_ranks_of(const Machine& host, const HostRanks& ranks, const std::string& what) {
  if (ranks.gpus.empty()) return with_processes(host, ranks.ranks);
  if (!host.gpu_links_known) {
    usage_error("{}: the NVLinks of {} are not known; see what polyring probe says of NVML there", what,
                host.name);
  }
  std::vector<int> gpus;
  for (const std::string& pci : ranks.gpus) {
    const auto gpu = gpu_at(host, pci);
    if (!gpu)
      usage_error("{}: {} has no GPU {} that is known; see what polyring probe finds there", what, host.name,
                  pci);
    if (std::ranges::find(gpus, *gpu) != gpus.end())
      usage_error("{}: ranks share GPU {} of {}, so links cannot be told apart; give each rank its own", what,
                  pci, host.name);
    gpus.push_back(*gpu);
  }
  return with_gpus(host, gpus);
}

Cluster probed_cluster(const World& world, const std::string& own_host) {
  Inventory hosts = gather_probes(world, own_host);
  on_root(world, [&hosts] {
    for (const UnprobedHost& host : hosts.unprobed) {
      throw Error(ExitCode::not_available, fmt::format("{} could not be probed: {}", host.name, host.why));
    }
    describe_emulated_fabric(hosts.cluster);
  });
  return std::move(hosts.cluster);
}

}  // namespace

Cluster host_memory_cluster(const World& world) {
  const auto probe = [] {
    Machine machine = probe_without_gpus();
    give_emulated_link(machine);
    return machine;
  };
  return probed_cluster(world, world.is_first_of_host() ? probe_message(probe) : "");
}

Cluster gpu_cluster(const World& world, const std::string& own_host) {
  return probed_cluster(world, own_host);
}

bool on_gpus(std::span<const RankHost> placement) {
  return std::ranges::any_of(placement, [](const RankHost& place) { return place.gpu.has_value(); });
}

Cluster with_ranks_of(Cluster cluster, std::span<const RankHost> placement, const std::string& what) {
  const std::vector<HostRanks> hosts = ranks_by_host(placement, what);
  if (static_cast<int>(hosts.size()) != cluster.host_count()) {
    usage_error("{}: its ranks ran on {} hosts, and its machine has {}; it is damaged, run it again", what,
                hosts.size(), cluster.host_count());
  }
  std::vector<HostGroup> groups;
  auto next = hosts.begin();
  for (const HostGroup& group : cluster.groups) {
    for (int host = 0; host < group.count; ++host, ++next) {
      if (host > 0 && *next == *std::prev(next)) {
        ++groups.back().count;
      } else {
        groups.push_back({with_ranks_of(group.machine, *next, what), 1});
      }
    }
  }
  cluster.groups = std::move(groups);
  const bool processes = std::ranges::any_of(
      cluster.groups, [](const HostGroup& group) { return has_processes(group.machine); });
  if (processes) cluster.fabric.hosts_per_nvlink_domain = 0;  // host memory hangs on no NVSwitch
  cluster.validate();
  return cluster;
}

Cluster cluster_of_run(const ResultFile& result, const std::string& file) {
  if (result.machine == "null") usage_error("'{}' does not say which machine it ran on; run it again", file);
  return with_ranks_of(parse_probe_json(result.machine, file), result.placement, fmt::format("'{}'", file));
}

}  // namespace polyring

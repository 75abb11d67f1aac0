#include "bench/record/run_cluster.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/error.hpp"
#include "bench/record/emulation.hpp"
#include "bench/record/gather_probes.hpp"
#include "bench/session/collective.hpp"
#include "topology/inventory/formats/probe_json.hpp"
#include "topology/inventory/probe.hpp"
#include "topology/ranks_on_hosts.hpp"

namespace polyring {
namespace {

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
  return with_ranks_of(std::move(cluster), ranks_by_host(placement, what), what);
}

Cluster cluster_of_run(const ResultFile& result, const std::string& file) {
  if (result.machine == "null") usage_error("'{}' does not say which machine it ran on; run it again", file);
  return with_ranks_of(parse_probe_json(result.machine, file), result.placement, fmt::format("'{}'", file));
}

}  // namespace polyring

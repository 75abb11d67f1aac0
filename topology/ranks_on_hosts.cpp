#include "topology/ranks_on_hosts.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/error.hpp"
#include "topology/processes.hpp"
#include "topology/rank_gpus.hpp"

namespace polyring {
namespace {

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

}  // namespace

Cluster with_ranks_of(Cluster cluster, std::span<const HostRanks> hosts, const std::string& what) {
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

}  // namespace polyring

#include "bench/accept/site.hpp"

#include "base/error.hpp"
#include "base/index.hpp"
#include "bench/record/emulation.hpp"
#include "bench/record/gather_probes.hpp"
#include "bench/record/record.hpp"
#include "bench/record/run_cluster.hpp"
#include "bench/session/collective.hpp"
#include "topology/processes.hpp"

namespace polyring {
namespace {

Cluster cluster_of_ranks(const Inventory& inventory, const World& world) {
  if (!inventory.unprobed.empty()) return {};
  Cluster cluster = inventory.cluster;
  for (HostGroup& group : cluster.groups) {
    group.machine = without_gpus(std::move(group.machine));
    give_emulated_link(group.machine);
  }
  describe_emulated_fabric(cluster);
  try {
    return with_ranks_of(std::move(cluster), placement_of(world), "this job");
  } catch (const Error&) {
    return {};
  }
}

}  // namespace

Site find_site(const World& world, const std::string& own) {
  Site site;
  site.inventory = gather_probes(world, own);
  on_root(world, [&] {
    site.source = source_here();
    for (Rank rank = 0; rank < world.size(); ++rank) {
      const std::size_t host = index(world.host_number(rank));
      if (host == site.hosts.size()) {
        site.hosts.push_back(world.host(rank));
        site.ranks.emplace_back();
      }
      site.ranks[host].push_back(rank);
    }
    site.cluster = cluster_of_ranks(site.inventory, world);
  });
  return site;
}

Inventory recorded_hosts(const Site& site) {
  Inventory hosts = site.inventory;
  for (HostGroup& group : hosts.cluster.groups) give_emulated_link(group.machine);
  describe_emulated_fabric(hosts.cluster);
  return hosts;
}

}  // namespace polyring

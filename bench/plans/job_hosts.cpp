#include "bench/plans/job_hosts.hpp"

#include <cstddef>
#include <span>
#include <utility>

#include "base/index.hpp"
#include "base/printable.hpp"
#include "bench/record/emulation.hpp"
#include "bench/record/gather_probes.hpp"
#include "bench/record/record.hpp"
#include "bench/record/run_cluster.hpp"
#include "topology/inventory/probe.hpp"

namespace polyring {

std::string probe_with_gpus(Seconds limit) {
  const auto probe = [] {
    Machine machine = probe_this_machine();
    give_emulated_link(machine);
    return machine;
  };
  return probe_own_host(probe, limit);
}

std::vector<RankHost> gpu_placement(const World& world, const std::string& own_gpu) {
  const auto all = world.allgather(std::as_bytes(std::span(own_gpu)));
  std::vector<RankHost> placement = placement_of(world);
  for (RankHost& place : placement) {
    const std::vector<std::byte>& bytes = all[index(place.rank)];
    place.gpu = printable_line({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  return placement;
}

JobHosts gpu_hosts(const World& world, const std::string& own_gpu, const std::string& own_host) {
  std::vector<RankHost> placement = gpu_placement(world, own_gpu);
  return {gpu_cluster(world, own_host), std::move(placement)};
}

}  // namespace polyring

#include "bench/plans/job_hosts.hpp"

#include <cstddef>
#include <span>

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

JobHosts gpu_hosts(const World& world, const std::string& own_gpu, const std::string& own_host) {
  const auto all = world.allgather(std::as_bytes(std::span(own_gpu)));
  JobHosts hosts{{}, placement_of(world)};
  for (RankHost& place : hosts.placement) {
    const std::vector<std::byte>& bytes = all[index(place.rank)];
    place.gpu = printable_line({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  hosts.cluster = gpu_cluster(world, own_host);
  return hosts;
}

}  // namespace polyring

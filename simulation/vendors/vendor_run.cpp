#include "simulation/vendors/vendor_run.hpp"

#include "base/error.hpp"
#include "collectives/schedule/catalogue.hpp"

namespace polyring {

bool is_vendor(std::string_view algorithm) { return algorithm == "nccl" || algorithm == "mpi"; }

int ranks_of_domain(const Cluster& cluster) {
  return cluster.domains_are_equal() ? cluster.ranks_per_domain() : cluster.host(0).ranks();
}

GroupShape shape_of(const VendorCall& call, const Cluster& cluster) {
  const int host_ranks = ranks_of_domain(cluster);
  const int members = call.members == 0 ? cluster.ranks() : call.members;
  if (host_ranks % (members * call.stride) == 0) return {members, 1};
  const int in_host = host_ranks % call.stride == 0 ? host_ranks / call.stride : 1;
  return members % in_host == 0 ? GroupShape{in_host, members / in_host} : GroupShape{1, members};
}

VendorRun vendor_run(std::string_view algorithm, const Cluster& cluster, Bytes payload,
                     const VendorCall& call) {
  if (!is_vendor(algorithm)) usage_error("unknown vendor's algorithm '{}'; choose from nccl, mpi", algorithm);
  constexpr int kMost = 1 << 17;  // takes 1 GB: trees are not simulated in classes of equal ranks
  if (cluster.ranks() > kMost) {
    usage_error("{} over {} ranks takes too much memory to simulate; use at most {}, or multi-ring",
                algorithm, cluster.ranks(), kMost);
  }
  return algorithm == "nccl" ? nccl_run(cluster, payload, call) : mpi_run(cluster, payload, call);
}

Simulation vendor_simulation(const VendorRun& run, Bytes payload) {
  const int members = shape_of(run.call, run.view).members();
  if (members == 1) return {};
  // Bytes as elements: what is sent does not depend on what they stand for.
  const int blocks = blocks_of(run.call.collective, members);
  const Count count = (static_cast<Count>(payload.value) + blocks - 1) / blocks * blocks;
  const Schedule schedule = make_schedule(run.plan, members, count, 1, run.call.collective);
  SimulationOptions options;
  options.window = run.window;
  options.costs = run.costs;
  return simulate(in_groups(schedule, run.call.stride, run.view.ranks()), run.view, Router(run.view), 1,
                  options);
}

Seconds vendor_time(const VendorRun& run, Bytes payload) {
  if (shape_of(run.call, run.view).members() == 1) return {};
  return run.once + vendor_simulation(run, payload).time;
}

}  // namespace polyring

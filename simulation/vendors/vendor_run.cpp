#include "simulation/vendors/vendor_run.hpp"

#include "base/error.hpp"
#include "collectives/schedule/catalogue.hpp"

namespace polyring {

bool is_vendor(std::string_view algorithm) { return algorithm == "nccl" || algorithm == "mpi"; }

VendorRun vendor_run(std::string_view algorithm, const Cluster& cluster, Bytes payload) {
  if (!is_vendor(algorithm)) usage_error("unknown vendor's algorithm '{}'; choose from nccl, mpi", algorithm);
  return algorithm == "nccl" ? nccl_run(cluster, payload) : mpi_run(cluster, payload);
}

Simulation vendor_simulation(const VendorRun& run, Bytes payload) {
  if (run.view.ranks() == 1) return {};
  // Bytes as elements: what is sent does not depend on what they stand for.
  const Schedule schedule = make_schedule(run.plan, run.view.ranks(), static_cast<Count>(payload.value), 1);
  SimulationOptions options;
  options.window = run.window;
  options.costs = run.costs;
  return simulate(schedule, run.view, Router(run.view), 1, options);
}

Seconds vendor_time(const VendorRun& run, Bytes payload) {
  if (run.view.ranks() == 1) return {};
  return run.once + vendor_simulation(run, payload).time;
}

}  // namespace polyring

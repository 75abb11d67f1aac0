// What the library of a vendor would run for one allreduce, where it cannot run itself: a schedule of ours on
// the cluster as the library sees it.
#pragma once

#include <string>
#include <vector>

#include "collectives/schedule/plan.hpp"
#include "collectives/schedule/program.hpp"
#include "simulation/costs.hpp"
#include "simulation/simulate.hpp"
#include "topology/cluster.hpp"

namespace polyring {

struct VendorRun {
  std::string choice;  // in the library's words: "ring, Simple"
  Plan plan;
  Cluster view;  // the cluster as the library uses it, with the same ranks
  Costs costs;
  Seconds once;                  // for each call, before or after the schedule
  int window = kDefaultWindow;   // chunks of each lane in flight
  std::vector<Citation> inputs;  // each constant and assumption with its source
};

/// Why nccl_run() would refuse this cluster, as a sentence with the remedy: GPUs of AMD, hosts or NVLink
/// domains that differ in their number of GPUs. Empty otherwise; nccl_run() also refuses NVLinks that its
/// table lacks.
std::string why_no_nccl(const Cluster& cluster);

/// NCCL's choice between ring and tree and among its protocols, by its own tuning model (nccl_tuner.hpp).
/// Hosts of one NVLink domain are one node to NCCL. Throws a usage Error for GPUs on NVLink that its table
/// does not know, as why_no_nccl() says, and as Router does.
VendorRun nccl_run(const Cluster& cluster, Bytes payload);

/// The choice of Open MPI 4.1's tuned component (open_mpi.hpp), by processes that copy the payload to host
/// memory before and back after: MPI that is not CUDA-aware. Throws a usage Error when a GPU has no path to a
/// package.
VendorRun mpi_run(const Cluster& cluster, Bytes payload);

/// The names that stand for these runs where an algorithm is asked for: "nccl", "mpi".
bool is_vendor(std::string_view algorithm);
/// Throws a usage Error for a name that is_vendor() does not accept, and as the two above do.
VendorRun vendor_run(std::string_view algorithm, const Cluster& cluster, Bytes payload);

/// Its schedule on its view of the cluster, without `once`. Throws as simulate() does.
Simulation vendor_simulation(const VendorRun& run, Bytes payload);

/// How long the run would take. Throws as simulate() does.
Seconds vendor_time(const VendorRun& run, Bytes payload);

}  // namespace polyring

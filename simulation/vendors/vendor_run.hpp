// What the library of a vendor would run for one collective, where it cannot run itself: a schedule of ours
// on the cluster as the library sees it.
#pragma once

#include <string>
#include <vector>

#include "collectives/schedule/plan.hpp"
#include "collectives/schedule/program.hpp"
#include "simulation/costs.hpp"
#include "simulation/simulate.hpp"
#include "topology/cluster.hpp"

namespace polyring {

/// A collective, and the ranks that call it: groups of `members` that are `stride` apart, all at the same
/// time, each with a communicator of its own. Together they are all ranks of the cluster.
struct VendorCall {
  Collective collective = Collective::allreduce;
  int members = 0;  // 0: all ranks in one group
  int stride = 1;
};

/// GPUs that reach each other without NICs: of a host, or of an NVLink domain where all are equal.
int ranks_of_domain(const Cluster& cluster);

/// How the members of one group lie on hosts, or on NVLink domains: each counts as one host.
struct GroupShape {
  int in_host = 1;  // members in a host
  int hosts = 1;    // that a group is on
  int members() const { return in_host * hosts; }
};
/// Groups that lie on hosts unevenly are taken to have one member on each.
GroupShape shape_of(const VendorCall& call, const Cluster& cluster);

struct VendorRun {
  std::string choice;  // in the library's words: "ring, Simple"
  Plan plan;           // of one group
  Cluster view;        // the cluster as the library uses it, with the same ranks
  Costs costs;
  Seconds once;                  // for each call, before or after the schedule
  int window = kDefaultWindow;   // chunks of each lane in flight
  std::vector<Citation> inputs;  // each constant and assumption with its source
  VendorCall call{};
};

/// Why nccl_run() would refuse this cluster, as a sentence with the remedy: GPUs of AMD, hosts or NVLink
/// domains that differ in their number of GPUs. Empty otherwise; nccl_run() also refuses NVLinks that its
/// table lacks.
std::string why_no_nccl(const Cluster& cluster);

/// NCCL's choice between ring and tree and among its protocols, by its own tuning model (nccl_tuner.hpp): as
/// a group's communicator sees its own ranks, which knows nothing of the other groups. Hosts of one NVLink
/// domain are one node to NCCL. An alltoall is NCCL's sends and receives, each pair of ranks at once. Throws
/// a usage Error for GPUs on NVLink that its table does not know, as why_no_nccl() says, and as Router does.
VendorRun nccl_run(const Cluster& cluster, Bytes payload, const VendorCall& call = {});

/// The choice of Open MPI 4.1's tuned component (open_mpi.hpp), by processes that copy the payload to host
/// memory before and back after: MPI that is not CUDA-aware. A reduce-scatter and an allgather are taken to
/// be the halves of a large allreduce, an alltoall to be sends to all others. Throws a usage Error when a GPU
/// has no path to a package.
VendorRun mpi_run(const Cluster& cluster, Bytes payload, const VendorCall& call = {});

/// The names that stand for these runs where an algorithm is asked for: "nccl", "mpi".
bool is_vendor(std::string_view algorithm);
/// Throws a usage Error for a name that is_vendor() does not accept, for more than 131,072 ranks, and as the
/// two above do.
VendorRun vendor_run(std::string_view algorithm, const Cluster& cluster, Bytes payload,
                     const VendorCall& call = {});

/// Its schedule on its view of the cluster, without `once`. Throws as simulate() does.
Simulation vendor_simulation(const VendorRun& run, Bytes payload);

/// How long the run would take. Throws as simulate() does.
Seconds vendor_time(const VendorRun& run, Bytes payload);

}  // namespace polyring

// MPI without knowledge of GPUs: each process copies its GPU's payload to host memory, the processes reduce
// it there, and each copies the result back.
//
// The processes stand in the places of the GPUs, at their packages. What crosses a process's link to its
// package is read from memory and written to it, and all processes of a package share that memory evenly.
#include <algorithm>
#include <map>
#include <optional>

#include "base/error.hpp"
#include "base/index.hpp"
#include "simulation/vendors/open_mpi.hpp"
#include "simulation/vendors/vendor_run.hpp"
#include "topology/path.hpp"
#include "topology/processes.hpp"

namespace polyring {
namespace {

/// A host as MPI uses it.
struct Staging {
  Machine view;
  Bandwidth reduction;  // of each process; 0: unknown
  Seconds copy;         // to host memory and back
};

/// The GPU's package: the one with the fewest hops.
Path path_to_package(const Machine& machine, int gpu, int& package) {
  std::optional<Path> nearest;
  for (int i = 0; i < static_cast<int>(machine.packages.size()); ++i) {
    auto path = find_path(machine, {DeviceKind::gpu, gpu}, {DeviceKind::package, i});
    if (!path || (nearest && path->hops.size() >= nearest->hops.size())) continue;
    nearest = std::move(path);
    package = i;
  }
  if (!nearest) {
    usage_error(
        "{}: there is no path from {} to a package, over which MPI could stage its data; add the link",
        machine.name, machine.gpus[index(gpu)].name);
  }
  return *std::move(nearest);
}

bool on_gpu_side(DeviceId id) { return id.kind == DeviceKind::gpu || id.kind == DeviceKind::nvswitch; }

Staging stage(const Machine& machine, Bytes payload) {
  Staging result{machine, {}, {}};
  Machine& view = result.view;
  std::erase_if(view.links, [](const Link& link) { return on_gpu_side(link.from) || on_gpu_side(link.to); });
  view.nvswitches = 0;

  const double bytes = static_cast<double>(payload.value);
  std::map<std::pair<int, bool>, double> busy;  // seconds, by directed link
  std::vector<int> packages;
  std::vector<int> processes(machine.packages.size());
  for (int gpu = 0; gpu < static_cast<int>(machine.gpus.size()); ++gpu) {
    packages.push_back(0);
    const Path path = path_to_package(machine, gpu, packages.back());
    ++processes[index(packages.back())];
    double slowest = 0;
    for (const Hop hop : path.hops) {
      const Bandwidth bandwidth = machine.links[index(hop.link)].bandwidth;
      double& link = busy[{hop.link, hop.forward}];
      if (bandwidth.known()) link += bytes / bandwidth.value;
      slowest = std::max(slowest, link);
    }
    result.copy = std::max(result.copy, path.latency + Seconds{slowest});
  }
  for (int gpu = 0; gpu < static_cast<int>(machine.gpus.size()); ++gpu) {
    const int package = packages[index(gpu)];
    const Bandwidth memory = machine.packages[index(package)].memory_bandwidth;
    const double share = memory.value / processes[index(package)];
    view.gpus[index(gpu)].name = process_name(gpu);
    view.links.push_back(
        {{DeviceKind::gpu, gpu}, {DeviceKind::package, package}, LinkKind::memory, {share / 2}, {}});
    if (!memory.known()) continue;
    result.copy = std::max(result.copy, Seconds{bytes / share});
    const Bandwidth reduction{share / 3};
    if (!result.reduction.known() || reduction < result.reduction) result.reduction = reduction;
  }
  result.copy = 2 * result.copy;
  return result;
}

/// The powers of two in n, then the odd rest: partners at distance 1, 2, 4, … as Rabenseifner's algorithm
/// has them.
std::vector<int> distances_doubled(int n) {
  std::vector<int> dims;
  for (; n % 2 == 0; n /= 2) dims.push_back(2);
  if (n > 1 || dims.empty()) dims.push_back(n);
  return dims;
}

Plan plan_of(OpenMpiAllreduce choice, int ranks) {
  switch (choice) {
    case OpenMpiAllreduce::nonoverlapping:
      return {"tree", {ranks}, {}, 1, {}};
    case OpenMpiAllreduce::recursive_doubling:
      return {"recursive-doubling", {ranks}, {}, 1, {}};
    case OpenMpiAllreduce::ring:
    case OpenMpiAllreduce::segmented_ring:
      return {"ring", {ranks}, {}, 1, {}};
    case OpenMpiAllreduce::rabenseifner:
      break;
  }
  const std::vector<int> dims = distances_doubled(ranks);
  return {"multi-ring", dims, std::vector<std::string>(dims.size(), "halving"), 1, {}};
}

/// How the algorithm that is simulated differs from Open MPI's.
std::string difference(OpenMpiAllreduce choice, int ranks) {
  switch (choice) {
    case OpenMpiAllreduce::nonoverlapping:
      return "a double binary tree in place of a binomial reduce and a tree broadcast";
    case OpenMpiAllreduce::segmented_ring:
      return "one segment, as with Open MPI's default segment size of 0";
    case OpenMpiAllreduce::rabenseifner:
      if ((ranks & (ranks - 1)) == 0) break;
      return "the odd factor of the ranks by halving on a circulant graph; Open MPI folds the ranks beyond a "
             "power of two first";
    default:
      break;
  }
  return "the same steps";
}

/// What Open MPI would run among `ranks`, and how what is simulated differs from it.
std::string choose(VendorRun& run, int ranks, Bytes payload) {
  switch (run.call.collective) {
    case Collective::allreduce: {
      const OpenMpiAllreduce choice = open_mpi_allreduce(ranks, payload);
      run.choice = to_text(choice);
      run.plan = plan_of(choice, ranks);
      return difference(choice, ranks);
    }
    case Collective::reduce_scatter:
    case Collective::allgather:
      run.choice = "a half of Rabenseifner";
      run.plan = plan_of(OpenMpiAllreduce::rabenseifner, ranks);
      return "assumed of every size";
    case Collective::alltoall:
      run.choice = "sends to all others";
      run.plan = {"direct", {ranks}, {}, 1, {}};
      return "assumed of every size";
  }
  return "";
}

}  // namespace

VendorRun mpi_run(const Cluster& cluster, Bytes payload, const VendorCall& call) {
  VendorRun run;
  run.call = call;
  const int ranks = shape_of(call, cluster).members();
  const std::string difference = choose(run, ranks, payload);
  run.view = cluster;
  run.view.fabric.hosts_per_nvlink_domain = 0;  // it sends from host memory, by NICs
  for (HostGroup& group : run.view.groups) {
    Staging staging = stage(group.machine, payload);
    group.machine = std::move(staging.view);
    run.once = std::max(run.once, staging.copy);
    const Bandwidth slowest = run.costs.reduction;
    if (!slowest.known() || (staging.reduction.known() && staging.reduction < slowest))
      run.costs.reduction = staging.reduction;
  }
  run.inputs = {
      {fmt::format("{} for {} over {} ranks, host after host", run.choice, to_text(payload), ranks),
       std::string(kOpenMpiDecision)},
      {fmt::format("simulated as {}: {}", to_text(run.plan), difference), "this model"},
      {fmt::format("MPI is not CUDA-aware: {} to copy the payload to host memory before and back after, over "
                   "each GPU's way to its package",
                   to_text(run.once)),
       "assumed; bandwidths of the machine"},
      {fmt::format(
           "a process reduces what it receives at {}: two reads and a write for each byte, the memory of "
           "a package shared by its processes",
           run.costs.reduction.known() ? to_text(run.costs.reduction)
                                       : "any speed, that of the memory being unknown"),
       "upper bound by the machine's memory bandwidth"},
      {"a message inside a host is one copy: a read and a write of the package's memory; the library's own "
       "time for a message is left out",
       "assumed, in MPI's favour"}};
  return run;
}

}  // namespace polyring

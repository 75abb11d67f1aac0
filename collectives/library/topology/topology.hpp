// How the libraries plan: by the topology of the ranks' hosts where it is known. Reading and pricing it is
// the work of a plug-in, so that a program that links a library links neither hwloc nor a simulator.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "collectives/runtime/bootstrap.hpp"
#include "collectives/schedule/planner.hpp"
#include "topology/ranks_on_hosts.hpp"

namespace polyring::library {

/// The ranks of a communicator, host after host.
struct JobRanks {
  std::vector<std::string> hosts;  // their names
  std::vector<HostRanks> ranks;    // of each
};

/// libpolyring_topology.so.
class TopologyPlugin {
 public:
  virtual ~TopologyPlugin() = default;

  /// This host without its GPUs, as JSON of `polyring probe`. Starts no process.
  virtual std::string probe() = 0;
  /// A file of `polyring probe --format json`. Throws a usage Error where it is none.
  virtual std::string read(const std::string& file) = 0;
  /// Plans by the links of these hosts: `descriptions` is one text of read(), or a text of probe() for each
  /// host. Null: `why` they are not known well enough. `what` begins a sentence about the descriptions.
  /// Throws a usage Error where they are not of these hosts.
  virtual std::unique_ptr<Planner> make_planner(std::span<const std::string> descriptions,
                                                const JobRanks& job, const std::string& what,
                                                std::string& why) = 0;
};

/// Of more ranks, links take too long to price.
inline constexpr int kMostPlannedRanks = 1024;

/// What the plug-in exports: kTopologyEntry, of this type. Null where it is of another build than `build`.
using TopologyEntry = TopologyPlugin* (*)(const char* build);
inline constexpr const char* kTopologyEntry = "polyring_topology_plugin";

/// How the ranks of a communicator plan.
struct Planning {
  std::unique_ptr<Planner> planner;  // null: by rules
  std::string text;                  // "by the links that cluster.json describes", "by rules, since …"
};

/// Collective, with the same outcome on all ranks. Rank 0's variable POLYRING_CLUSTER names a file of
/// `polyring probe --format json`, or is "none": plan by rules. Without it the hosts are probed where there
/// are several and the data are in host memory. `own_gpu`: the bus address of this rank's GPU; empty: its
/// data are in host memory. Throws an AgreedError where the file cannot be read, is not of these hosts, or a
/// rank has no plug-in to read it.
Planning plan_by_topology(const Bootstrap& bootstrap, const std::string& own_gpu);

}  // namespace polyring::library

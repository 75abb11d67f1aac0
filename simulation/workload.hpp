// Workload: a schedule on a cluster, written out as flows between actors over resources. What the engine
// runs.
//
// At first every rank is an actor, and every switch that reduces, and every directed link, NIC and uplink a
// resource. equal_ranks.hpp and symmetry.hpp make smaller workloads of it: then an actor stands for a class
// of ranks, a flow for a class of transfers, and a resource for a class of resources.
//
// A lane is a course of rounds, one for each step of its stages; a step that repeats the one before is
// written once. All chunks of a lane take the same course. A payload is divided at will, see divided.hpp.
#pragma once

#include <cstdint>
#include <vector>

#include "collectives/schedule/schedule.hpp"
#include "simulation/costs.hpp"
#include "topology/route.hpp"

namespace polyring {

/// Equal transfers that happen at the same time; exactly one in a workload of ranks. If source and
/// destination are the same and `local` is set: a reduction.
struct Flow {
  int source = 0;  // actors
  int destination = 0;
  bool local = false;
  int connection = 0;  // whose messages move one after another
  double bytes = 0;
  double latency = 0;  // s, before the first byte moves
  int first_use = 0;   // [first_use, last_use) of Workload::uses
  int last_use = 0;
  int shift = 0;  // from the source's course to the destination's, where lanes are exchanged (symmetry.hpp)
};

/// A resource that a flow crosses.
struct Use {
  int resource = 0;
  /// The flow's transfers that cross one and the same resource of the class, each by the share that does.
  double weight = 1;
  bool operator==(const Use&) const = default;
};

/// One step: the flows [first_flow, last_flow).
struct Round {
  int first_flow = 0;
  int last_flow = 0;
  int repeats = 1;
};

struct Course {
  int chunks = 1;
  int first_round = 0;
  int last_round = 0;
};

struct Workload {
  int actors = 0;
  bool all_differ = true;          // an actor stands for itself alone
  int connections = 0;             // one for each lane and pair of actors, and for each rank's reductions
  std::vector<double> capacities;  // of the resources, bytes/s
  std::vector<ResourceId> names;   // of each resource, or of one of its class: of a Router; −1 a reduction
  std::vector<Flow> flows;
  std::vector<Use> uses;
  std::vector<Round> rounds;
  std::vector<Course> courses;  // by lane

  /// Messages and reductions of all chunks, those of a step that repeats counted once.
  std::uint64_t messages() const;
  /// Seconds for which each resource is busy with the whole of the workload.
  std::vector<double> busy() const;
};

/// Throws a usage Error when the cluster's ranks are not the schedule's, when the schedule has too many
/// transfers (2^23 that differ) to be simulated, and for stages in switches as SwitchTree does. `classes`: an
/// actor stands for a class of EqualRanks, as in symmetry.hpp, and takes the same time.
Workload make_workload(const Schedule& schedule, const Cluster& cluster, const Router& router,
                       ElementSizes sizes, const Costs& costs, bool classes = false);

}  // namespace polyring

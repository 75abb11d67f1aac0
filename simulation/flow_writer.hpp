// FlowWriter: writes the messages of a workload down as flows over the resources of their routes.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "simulation/workload.hpp"

namespace polyring {

/// Keeps references to all that it is given.
class FlowWriter {
 public:
  FlowWriter(Workload& workload, const Cluster& cluster, const Router& router, const Costs& costs)
      : workload_(workload), cluster_(cluster), router_(router), costs_(costs) {}

  /// Messages of one lane between the same ranks share a connection.
  void add_message(int lane, Rank from, Rank to, double bytes);

  /// The same between any two actors, over resources of the router's.
  void add_message(int lane, int from, int to, double bytes, Seconds latency,
                   std::span<const Crossing> route);

  /// A rank's own work, over a resource of the workload's.
  void add_reduction(Rank rank, double bytes, int resource);

 private:
  int connection(int lane, Rank from, Rank to);
  int own_index(ResourceId resource);

  Workload& workload_;
  const Cluster& cluster_;
  const Router& router_;
  const Costs& costs_;
  std::unordered_map<ResourceId, int> own_;
  std::unordered_map<std::uint64_t, int> connections_;
  std::vector<Crossing> route_;
};

}  // namespace polyring

// FlowWriter: writes the messages of a workload down as flows over the resources of their routes.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "simulation/equal_ranks.hpp"
#include "simulation/workload.hpp"

namespace polyring {

/// Keeps references to all that it is given.
class FlowWriter {
 public:
  FlowWriter(Workload& workload, const Cluster& cluster, const Router& router, const Costs& costs,
             const EqualRanks& equal)
      : workload_(workload), cluster_(cluster), router_(router), costs_(costs), equal_(equal) {}

  /// Messages of one lane between the same ranks share a connection. `from` is the first of its class, and
  /// the message stands for those of all of them.
  void add_message(int lane, Rank from, Rank to, double bytes);

  /// The same between any two actors, over resources of the router's.
  void add_message(int lane, int from, int to, double bytes, Seconds latency,
                   std::span<const Crossing> route);

  /// Of the flows from `first` on, all of one actor in one round, makes one of those that differ in their
  /// connections alone. Each round has to use all of these connections or none, as cyclic patterns do.
  void join_equal(std::size_t first);

  /// An actor's own work, over a resource of the workload's.
  void add_reduction(int actor, double bytes, int resource);

 private:
  int connection(int lane, Rank from, Rank to);
  void add_use(const Crossing& crossing, std::size_t first_use);
  int own_index(ResourceId resource);

  Workload& workload_;
  const Cluster& cluster_;
  const Router& router_;
  const Costs& costs_;
  const EqualRanks& equal_;
  std::unordered_map<ResourceId, int> own_;
  std::unordered_map<std::uint64_t, int> connections_;
  std::vector<Crossing> route_;
};

}  // namespace polyring

// Switches that reduce on the way: the leaf switches and, where there are several, a root over their uplinks.
//
//             root
//            /    \         the sum of a leaf up its uplinks once, the result down once
//         leaf    leaf
//         / \     / \       what a rank holds out of its NIC once, and the result in once
//        0   1   2   3
//
// A switch sends a chunk on when it has it from all that are below it, and reduces as fast as it receives. Of
// the fabric's latencies one half counts upwards and the other downwards.
#pragma once

#include <span>
#include <vector>

#include "simulation/flow_writer.hpp"

namespace polyring {

/// Whether some stage is theirs.
bool uses_switches(const Schedule& schedule);

class SwitchTree {
 public:
  /// Keeps references to all that it is given. The cluster has several domains, with equally many ranks each.
  SwitchTree(const Cluster& cluster, const Router& router, const Costs& costs);

  /// They are actors, numbered on from the ranks.
  int switches() const { return leaves_ > 1 ? leaves_ + 1 : 1; }

  /// Appends the rounds of one chunk of a lane. `held`: the bytes that each rank gives and takes; the
  /// ranks of a domain hold the chunk together.
  void add_rounds(int lane, std::span<const double> held, Workload& workload, FlowWriter& writer) const;

 private:
  int leaf_of(int rank) const;
  void add_ranks(int lane, std::span<const double> held, bool up, FlowWriter& writer) const;
  void add_leaves(int lane, double bytes, bool up, FlowWriter& writer) const;

  const Cluster& cluster_;
  const Router& router_;
  const Costs& costs_;
  int leaves_ = 1;
};

}  // namespace polyring

// On which hosts the ranks of a group run.
#pragma once

#include "collectives/runtime/bootstrap.hpp"
#include "topology/rank_hosts.hpp"

namespace polyring {

struct GroupHosts {
  RankHosts hosts;
  /// The ranks under this rank's kernel, which may be on several hosts that it emulates, outnumber the cores
  /// that they may use: a rank that waits should let the others run.
  bool shares_cores = false;
};

/// Collective.
GroupHosts find_hosts(const Bootstrap& bootstrap);

}  // namespace polyring

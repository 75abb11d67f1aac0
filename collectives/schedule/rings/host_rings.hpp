// The rings that lanes may take inside a host: what ring_search.hpp finds on the links of a Machine.
#pragma once

#include <vector>

#include "topology/machine.hpp"

namespace polyring {

/// What the steps of a host's rings go over.
enum class RingWay {
  nvlink,    // NVLink or xGMI from GPU to GPU at every step, and no link carries more lanes than it is wide
  switched,  // NVSwitches: any order is as good
  mixed,     // there is no ring of NVLinks alone: some steps go over PCIe or between the sockets
};

struct HostRings {
  RingWay way = RingWay::mixed;
  /// By lane all ranks of the host in the order of its ring. Empty for a host of one rank, or of more than
  /// are searched (16).
  std::vector<std::vector<int>> orders;

  /// Whether all rings are those of the ranks' own order, one way round or the other.
  bool follow_ranks() const;
};

/// The NVLink rings, at most 16, that have the most bandwidth together; among equals the fewest. Each
/// direction of a link is used separately, so a ring and its reverse run side by side. All rings are as wide
/// as some link, half or a third of it, or the largest width that divides all links. So four GPUs with equal
/// links between all pairs get 6 rings of half a link, which fill all links; 2 rings of a whole link would
/// leave a third idle. For each width the search finds as many rings as possible, unless it takes millions of
/// steps. Without NVLink rings, the result is the ring that crosses the fewest buses between sockets, then
/// the fewest links, and its reverse; this is the ranks' own order unless another one is better. The result
/// is the same for the same machine, always.
HostRings host_rings(const Machine& machine);

/// The rings' orders for lanes that go on to other hosts: a lane enters a host at the first rank of its order
/// and leaves it from the last. Each ring is turned so that all NICs that ranks use have as many lanes, as
/// far as that can be, and then so that the step that falls away is the costliest. The rings come several
/// times where that takes more lanes, up to 16. As they are where no NIC is up. Throws as rank_nics()
/// does.
std::vector<std::vector<int>> orders_between_hosts(const HostRings& rings, const Machine& machine);

/// How many ranks each of the equal parts has into which a host falls: GPUs that NVLink or xGMI joins, or,
/// where that joins all or none of them, those nearest to the same socket. 0 where it falls into no parts of
/// several consecutive ranks.
int host_part_size(const Machine& machine);

}  // namespace polyring

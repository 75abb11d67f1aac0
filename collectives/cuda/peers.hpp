// Which ranks reach each other's GPU memory.
#pragma once

#include <string>
#include <vector>

#include "collectives/cuda/memory.hpp"
#include "collectives/runtime/bootstrap.hpp"
#include "topology/rank_hosts.hpp"

namespace polyring::cuda {

struct Peers {
  std::vector<char> reached;       // by rank: whether this rank maps its memory; not itself
  std::vector<char> same_process;  // by rank, with itself
  std::string why_not;             // what a host's ranks do not reach; empty: all of them do
  /// Ranks of this process on this rank's GPU, ascending, with itself.
  std::vector<Rank> on_own_gpu;
  std::string own_id;  // of the GPU, in hexadecimal digits
  /// Two ranks that have one GPU in different processes, on whatever host: "ranks 0 and 1"; empty: none.
  std::string share_gpu;

  bool reaches(Rank rank) const { return reached[static_cast<std::size_t>(rank)] != 0; }
  bool in_this_process(Rank rank) const { return same_process[static_cast<std::size_t>(rank)] != 0; }
};

/// Collective. Tries it: each rank reads from the memory of all others on its host. Where one cannot, no rank
/// of the group reaches another, since all must choose the same plan.
Peers find_peers(const Bootstrap& bootstrap, const RankHosts& hosts, int device, const WaitRules& rules,
                 MappedMemory& mapped);

}  // namespace polyring::cuda

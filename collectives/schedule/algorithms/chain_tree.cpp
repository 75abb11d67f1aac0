// Chains inside the hosts, a double binary tree between them: the shape of NCCL's tree.
//
//   n = 6, two hosts of three:   0 ← 1 ← 2    3 ← 4 ← 5    chains inside the hosts
//                                0 ← 3                     a tree over their heads; its mirror for the other
//                                                          half of the payload
//
// The lanes come in pairs, a tree and its mirror. The chains of the pairs begin at ranks that are spread over
// the host, so that trees of different pairs leave it by different NICs where there are several; or each
// pair's chains are in the order that the plan has for it.
//
// Unlike NCCL, which reduces and broadcasts along the same links in two kernels side by side, a chunk goes up
// before it comes down, and NCCL's trees differ where the hosts are no power of two.
//
// Steps: 2·(g − 1 + ceil(log2 m)) for m hosts of g ranks. Bytes sent per rank: 2·S at most. Time, in chunks:
// about 2·((g − 1)·α + log2(m)·α') + 2·S/β.
// NVIDIA, "Massively scale your deep learning training with NCCL 2.4", 2019; Sanders, Speck and Träff,
// Parallel Computing 35(12), 2009.
#include <algorithm>

#include "collectives/schedule/algorithms/algorithms.hpp"

namespace polyring {

std::vector<Dimension> chain_tree(const Plan& plan, int lane) {
  const int in_host = plan.dims.front();
  const int apart = std::max(1, in_host / plan.lanes);
  std::vector<int> order = order_of_lane(plan, lane / 2);
  for (int position = static_cast<int>(order.size()); position < in_host; ++position)
    order.push_back((position + lane / 2 * apart) % in_host);
  const Pattern& tree = lane % 2 == 0 ? tree_pattern() : mirrored_tree_pattern();
  return {Dimension(chain_pattern(), in_host, 1, std::move(order)),
          Dimension(tree, plan.ranks() / in_host, in_host)};
}

}  // namespace polyring

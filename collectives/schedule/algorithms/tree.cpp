// Double binary tree allreduce: half of the payload is reduced up one tree and broadcast down it, the other
// half over its mirror.
//
//   n = 4:   0          3
//             ╲          ╲
//              2          1         each inner rank of the left tree is a leaf of the right one
//             / ╲        / ╲
//            1   3      2   0
//
// Steps: 2·ceil(log2 n). Bytes sent per rank: about 2·S, each half up one tree and down the other.
// Time, in chunks: about 2·log2(n)·α + 2·S/β.
// Sanders, Speck and Träff, Parallel Computing 35(12), 2009.
#include "collectives/schedule/algorithms/algorithms.hpp"

namespace polyring {

std::vector<Dimension> tree(const Plan& plan, int lane) {
  return {Dimension(lane % 2 == 0 ? tree_pattern() : mirrored_tree_pattern(), plan.ranks(), 1)};
}

}  // namespace polyring

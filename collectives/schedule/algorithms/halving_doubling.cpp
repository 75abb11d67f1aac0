// Halving-doubling allreduce: reduce-scatter by recursive halving, allgather by recursive doubling, over all
// ranks.
//
//   n = 4:  0 ⇄ 2, 1 ⇄ 3 halves;  0 ⇄ 1, 2 ⇄ 3 quarters;  and back
//
// Steps: 2·ceil(log2 n), any n. Bytes sent per rank: 2(n − 1)/n · S. Time: 2·ceil(log2 n)·α + 2(n − 1)/n ·
// S/β. Rabenseifner, ICCS 2004; see patterns/halving.cpp for ranks that are no power of two.
#include "collectives/schedule/algorithms/algorithms.hpp"

namespace polyring {

Schedule halving_doubling(const Plan& plan, Count count, int element_size) {
  return lanes_of(plan, plan.lanes, count, element_size,
                  [&](int) { return std::vector{Dimension(halving_pattern(), plan.ranks(), 1)}; });
}

}  // namespace polyring

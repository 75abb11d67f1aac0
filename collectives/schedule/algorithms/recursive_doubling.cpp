// Recursive-doubling allreduce: everything to a partner at twice the distance in each step.
//
//   n = 4:  0 ⇄ 1, 2 ⇄ 3;  0 ⇄ 2, 1 ⇄ 3
//
// Steps: log2 n, and two more when n is no power of two; see patterns/doubling.cpp. Bytes sent per rank:
// log2(n)·S. Time: log2(n)·(α + S/β): for small payloads, which MPI libraries reduce so.
// Thakur, Rabenseifner and Gropp, IJHPCA 19(1), 2005.
#include "collectives/schedule/algorithms/algorithms.hpp"

namespace polyring {

Schedule recursive_doubling(const Plan& plan, Count count, int element_size) {
  return lanes_of(plan, plan.lanes, count, element_size,
                  [&](int) { return std::vector{Dimension(doubling_pattern(), plan.ranks(), 1)}; });
}

}  // namespace polyring

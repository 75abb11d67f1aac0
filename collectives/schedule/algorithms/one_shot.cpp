// One-shot allreduce: everybody sends everything to everybody, in one step.
//
//   n = 4:  m → i the whole payload for all i ≠ m
//
// Steps: 1. Bytes sent per rank: (n − 1)·S. Time: α + (n − 1)·S/β. The fastest for payloads of a few KiB,
// where each further step costs more than the bytes.
#include "collectives/schedule/algorithms/algorithms.hpp"

namespace polyring {

Schedule one_shot(const Plan& plan, Count count, int element_size) {
  return lanes_of(plan, plan.lanes, count, element_size,
                  [&](int) { return std::vector{Dimension(one_shot_pattern(), plan.ranks(), 1)}; });
}

}  // namespace polyring

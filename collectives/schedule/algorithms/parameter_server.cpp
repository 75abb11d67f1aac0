// Parameter server: every rank sends its whole payload to rank 0, which reduces and sends the result to all.
//
//   n = 4:  1 → 0, 2 → 0, 3 → 0;  then 0 → 1, 0 → 2, 0 → 3
//
// How the older systems averaged gradients; kept as the baseline that the others are to beat.
// Steps: 2. Bytes through rank 0's port: (n − 1)·S each way. Time: 2α + 2(n − 1)·S/β.
// Li et al., "Scaling distributed machine learning with the parameter server", OSDI 2014 (here with one
// server).
#include "collectives/schedule/algorithms/algorithms.hpp"

namespace polyring {

Schedule parameter_server(const Plan& plan, Count count, int element_size) {
  return lanes_of(plan, plan.lanes, count, element_size,
                  [&](int) { return std::vector{Dimension(star_pattern(), plan.ranks(), 1)}; });
}

}  // namespace polyring

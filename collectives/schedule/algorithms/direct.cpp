// Direct allreduce: everybody sends each rank its block, everybody sends its reduced block back.
//
//   n = 4:  m → i block i for all m ≠ i;  then i → m block i for all m ≠ i
//
// Steps: 2. Bytes sent per rank: 2(n − 1)/n · S. Time: 2α + 2(n − 1)/n · S/β on a fabric that blocks nothing.
// The one-phase form of Rabenseifner, ICCS 2004; the fastest where latency counts and links are plentiful.
#include "collectives/schedule/algorithms/algorithms.hpp"

namespace polyring {

Schedule direct(const Plan& plan, Count count, int element_size) {
  return lanes_of(plan, plan.lanes, count, element_size,
                  [&](int) { return std::vector{Dimension(direct_pattern(), plan.ranks(), 1)}; });
}

}  // namespace polyring

// Ring allreduce: one ring over all ranks, host after host.
//
//   n = 4, two hosts of two:   0 → 1 ⇒ 2 → 3 ⇒ 0        (⇒ crosses hosts)
//
// Reduce-scatter one way round, allgather the other way, so that chunks in different stages use both
// directions of each link. With several lanes, lane l begins each host at its l-th rank: the ring then leaves
// the host from another rank, and by another NIC where there are several. A plan's orders say in which order
// a lane passes the ranks of each host.
//
// Steps: 2(n − 1). Bytes sent per rank: 2(n − 1)/n · S. Time: 2(n − 1)(α + S/(n·β)).
// Patarasuk and Yuan, JPDC 69(2), 2009.
#include "base/index.hpp"
#include "collectives/schedule/algorithms/algorithms.hpp"

namespace polyring {

std::vector<Dimension> ring(const Plan& plan, int lane) {
  const int ranks = plan.ranks();
  const int in_host = plan.dims.front();
  const std::vector<int> planned = order_of_lane(plan, lane);
  std::vector<int> order;
  for (Rank position = 0; position < ranks; ++position) {
    const Rank host_begin = position / in_host * in_host;
    const int at = position % in_host;
    order.push_back(host_begin + (planned.empty() ? (at + lane) % in_host : planned[index(at)]));
  }
  return {Dimension(ring_pattern(), ranks, 1, std::move(order))};
}

}  // namespace polyring

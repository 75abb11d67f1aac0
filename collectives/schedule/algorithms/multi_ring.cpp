// Multi-ring allreduce, as in IBM's PowerAI DDL: the ranks form a grid X×Y×Z…, X inside a host;
// reduce-scatter along each dimension in turn, then allgather back. Every line of the grid along a dimension
// is a ring of its own, and all of them run side by side.
//
//   n = 4 as 2×2 (hosts {0,1} and {2,3}):
//     reduce-scatter X   0 ⇄ 1   2 ⇄ 3      halves
//     reduce-scatter Y   0 ⇄ 2   1 ⇄ 3      quarters, two rings at once over the network
//     allgather      Y   0 ⇄ 2   1 ⇄ 3
//     allgather      X   0 ⇄ 1   2 ⇄ 3
//
// Lanes split the payload; odd lanes run their rings in the other direction, and those of the first dimension
// in the plan's orders where it has any. A dimension may use another
// pattern than the ring ("halving", "direct", "one-shot"): DDL, too, chose an algorithm for each dimension.
//
// Steps: 2·Σ(dᵢ − 1). Bytes sent per rank: 2(n − 1)/n · S in all; only 2(m − 1)/m · S/X of it goes
// between the m hosts. Time: 2·Σᵢ (dᵢ − 1)(αᵢ + S/(d₁⋯dᵢ·βᵢ)); with chunks the dimensions overlap and the
// slowest remains. Cho et al., "PowerAI DDL", arXiv:1708.02188; Cho et al., "BlueConnect", MLSys 2019.
#include <utility>

#include "collectives/schedule/algorithms/algorithms.hpp"

namespace polyring {
namespace {

/// 0, n − 1, n − 2, …, 1.
std::vector<int> reversed_ring(int n) {
  std::vector<int> order;
  for (int position = 0; position < n; ++position) order.push_back((n - position) % n);
  return order;
}

}  // namespace

std::vector<Dimension> multi_ring(const Plan& plan, int lane) {
  std::vector<Dimension> dimensions;
  int stride = 1;
  for (std::size_t i = 0; i < plan.dims.size(); ++i) {
    const int size = plan.dims[i];
    const Pattern& pattern = plan.patterns.empty() ? ring_pattern() : *find_pattern(plan.patterns[i]);
    std::vector<int> order = i == 0 ? order_of_lane(plan, lane) : std::vector<int>{};
    if (order.empty() && lane % 2 == 1) order = reversed_ring(size);
    dimensions.emplace_back(pattern, size, stride, std::move(order));
    stride *= size;
  }
  return dimensions;
}

}  // namespace polyring

// The dimensions of each lane of the algorithms that are more than one pattern over all ranks, one file each.
#pragma once

#include <vector>

#include "collectives/schedule/plan.hpp"
#include "collectives/schedule/schedule.hpp"

namespace polyring {

std::vector<Dimension> ring(const Plan& plan, int lane);
std::vector<Dimension> multi_ring(const Plan& plan, int lane);
std::vector<Dimension> tree(const Plan& plan, int lane);
std::vector<Dimension> chain_tree(const Plan& plan, int lane);

/// The order that the plan has for a lane's ring over a group of the first dimension; empty where it has
/// none.
std::vector<int> order_of_lane(const Plan& plan, int lane);

}  // namespace polyring

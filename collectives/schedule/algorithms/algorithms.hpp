// The builders behind the catalogue's rows, one file each, and what they share.
#pragma once

#include "collectives/schedule/plan.hpp"
#include "collectives/schedule/schedule.hpp"

namespace polyring {

Schedule ring(const Plan& plan, Count count, int element_size);
Schedule multi_ring(const Plan& plan, Count count, int element_size);
Schedule halving_doubling(const Plan& plan, Count count, int element_size);
Schedule direct(const Plan& plan, Count count, int element_size);
Schedule one_shot(const Plan& plan, Count count, int element_size);
Schedule tree(const Plan& plan, Count count, int element_size);
Schedule recursive_doubling(const Plan& plan, Count count, int element_size);
Schedule chain_tree(const Plan& plan, Count count, int element_size);
Schedule parameter_server(const Plan& plan, Count count, int element_size);

/// The order that the plan has for a lane's ring over a group of the first dimension; empty where it has
/// none.
std::vector<int> order_of_lane(const Plan& plan, int lane);

/// The chunks that a lane of `count` elements is cut into: as many as the plan's chunk size asks for, at
/// least one, never more than its elements. Throws a usage Error when `lanes` such lanes would have more than
/// kMostStreams together.
int chunk_count(const Plan& plan, int lanes, Count count, int element_size);

/// A schedule of `lanes` equal lanes, with the payload split and chunked; `dimensions(lane)` gives each
/// lane's.
template <typename DimensionsOfLane>
Schedule lanes_of(const Plan& plan, int lanes, Count count, int element_size, DimensionsOfLane dimensions) {
  Schedule schedule{plan.algorithm, plan.ranks(), count, {}};
  for (int lane = 0; lane < lanes; ++lane) {
    const Slice slice = part({0, count}, lane, lanes);
    schedule.lanes.push_back({slice, chunk_count(plan, lanes, slice.count, element_size), dimensions(lane)});
  }
  return schedule;
}

}  // namespace polyring

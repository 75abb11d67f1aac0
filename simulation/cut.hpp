// How to cut a payload: lanes and chunks by the price of the schedule on a topology.
#pragma once

#include "collectives/schedule/plan.hpp"
#include "simulation/price.hpp"

namespace polyring {

/// `plan` with the lanes and the chunk, as far as `constraints` leave them free, whose schedule has the
/// lowest price (price.hpp) for `count` elements; of those that are dearer by 5 % at most, that with the
/// fewest chunks in all lanes, since each message costs what a price does not know: time of a processor. No
/// free chunk is above `longest_chunk`; 0: any. Throws as price() does.
Plan cheapest_cut(Plan plan, const PlanConstraints& constraints, Bytes longest_chunk, const Cluster& cluster,
                  const Router& router, Count count, ElementSizes sizes);

}  // namespace polyring

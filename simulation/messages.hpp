// Messages between pairs of ranks that all begin at once, as between the stages of a pipeline.
#pragma once

#include <span>

#include "simulation/simulate.hpp"

namespace polyring {

struct Message {
  int from = 0;  // ranks
  int to = 0;
  double bytes = 0;
};

/// Until the last one has arrived. Messages of one pair move one after another.
Simulation simulate(std::span<const Message> messages, const Cluster& cluster, const Router& router,
                    const Costs& costs = {});

}  // namespace polyring

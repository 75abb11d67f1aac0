// Polling for what a GPU does.
#pragma once

#include "base/units.hpp"
#include "collectives/runtime/backoff.hpp"

namespace polyring::cuda {

/// Asks `over` again and again until it says so; false at the limit. `yields`: see WaitRules.
template <typename Over>
bool over_within(Seconds limit, bool yields, Over&& over) {
  Backoff backoff(limit, yields);
  while (!over())
    if (!backoff.again()) return false;
  return true;
}

}  // namespace polyring::cuda

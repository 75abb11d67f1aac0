// A schedule whose payload is divided at will: each of n blocks of a slice is 1/n of it, which differs from
// the schedule by one element at most. With fewer elements than blocks, the schedule's own slices are used.
#pragma once

#include "collectives/schedule/schedule.hpp"

namespace polyring {

struct Divided {
  /// Where there are enough elements: the same lanes with one element for each block, and one chunk.
  Schedule schedule;
  bool equal_blocks = false;

  /// Bytes of a chunk for each element of `schedule`, where an element has `size`. The lane is the
  /// original's.
  double bytes_per_element(const Lane& lane, int size) const {
    return equal_blocks ? static_cast<double>(lane.slice.count) * size / lane.chunks / schedule.ranks : size;
  }
};

Divided divided(const Schedule& schedule);

}  // namespace polyring
